"""Trainer: the training loop of a run."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import config  # has no public name

from bert.common.progress import duration, log
from bert.training import (
    collectives,
    finite_check,
    logs,
    memory_estimate,
    workers,
)
from bert.training.objective import Phase
from bert.training.preemption import Abandoned, Preemption
from bert.training.run_state import RunState

Validate = Callable[[], dict[str, float]]


class Trainer:
    """Trains a network.

    Args:
        state: RunState. Network, variables, settings and checkpoints.
    """

    def __init__(self, state: RunState):
        self.state, self.settings = state, state.settings
        self.train_step = state.train_step
        self.objective = state.train_step.objective

    @property
    def step(self) -> int:
        """Number of steps taken."""
        return self.train_step.optimizer.step

    def fit(
        self, phases: list[Phase], validate: Validate | None = None
    ) -> None:
        """Trains to the last step, or until a stop is requested.

        A validation runs before the checkpoint of its step, which stores the
        result. The best weights are kept.

        Args:
            phases: list of Phase. Trained in this order.
            validate: function or None. () -> metrics of the current weights,
                called every --eval_steps. Default: None.

        Raises:
            SystemExit: the run was interrupted and saved; or --dry_run was
                given and the plan has been printed.
        """
        settings, last_step = self.settings, phases[-1].end_step
        if settings.dry_run:
            memory_estimate.report(self.train_step, phases)
            raise SystemExit
        self.state.drop_later_steps()

        limit = settings.seconds
        if limit is not None and not settings.max_time:
            log(f"SLURM: the job leaves {duration(limit)} of training")
        with (
            self.state.saver,
            self.state.log,
            Preemption(limit, workers.index_and_count()[1] == 1) as preemption,
            finite_check.annotate_errors(self.train_step),
        ):
            # Repeat the evaluation that a signal interrupted.
            if validate and self.state.pending_eval:
                self._validate(validate, preemption)
                self.state.save()

            is_over = self._is_over(preemption)
            eval_steps = settings.eval_steps if validate else 0
            stops = () if is_over else self._stops(phases, eval_steps)
            for phase, batches, stop in stops:
                self._take_steps(batches, phase, stop)

                # Evaluate and save.
                is_last = self.step == phase.end_step
                if validate and _is_due(eval_steps, self.step, is_last):
                    self._validate(validate, preemption)
                is_over = self._is_over(preemption)
                every = settings.save_checkpoints_steps
                if is_over or _is_due(every, self.step, is_last):
                    self.state.save()
                self.state.log.resume()
                if is_over:
                    break

            # All workers get here and make the same decision.
            self._is_over(preemption)
            self.state.saver.wait()
            preemption.end(self.step, last_step)
        if self.step < last_step:
            log(
                f"finished: stopped early at step {self.step} of "
                f"{last_step}, without a better evaluation"
            )

    def _stops(
        self, phases: list[Phase], eval_steps: int
    ) -> Iterator[tuple[Phase, Iterator, int]]:
        """Yields each stop of the run, with its phase and the next batches.

        A stop is a step after which the run logs, evaluates, saves or ends.
        """
        settings, last_step = self.settings, phases[-1].end_step
        log_steps = settings.log_steps or min(100, max(1, last_step // 50))
        intervals = (log_steps, settings.save_checkpoints_steps, eval_steps)
        for phase in phases:
            if self.step >= phase.end_step:
                continue
            batches = _iterate(phase.batches(self.step))
            self.state.log.begin_phase()
            log("compiling the step ...")
            while (step := self.step) < phase.end_step:
                stops = [(step // x + 1) * x for x in intervals if x]
                yield phase, batches, min(stops + [phase.end_step])

    def _take_steps(self, batches: Iterator, phase: Phase, stop: int) -> None:
        """Takes and logs as many steps as fit before a stop, in one call."""
        first, curves = self.step, self.state.log
        # The slowest worker decides.
        counts = collectives.gather(
            self.train_step.strategy,
            curves.steps_per_call(first, stop - first),
        )
        count = int(counts.min())
        with tf.profiler.experimental.Trace("train", step_num=first + 1, _r=1):
            sums = self.train_step.train(batches, tf.constant(count)).numpy()
        curves.count_call(count)

        losses, records_of = self.state.losses, phase.records_of
        curves.add(
            finite_check.check(self.train_step, losses, first, sums, records_of)
        )
        rate = float(self.objective.learning_rate(self.step - 1))
        curves.report(self.step, phase, rate, self.step == stop)

    def _is_over(self, preemption: Preemption) -> bool:
        """Whether the run has to save and end, the same on all workers."""
        self.state.saver.check()
        requests = collectives.gather(
            self.train_step.strategy, preemption.request
        )
        request = int(requests.max())
        preemption.adopt(request)
        patience = self.settings.early_stopping_patience
        return request > 0 or 0 < patience <= self.state.evals_since_best

    def _validate(self, validate: Validate, preemption: Preemption) -> None:
        """Evaluates; saves the weights if they are better than all before.

        An evaluation that a signal interrupts is repeated when the run
        resumes.
        """
        self.state.pending_eval = True
        try:
            with preemption.abandoning():
                metrics = validate()
        except Abandoned:
            return
        self.state.pending_eval = False
        logs.log_evaluation(self.step, metrics, self.objective.names)
        self.state.log.write(self.step, "eval", metrics)
        self.state.save_if_best(metrics)

    def evaluate(self, batches: Iterable[dict]) -> dict[str, float]:
        """Losses and accuracies of the current weights.

        Args:
            batches: iterable of dict. Whole batches; padding examples have
                weight 0.

        Returns:
            `loss`, and the loss and accuracy of each objective, as means over
            all examples of the batches.
        """
        sums = np.zeros(len(self.train_step.sum_names) + 2)
        for batch in batches:
            sums += self.train_step.evaluate(batch).numpy()
        values = logs.means(self.train_step, sums, 1)
        del values["gradient_norm"]
        return values


def _is_due(every: int, step: int, is_last: bool) -> bool:
    """Whether an action of this interval is due; always at the last step."""
    return is_last or (every > 0 and step % every == 0)


def _iterate(batches: tf.data.Dataset) -> Iterator:
    """Iterates over batches, which are a function of the step in any case.

    Under op determinism TensorFlow would make them without threads, and only
    when they are needed.
    """
    is_deterministic = config.is_op_determinism_enabled()
    config.disable_op_determinism()
    try:
        return iter(batches)
    finally:
        if is_deterministic:
            tf.config.experimental.enable_op_determinism()
