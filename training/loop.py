"""The training loop: steps, reports, evaluations, checkpoints."""

import dataclasses
import functools
from collections.abc import Callable, Iterable

import tensorflow as tf

from training import logs, workers
from training.guard import Guard
from training.steps import TOKENS, Steps
from training.throughput import Throughput, Window


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
        skip_steps: (first, last) of steps that draw a batch and do not learn
            from it.
        records_of: step -> where the rows of its batch come from; logged if
            something is wrong with them.
    """

    num_train_steps: int
    log_steps: int
    save_steps: int
    eval_steps: int
    iterations_per_loop: int
    batch_size: int
    learning_rate: Callable[[int], tf.Tensor]
    skip_steps: tuple[tuple[int, int], ...] = ()
    records_of: Callable[[int], str] = "batch {}".format

    def next_stop(self, step: int) -> int:
        """The first step after `step` at which something happens."""
        stops = [self.num_train_steps]
        for every in (self.log_steps, self.save_steps, self.eval_steps):
            if every:
                stops.append((step // every + 1) * every)
        return min(stops)

    def steps_to_skip(self, step: int) -> int:
        """Steps after `step` up to the next that is skipped."""
        return min(
            (
                max(0, first - step - 1)
                for first, last in self.skip_steps
                if last > step
            ),
            default=self.num_train_steps,
        )

    def happens(self, every: int, step: int) -> bool:
        """Whether something that comes every so many steps comes now."""
        return bool(every) and step % every == 0


def _naming_the_step(method: Callable) -> Callable:
    """Adds to what TensorFlow reports at which step it came."""

    @functools.wraps(method)
    def run(self, *arguments, **named):
        try:
            return method(self, *arguments, **named)
        except tf.errors.OpError as error:
            error.add_note(f"at step {self.steps.optimizer.step}")
            raise

    return run


class Trainer:
    """Runs the steps of a task, and what happens between them.

    Args:
        steps: of the task.
    """

    def __init__(self, steps: Steps):
        self.steps = steps
        self._guard = Guard(steps)
        self.objectives = steps.task.objectives
        self._window = Window(steps.sum_names)  # since the last report

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

        An evaluation comes before the checkpoint of its step, so that what it
        found is in it.

        Args:
            batches: whole batches, from the present step on.
            schedule: when to report, save and evaluate.
            log: takes the reports.
            save: writes a checkpoint of the present state.
            evaluate: evaluates the present state.
            should_stop: asked every few seconds whether to save and return.
        """
        iterator = iter(batches)
        throughput = Throughput(
            schedule.batch_size, schedule.iterations_per_loop
        )
        step = self.steps.optimizer.step
        while step < schedule.num_train_steps:
            stop = schedule.next_stop(step)
            room = min(stop - step, schedule.steps_to_skip(step))
            if room:
                count = workers.all_reduce_min(
                    self.steps.strategy, throughput.steps_a_call(room)
                )
                rows = self.steps.train(iterator, tf.constant(count)).numpy()
                throughput.called(count)
                rows = self._guard.check(step, rows, schedule.records_of)
                self._window.add(rows)
            else:
                count = 1
                self.steps.skip(iterator)
            step += count
            report = step == stop
            if self._window.steps and (
                report or throughput.is_time_for_a_line()
            ):
                values = self._report(step, schedule, throughput)
                logs.log_training(
                    step,
                    schedule.num_train_steps,
                    values,
                    self.objectives,
                    throughput.seconds_a_step
                    * (schedule.num_train_steps - step),
                )
                throughput.logged()
                if report:
                    log.write(step, "train", values)
                    self._window = Window(self.steps.sum_names)
            is_last = step == schedule.num_train_steps
            if is_last or schedule.happens(schedule.eval_steps, step):
                evaluate()
            stop = should_stop()
            if is_last or stop or schedule.happens(schedule.save_steps, step):
                save()
            if stop:
                return
            throughput.resume()

    def _report(
        self, step: int, schedule: Schedule, throughput: Throughput
    ) -> dict:
        """Means since the last report, and how fast it goes."""
        values = self._window.means(self.objectives)
        values["learning_rate"] = float(schedule.learning_rate(step - 1))
        rate = throughput.examples_per_second
        values["examples_per_second"] = rate
        tokens = self._window.mean(TOKENS)
        if tokens is not None:
            values["tokens_per_second"] = rate * tokens / schedule.batch_size
        return values

    def state_dict(self) -> dict:
        """JSON values for `load_state_dict`."""
        return {
            "window": self._window.state_dict(),
            "steps": self.steps.state_dict(),
        }

    def load_state_dict(self, state: dict) -> None:
        """Goes on where a run was interrupted."""
        self._window.load_state_dict(state["window"])
        self.steps.load_state_dict(state["steps"])

    def evaluate(self, batches: Iterable[dict]) -> dict[str, float]:
        """Means over all rows of the batches, each objective apart.

        Args:
            batches: whole batches; rows that only fill a batch have weight 0.

        Returns:
            `loss` and, for each objective, its loss and accuracy.
        """
        window = Window(self.steps.sum_names)
        for batch in batches:
            window.add(self.steps.evaluate(batch).numpy()[None])
        values = window.means(self.objectives)
        del values["gradient_norm"]
        return values
