"""The training loop: a run from its checkpoint to its last step."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator

import keras
import numpy as np
import tensorflow as tf

from bert.common import storage
from bert.common.errors import UserError
from bert.common.progress import say
from bert.training import logs, workers
from bert.training.guard import Guard, Spikes
from bert.training.preemption import Abandoned, Preemption
from bert.training.saver import GLOBAL_STEP, Restored, Saver
from bert.training.steps import TOKENS, Steps


@dataclasses.dataclass(frozen=True)
class Schedule:
    """Batches, and the steps at which the loop logs, evaluates and saves.

    Attributes:
        batches: makes the whole batches from the current step on.
        num_train_steps: the last step.
        log_steps: steps between two reports.
        save_steps: steps between two checkpoints.
        eval_steps: steps between two evaluations; 0: none.
        iterations_per_loop: maximum number of steps in one call.
        batch_size: examples of the whole batch, for the throughput.
        learning_rate: step -> learning rate, for the reports.
        records_of: step -> the sources of the examples in its batch; logged
            for bad steps.
    """

    batches: Callable[[], tf.data.Dataset]
    num_train_steps: int
    log_steps: int
    save_steps: int
    eval_steps: int
    iterations_per_loop: int
    batch_size: int
    learning_rate: Callable[[int], tf.Tensor]
    records_of: Callable[[int], str] = "batch {}".format

    def next_stop(self, step: int) -> int:
        """The next step after which the loop logs, evaluates, saves or ends."""
        stops = [self.num_train_steps]
        for every in (self.log_steps, self.save_steps, self.eval_steps):
            if every:
                stops.append((step // every + 1) * every)
        return min(stops)

    def is_due(self, every: int, step: int) -> bool:
        """Whether an action of this interval is due; at the last step it is."""
        is_last = step == self.num_train_steps
        return is_last or (every > 0 and step % every == 0)


@dataclasses.dataclass(frozen=True)
class Validation:
    """Evaluation during training; the best weights are kept.

    Attributes:
        evaluate: returns metrics of the current weights.
        metric: name of the metric to compare.
        is_loss: whether lower is better.
        patience: number of evaluations without an improvement after which
            the run is over; 0: never.
    """

    evaluate: Callable[[], dict[str, float]]
    metric: str
    is_loss: bool = False
    patience: int = 0


class Trainer:
    """Resumes and trains a run; logs, evaluates and saves between steps.

    A checkpoint holds the variables, their moments and the step.

    Args:
        steps: computes training and evaluation steps.
        named: name in the checkpoint -> variable.
        saver: writes and finds the checkpoints.
        best: saves the best weights of the run.
        folder: the run's output_dir.
        settings: JSON values that describe the run.
        steps_to_profile: the first and the last step, from 1; None: none.
    """

    def __init__(
        self,
        steps: Steps,
        named: dict[str, keras.Variable],
        saver: Saver,
        best: Saver,
        folder: str,
        settings: dict,
        steps_to_profile: tuple[int, int] | None = None,
    ):
        self.steps, self.best = steps, best
        self._named, self._saver = named, saver
        self._folder, self._settings = folder, settings
        self._variables = {**named, **steps.optimizer.named_slots(named)}
        self._profile = logs.Profile(folder, steps_to_profile)
        self._guard = Guard(steps)
        self._sums = logs.RunningSums(steps.sum_names)  # since the last report
        # The best value of the validation, the number of evaluations since
        # then, and whether an evaluation was interrupted.
        self._best_value, self._waited, self._is_owed = None, 0, False

    @property
    def step(self) -> int:
        """Number of steps taken."""
        return self.steps.optimizer.step

    def resume(self, will_train: bool) -> Restored | None:
        """Resumes the run in the folder, if there is one.

        Args:
            will_train: whether to clean up the folder, and to restore the
                moments, not only the weights.

        Returns:
            the checkpoint, or None.

        Raises:
            UserError: it is of another network.
        """
        self._saver.wait()
        if will_train:
            self._saver.sweep()
        strategy = self.steps.strategy
        workers.barrier(strategy)  # until the chief has cleaned up
        restored = self._saver.restore_latest()
        if restored:
            variables = self._variables if will_train else self._named
            fix = "pass another --output_dir, or the flags of this run"
            self.assign(restored.values, self._saver.folder, fix, variables)
        fix = "put --output_dir on a file system that they share"
        workers.check_settings(strategy, {"the step to resume": self.step}, fix)
        if restored and restored.state:  # the best weights have none
            self._load_state_dict(restored.state)
        return restored

    def assign(
        self,
        values: dict[str, np.ndarray],
        path: str,
        fix: str,
        variables: dict[str, keras.Variable] | None = None,
    ) -> None:
        """Continues with the weights, the moments and the step of a run.

        Args:
            values: its checkpoint.
            path: of the checkpoint, for messages.
            fix: advice to the user.
            variables: those to assign; default: the weights and moments.

        Raises:
            UserError: the checkpoint lacks a variable, a moment or the step.
        """
        variables = variables or self._variables
        if GLOBAL_STEP not in values:
            raise UserError(f"has no {GLOBAL_STEP}", path=path, fix=fix)
        step = int(values[GLOBAL_STEP])
        for name, variable in variables.items():
            value = values.get(name)
            if value is None or value.shape != tuple(variable.shape):
                shape = "no" if value is None else f"{list(value.shape)}"
                raise UserError(
                    f"checkpoint {step} has {shape} {name}",
                    path=path,
                    expected=f"{list(variable.shape)}, from the config",
                    fix=fix,
                )
        for name, variable in variables.items():
            variable.assign(values[name])
        self.steps.optimizer.iterations.assign(step)
        say(f"resuming from step {step} in {path}")

    def train(
        self,
        schedules: list[Schedule],
        validation: Validation | None = None,
        train_for: float | None = None,
    ) -> None:
        """Trains to the last step, or until a stop is requested.

        An evaluation precedes the checkpoint of its step, which holds its
        results.

        Args:
            schedules: trained one after the other.
            validation: evaluates during training.
            train_for: time limit in seconds.

        Raises:
            SystemExit: the run was interrupted, and saved.
        """
        log, strategy = self._drop_later_steps(), self.steps.strategy
        last_step = schedules[-1].num_train_steps
        with (
            self._saver,
            self._profile,
            Preemption(train_for, not workers.is_joined()) as preemption,
            _naming_the_step(self.steps),
        ):
            if validation and self._is_owed:
                self._validate(validation, log, preemption)
                self.save()
            stop = self._should_stop(validation, preemption)
            for schedule in schedules:
                if stop or self.step >= schedule.num_train_steps:
                    continue
                iterator = _iterate(schedule.batches())
                throughput = logs.Throughput(schedule.iterations_per_loop)
                say("compiling the step ...")
                while not stop and self.step < schedule.num_train_steps:
                    step = self.step
                    limit = schedule.next_stop(step) - step
                    limit = self._profile.steps_per_call(step, limit)
                    count = throughput.steps_per_call(limit)
                    # That of the slowest worker.
                    count = int(workers.gather(strategy, count).min())
                    with tf.profiler.experimental.Trace(
                        "train", step_num=step + 1, _r=1
                    ):
                        sums = self.steps.train(iterator, tf.constant(count))
                        sums = sums.numpy()
                    throughput.count_call(count)
                    self._sums.add(
                        self._guard.check(step, sums, schedule.records_of)
                    )
                    self._report(schedule, step, throughput, log)
                    step = self.step
                    if validation and schedule.is_due(
                        schedule.eval_steps, step
                    ):
                        self._validate(validation, log, preemption)
                    stop = self._should_stop(validation, preemption)
                    if stop or schedule.is_due(schedule.save_steps, step):
                        self.save()
                    throughput.resume()
            # All workers are here and decide alike.
            self._should_stop(validation, preemption)
            self._saver.wait()
            preemption.end(self.step, last_step)
        if self.step < last_step:
            say(
                f"finished: stopped early at step {self.step} of "
                f"{last_step}, without a better evaluation"
            )

    def _drop_later_steps(self) -> logs.TrainingLog:
        """Opens the log of the run.

        Checkpoints, best weights and curves of later steps than the current
        one belong to an abandoned branch of the run and are removed.
        """
        self._saver.remove_after(self.step)
        self.best.remove_after(self.step)
        workers.barrier(self.steps.strategy)  # until the chief removed them
        if not self.best.steps():  # the search for them starts anew
            self._best_value, self._waited = None, 0
        return logs.TrainingLog(self._folder, self.step)

    def _should_stop(
        self, validation: Validation | None, preemption: Preemption
    ) -> bool:
        """Whether the run has to save and end; all workers decide alike."""
        self._saver.check()
        requests = workers.gather(self.steps.strategy, preemption.request)
        request = int(requests.max())
        preemption.adopt(request)
        patience = validation.patience if validation else 0
        return request > 0 or 0 < patience <= self._waited

    def _report(
        self,
        schedule: Schedule,
        before: int,
        throughput: logs.Throughput,
        log: logs.TrainingLog,
    ) -> None:
        """Logs the steps since `before`; at a stop, the means since the last.

        They are also logged every few seconds.
        """
        step, seconds = self.step, throughput.seconds_per_step
        left = seconds * (schedule.num_train_steps - step)
        logs.show_progress(step, schedule.num_train_steps, seconds)
        is_stop = step == schedule.next_stop(before)
        if not self._sums.steps or not (is_stop or throughput.is_log_due()):
            return
        rate = schedule.batch_size / seconds if seconds else 0.0
        objectives = self.steps.task.objectives
        values = self._sums.means(objectives) | {
            "learning_rate": float(schedule.learning_rate(step - 1)),
            "examples_per_second": rate,
            "tokens_per_second": rate
            * self._sums.mean(TOKENS)
            / schedule.batch_size,
        }
        logs.log_training(
            step, schedule.num_train_steps, values, objectives, left
        )
        throughput.mark_logged()
        if is_stop:
            log.write(step, "train", values)
            self._sums = logs.RunningSums(self.steps.sum_names)

    def _validate(
        self,
        validation: Validation,
        log: logs.TrainingLog,
        preemption: Preemption,
    ) -> None:
        """Evaluates; saves the weights if no earlier ones are as good.

        An evaluation that a signal interrupts is repeated when the run
        resumes.
        """
        self._is_owed = True
        try:
            with preemption.abandoning():
                metrics = validation.evaluate()
        except Abandoned:
            return
        self._is_owed = False
        logs.log_evaluation(self.step, metrics, self.steps.task.objectives)
        log.write(self.step, "eval", metrics)
        value, best = metrics[validation.metric], self._best_value
        sign = -1 if validation.is_loss else 1
        if not sign * value > (-np.inf if best is None else sign * best):
            self._waited += 1
            return
        self._saver.wait()
        storage.make_folder(self.best.folder)
        settings = {**metrics, **self._settings, validation.metric: value}
        self.best.save(self.step, self._named, settings)
        self._best_value, self._waited = value, 0
        say(f"best {validation.metric} so far: {value:.4f}, {self.best.folder}")

    def save(self) -> None:
        """Writes a checkpoint in a thread."""
        self._saver.save_in_background(
            self.step, self._variables, self._settings, self._state_dict()
        )

    def _state_dict(self) -> dict:
        """JSON values for `_load_state_dict`."""
        value = np.inf if self._best_value is None else self._best_value
        return {
            "trainer": {
                "window": self._sums.state_dict(),
                "losses": list(self._guard.spikes.losses),
                "steps": self.steps.state_dict(),
            },
            "held_out": {
                "is_owed": self._is_owed,
                "best": {"value": value.hex(), "waited": self._waited},
            },
        }

    def _load_state_dict(self, state: dict) -> None:
        """Restores the state of an interrupted run."""
        self._sums.load_state_dict(state["trainer"]["window"])
        # Checkpoints of earlier versions have no losses.
        self._guard.spikes = Spikes(state["trainer"].get("losses", ()))
        self.steps.load_state_dict(state["trainer"]["steps"])
        if held_out := state["held_out"]:  # earlier versions: None
            self._is_owed = held_out["is_owed"]
            value = float.fromhex(held_out["best"]["value"])
            self._best_value = value if np.isfinite(value) else None
            self._waited = held_out["best"]["waited"]

    def evaluate(self, batches: Iterable[dict]) -> dict[str, float]:
        """Means over all examples of the batches.

        Args:
            batches: whole batches; examples that fill up a batch have weight 0.

        Returns:
            `loss`, and the loss and accuracy of each objective.
        """
        sums = logs.RunningSums(self.steps.sum_names)
        for batch in batches:
            sums.add(self.steps.evaluate(batch).numpy()[None])
        values = sums.means(self.steps.task.objectives)
        del values["gradient_norm"]
        return values


@contextlib.contextmanager
def _naming_the_step(steps: Steps) -> Iterator[None]:
    """Adds the number of the step to TensorFlow's errors."""
    try:
        yield
    except tf.errors.OpError as error:
        if "determinis" in str(error).lower():
            raise UserError(
                f"no deterministic operation: {str(error).splitlines()[0]}",
                fix="pass --nodeterministic",
            ) from None
        error.add_note(f"at step {steps.optimizer.step}")
        raise


def _iterate(batches: tf.data.Dataset):
    """Iterates over batches that are a function of the step in any case.

    Under op determinism TensorFlow would make them without threads, and each
    one only when it is asked for.
    """
    from tensorflow.python.framework import config  # has no public name

    is_deterministic = config.is_op_determinism_enabled()
    config.disable_op_determinism()
    try:
        return iter(batches)
    finally:
        if is_deterministic:
            tf.config.experimental.enable_op_determinism()
