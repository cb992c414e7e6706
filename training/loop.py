"""Training loop: steps, logs, evaluations and checkpoints."""

import dataclasses
import functools
from collections.abc import Callable, Iterable

import tensorflow as tf

from common.errors import UserError
from common.progress import say
from training import logs, workers
from training.guard import Guard, Spikes
from training.steps import TOKENS, Steps
from training.throughput import Profile, RunningSums, Throughput


@dataclasses.dataclass(frozen=True)
class Schedule:
    """Steps at which the loop logs, evaluates, saves and ends.

    Attributes:
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
        """Whether an action of this interval is due; 0: never."""
        return bool(every) and step % every == 0


def _naming_the_step(method: Callable) -> Callable:
    """Adds the number of the step to TensorFlow's errors."""

    @functools.wraps(method)
    def run(self, *arguments, **named):
        try:
            return method(self, *arguments, **named)
        except tf.errors.OpError as error:
            if "determinis" in str(error).lower():
                raise UserError(
                    f"no deterministic operation: {str(error).splitlines()[0]}",
                    fix="pass --nodeterministic",
                ) from None
            error.add_note(f"at step {self.steps.optimizer.step}")
            raise

    return run


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


class Trainer:
    """Runs training steps; logs, evaluates and saves between them.

    Args:
        steps: computes training and evaluation steps.
        profile: of some steps.
    """

    def __init__(self, steps: Steps, profile: Profile | None = None):
        self.steps = steps
        self.profile = profile or Profile()
        self._guard = Guard(steps)
        self.objectives = steps.task.objectives
        self._sums = RunningSums(steps.sum_names)  # since the last report

    @_naming_the_step
    def train(
        self,
        batches: tf.data.Dataset,
        schedule: Schedule,
        log: logs.TrainingLog,
        save: Callable[[], None],
        evaluate: Callable[[], None],
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Trains up to `schedule.num_train_steps`.

        An evaluation precedes the checkpoint of its step, which holds its
        results.

        Args:
            batches: whole batches, from the current step on.
            schedule: when to log, save and evaluate.
            log: writes the metrics.
            save: writes a checkpoint of the current state.
            evaluate: evaluates the current state.
            should_stop: called every few seconds; if true, the loop saves
                and returns.
        """
        iterator = _iterate(batches)
        throughput = Throughput(schedule.iterations_per_loop)
        step = self.steps.optimizer.step
        say("compiling the step ...")
        while step < schedule.num_train_steps:
            stop = schedule.next_stop(step)
            limit = stop - step
            limit = min(limit, self.profile.steps_per_call(step) or limit)
            count = throughput.steps_per_call(limit)
            # That of the slowest worker.
            count = int(workers.gather(self.steps.strategy, count).min())
            with tf.profiler.experimental.Trace(
                "train", step_num=step + 1, _r=1
            ):
                sums = self.steps.train(iterator, tf.constant(count))
                sums = sums.numpy()
            throughput.count_call(count)
            sums = self._guard.check(step, sums, schedule.records_of)
            self._sums.add(sums)
            step += count
            logs.show_progress(
                step, schedule.num_train_steps, throughput.seconds_per_step
            )
            report = step == stop
            if self._sums.steps and (report or throughput.is_log_due()):
                values = self._report(step, schedule, throughput)
                logs.log_training(
                    step,
                    schedule.num_train_steps,
                    values,
                    self.objectives,
                    throughput.seconds_per_step
                    * (schedule.num_train_steps - step),
                )
                throughput.mark_logged()
                if report:
                    log.write(step, "train", values)
                    self._sums = RunningSums(self.steps.sum_names)
            is_last = step == schedule.num_train_steps
            if is_last or schedule.is_due(schedule.eval_steps, step):
                evaluate()
            stop = should_stop()
            if is_last or stop or schedule.is_due(schedule.save_steps, step):
                save()
            if stop:
                return
            throughput.resume()

    def _report(
        self, step: int, schedule: Schedule, throughput: Throughput
    ) -> dict:
        """Means since the last report, learning rate and throughput."""
        values = self._sums.means(self.objectives)
        values["learning_rate"] = float(schedule.learning_rate(step - 1))
        seconds = throughput.seconds_per_step
        rate = schedule.batch_size / seconds if seconds else 0.0
        values["examples_per_second"] = rate
        tokens = self._sums.mean(TOKENS)
        values["tokens_per_second"] = rate * tokens / schedule.batch_size
        return values

    def state_dict(self) -> dict:
        """JSON values for `load_state_dict`."""
        return {
            "window": self._sums.state_dict(),
            "losses": list(self._guard.spikes.losses),
            "steps": self.steps.state_dict(),
        }

    def load_state_dict(self, state: dict) -> None:
        """Restores the state of an interrupted run."""
        self._sums.load_state_dict(state["window"])
        # Checkpoints of earlier versions have no losses.
        self._guard.spikes = Spikes(state.get("losses", ()))
        self.steps.load_state_dict(state["steps"])

    def evaluate(self, batches: Iterable[dict]) -> dict[str, float]:
        """Means over all examples of the batches.

        Args:
            batches: whole batches; examples that fill up a batch have weight 0.

        Returns:
            `loss`, and the loss and accuracy of each objective.
        """
        sums = RunningSums(self.steps.sum_names)
        for batch in batches:
            sums.add(self.steps.evaluate(batch).numpy()[None])
        values = sums.means(self.objectives)
        del values["gradient_norm"]
        return values
