"""The training loop: steps, reports, evaluations, checkpoints.

It knows no BERT. A task hands it a model and two functions:

    batch_weights(batch) -> objective -> weight of the whole batch
    batch_sums(batch, outputs) -> "<objective>_loss", "<objective>_accuracy",
        "<objective>_weight" -> sums over the rows of one replica

The loss of a step is the sum over objectives of loss / weight, where both are
taken over the whole batch: it does not depend on the number of replicas.
"""

import dataclasses
import time
from collections.abc import Callable, Iterable

import keras
import tensorflow as tf

from training import logs, optimization

_SECONDS_A_CALL = 2.0
_SECONDS_BETWEEN_LINES = 10.0


@dataclasses.dataclass(frozen=True)
class Task:
    """What is trained.

    Attributes:
        model: takes a batch, returns outputs.
        objectives: names, in the order they are shown.
        batch_weights, batch_sums: see above.
        seed_scope: hands an int32 [2] seed to the model's dropout.
    """

    model: keras.Model
    objectives: tuple[str, ...]
    batch_weights: Callable[[dict], dict[str, tf.Tensor]]
    batch_sums: Callable[[dict, dict], dict[str, tf.Tensor]]
    seed_scope: Callable


@dataclasses.dataclass(frozen=True)
class Schedule:
    """When things happen, in steps.

    Attributes:
        num_train_steps: the last step.
        log_steps: between two reports.
        save_steps: between two checkpoints.
        eval_steps: between two evaluations while training, 0 for none.
        iterations_per_loop: at most so many steps in one call.
        batch_size: rows of the whole batch, for the rate.
        learning_rate: step -> rate, for the reports.
    """

    num_train_steps: int
    log_steps: int
    save_steps: int
    eval_steps: int
    iterations_per_loop: int
    batch_size: int
    learning_rate: Callable[[int], tf.Tensor]

    def next_stop(self, step: int) -> int:
        """The first step after `step` at which something happens."""
        stops = [self.num_train_steps]
        for every in (self.log_steps, self.save_steps, self.eval_steps):
            if every:
                stops.append((step // every + 1) * every)
        return min(stops)

    def happens(self, every: int, step: int) -> bool:
        """Whether something that comes every so many steps comes now."""
        return bool(every) and step % every == 0


class Trainer:
    """Runs training and evaluation steps under a strategy.

    Args:
        task: what is trained.
        optimizer: built in the strategy's scope.
        strategy: the devices.
        seed: of dropout.
        use_xla: compile forward and backward pass.
    """

    def __init__(
        self,
        task: Task,
        optimizer: optimization.AdamWeightDecay,
        strategy: tf.distribute.Strategy,
        seed: int,
        use_xla: bool = False,
    ):
        self.task = task
        self.optimizer = optimizer
        self.strategy = strategy
        self._seed = seed % 2**31
        self._variables = task.model.trainable_variables
        self._sum_names = tuple(
            f"{objective}_{what}"
            for objective in task.objectives
            for what in ("loss", "accuracy", "weight")
        )
        self._gradients = tf.function(self._gradients, jit_compile=use_xla)

    def train(
        self,
        batches: tf.data.Dataset,
        schedule: Schedule,
        log: logs.TrainingLog,
        save: Callable[[], None],
        evaluate: Callable[[], None],
    ) -> None:
        """Trains up to `schedule.num_train_steps`.

        Args:
            batches: whole batches, from the present step on.
            schedule: when to report, save and evaluate.
            log: takes the reports.
            save: writes a checkpoint of the present state.
            evaluate: evaluates the present state.
        """
        iterator = iter(batches)
        window = _Window(self._sum_names)
        pace = _Pace(schedule)
        step = self.optimizer.step
        while step < schedule.num_train_steps:
            room = schedule.next_stop(step) - step
            steps = pace.steps_a_call(room)
            sums = self._train_steps(iterator, tf.constant(steps)).numpy()
            step += steps
            pace.called(steps)
            window.add(sums)
            report = room == steps
            if report or pace.is_time_for_a_line():
                values = window.means(self.task.objectives)
                rate = schedule.learning_rate(step - 1)
                values["learning_rate"] = float(rate)
                values["examples_per_second"] = pace.examples_per_second
                logs.tell_training(
                    step,
                    schedule.num_train_steps,
                    values,
                    self.task.objectives,
                    pace.seconds_a_step * (schedule.num_train_steps - step),
                )
                pace.told()
            if report:
                log.write(step, "train", values)
                window = _Window(self._sum_names)
            is_last = step == schedule.num_train_steps
            if is_last or schedule.happens(schedule.save_steps, step):
                save()
            if is_last or schedule.happens(schedule.eval_steps, step):
                evaluate()
            pace.resume()

    def evaluate(self, batches: Iterable[dict]) -> dict[str, float]:
        """Means over all rows of the batches, each objective apart.

        Args:
            batches: whole batches; rows that only fill a batch have weight 0.

        Returns:
            `loss` and, for each objective, its loss and accuracy.
        """
        window = _Window(self._sum_names)
        for batch in batches:
            window.add(self._eval_step(batch).numpy()[None])
        values = window.means(self.task.objectives)
        del values["gradient_norm"]
        return values

    @tf.function
    def _train_steps(self, iterator, num_steps):
        """float32 [num_steps, names + 1]: sums, and the gradient norm last.

        Steps are added up outside: how many share a call changes no bit.
        """
        sums = tf.TensorArray(tf.float32, num_steps)
        for i in tf.range(num_steps):
            batch = next(iterator)
            result = self.strategy.run(self._replica_step, args=(batch,))
            result = self.strategy.experimental_local_results(result)[0]
            sums = sums.write(i, result)
            self.optimizer.iterations.assign_add(1)
        return sums.stack()

    def _replica_step(self, batch):
        context = tf.distribute.get_replica_context()
        replica = tf.cast(context.replica_id_in_sync_group, tf.int32)
        step = tf.cast(self.optimizer.iterations.value, tf.int32)
        seed = tf.random.experimental.stateless_fold_in(
            tf.stack([self._seed, step]), replica
        )
        weights = self.task.batch_weights(batch)
        rows = self._rows_of(batch, context)
        gradients, sums = self._gradients(rows, weights, seed)
        gradients, norm = optimization.reduce_and_clip(gradients)
        rate = self.optimizer.learning_rate
        self.optimizer.update(gradients, self._variables, rate)
        sums = context.all_reduce(tf.distribute.ReduceOp.SUM, sums)
        return tf.concat([sums, [norm]], 0)

    def _gradients(self, rows, weights, seed):
        """Gradients of this replica's share of the loss, and its sums."""
        with tf.GradientTape() as tape:
            with self.task.seed_scope(seed):
                outputs = self._outputs(rows, training=True)
            sums = self.task.batch_sums(rows, outputs)
            loss = tf.add_n(
                [
                    sums[f"{objective}_loss"] / weights[objective]
                    for objective in self.task.objectives
                ]
            )
        gradients = tape.gradient(loss, [v.value for v in self._variables])
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        return gradients, tf.stack([sums[name] for name in self._sum_names])

    @tf.function
    def _eval_step(self, batch):
        def replica_step(batch):
            context = tf.distribute.get_replica_context()
            rows = self._rows_of(batch, context)
            outputs = self._outputs(rows, training=False)
            sums = self.task.batch_sums(rows, outputs)
            sums = tf.stack([sums[name] for name in self._sum_names])
            sums = context.all_reduce(tf.distribute.ReduceOp.SUM, sums)
            return tf.concat([sums, [0.0]], 0)

        result = self.strategy.run(replica_step, args=(batch,))
        return self.strategy.experimental_local_results(result)[0]

    def _outputs(self, rows, training):
        # A functional model takes wrong inputs, unseen, if there are more.
        inputs = {name: rows[name] for name in self.task.model.input}
        return self.task.model(inputs, training=training)

    def _rows_of(self, batch, context):
        """This replica's rows of the whole batch."""
        replicas = context.num_replicas_in_sync
        if replicas == 1:
            return batch
        replica = context.replica_id_in_sync_group
        rows = {}
        for name, values in batch.items():
            size = values.shape[0] // replicas
            start = tf.cast(replica, tf.int32) * size
            rows[name] = tf.ensure_shape(
                values[start : start + size], [size, *values.shape[1:]]
            )
        return rows


class _Window:
    """Sums since the last report."""

    def __init__(self, names: tuple[str, ...]):
        self._names = names
        self._steps = 0
        self._sums = [0.0] * (len(names) + 1)

    def add(self, sums) -> None:
        """float32 [steps, names + 1]."""
        for row in sums.tolist():
            self._sums = [a + b for a, b in zip(self._sums, row)]
        self._steps += len(sums)

    def means(self, objectives: tuple[str, ...]) -> dict[str, float]:
        sums = dict(zip(self._names, self._sums))
        values = {"loss": 0.0}
        for objective in objectives:
            weight = sums[f"{objective}_weight"]
            for what in ("loss", "accuracy"):
                mean = sums[f"{objective}_{what}"] / weight if weight else 0.0
                values[f"{objective}_{what}"] = mean
            values["loss"] += values[f"{objective}_loss"]
        values["gradient_norm"] = self._sums[-1] / max(1, self._steps)
        return values


class _Pace:
    """How fast it goes; pauses for checkpoints and evaluation are left out.

    The first call traces and compiles, so it takes one step and its time is
    not counted.
    """

    def __init__(self, schedule: Schedule):
        self._schedule = schedule
        self._seconds = 0.0
        self._steps = 0
        self._calls = 0
        self._start = self._told = time.monotonic()

    def steps_a_call(self, room: int) -> int:
        if not self._steps:
            return 1
        fit = int(_SECONDS_A_CALL * self._steps / self._seconds)
        return max(1, min(room, fit, self._schedule.iterations_per_loop))

    def called(self, steps: int) -> None:
        now = time.monotonic()
        if self._calls:
            self._seconds += now - self._start
            self._steps += steps
        self._calls += 1
        self._start = now

    def resume(self) -> None:
        self._start = time.monotonic()

    def is_time_for_a_line(self) -> bool:
        return self._start - self._told >= _SECONDS_BETWEEN_LINES

    def told(self) -> None:
        self._told = time.monotonic()

    @property
    def seconds_a_step(self) -> float:
        return self._seconds / self._steps if self._steps else 0.0

    @property
    def examples_per_second(self) -> float:
        """0 while unknown."""
        rows = self._schedule.batch_size * self._steps
        return rows / self._seconds if self._steps else 0.0
