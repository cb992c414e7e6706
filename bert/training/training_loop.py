"""The training loop of a run."""

from collections.abc import Callable, Iterator

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
from bert.training.trainer import Trainer

Validate = Callable[[], dict[str, float]]


def fit(
    trainer: Trainer, phases: list[Phase], validate: Validate | None = None
) -> None:
    """Trains to the last step, or until a stop is requested.

    A validation runs before the checkpoint of its step, which stores the
    result. The best weights are kept.

    Args:
        trainer: Trainer. The network, with the weights to start from.
        phases: list of Phase. Trained in this order.
        validate: function or None. () -> metrics of the current weights,
            called every --eval_steps. Default: None.

    Raises:
        SystemExit: the run was interrupted and saved; or --dry_run was
            given and the plan has been printed.
    """
    settings, last_step = trainer.settings, phases[-1].end_step
    if settings.dry_run:
        memory_estimate.report(trainer.train_step, phases)
        raise SystemExit
    trainer.drop_later_steps()

    limit = settings.seconds
    if limit is not None and not settings.max_time:
        log(f"SLURM: the job leaves {duration(limit)} of training")
    with (
        trainer.saver,
        trainer.log,
        Preemption(limit, workers.index_and_count()[1] == 1) as preemption,
        finite_check.annotate_errors(trainer.train_step),
    ):
        # Repeat the evaluation that a signal interrupted.
        if validate and trainer.pending_eval:
            _validate(trainer, validate, preemption)
            trainer.save()

        is_over = _is_over(trainer, preemption)
        eval_steps = settings.eval_steps if validate else 0
        stops = () if is_over else _stops(trainer, phases, eval_steps)
        for phase, batches, stop in stops:
            _take_steps(trainer, batches, phase, stop)

            # Evaluate and save.
            is_last = trainer.step == phase.end_step
            if validate and _is_due(eval_steps, trainer.step, is_last):
                _validate(trainer, validate, preemption)
            is_over = _is_over(trainer, preemption)
            every = settings.save_checkpoints_steps
            if is_over or _is_due(every, trainer.step, is_last):
                trainer.save()
            trainer.log.resume()
            if is_over:
                break

        # All workers get here and make the same decision.
        _is_over(trainer, preemption)
        trainer.saver.wait()
        preemption.end(trainer.step, last_step)
    if trainer.step < last_step:
        log(
            f"finished: stopped early at step {trainer.step} of "
            f"{last_step}, without a better evaluation"
        )


def _stops(
    trainer: Trainer, phases: list[Phase], eval_steps: int
) -> Iterator[tuple[Phase, Iterator, int]]:
    """Yields each stop of the run, with its phase and the next batches.

    A stop is a step after which the run logs, evaluates, saves or ends.
    """
    settings, last_step = trainer.settings, phases[-1].end_step
    log_steps = settings.log_steps or min(100, max(1, last_step // 50))
    intervals = (log_steps, settings.save_checkpoints_steps, eval_steps)
    for phase in phases:
        if trainer.step >= phase.end_step:
            continue
        batches = _iterate(phase.batches(trainer.step))
        trainer.log.begin_phase()
        log("compiling the step ...")
        while (step := trainer.step) < phase.end_step:
            stops = [(step // x + 1) * x for x in intervals if x]
            yield phase, batches, min(stops + [phase.end_step])


def _take_steps(
    trainer: Trainer, batches: Iterator, phase: Phase, stop: int
) -> None:
    """Takes and logs as many steps as fit before a stop, in one call."""
    first, curves = trainer.step, trainer.log
    # The slowest worker decides.
    counts = collectives.gather(
        trainer.train_step.strategy,
        curves.steps_per_call(first, stop - first),
    )
    count = int(counts.min())
    with tf.profiler.experimental.Trace("train", step_num=first + 1, _r=1):
        sums = trainer.train_step.train(batches, tf.constant(count)).numpy()
    curves.count_call(count)

    losses, records_of = trainer.losses, phase.records_of
    curves.add(
        finite_check.check(trainer.train_step, losses, first, sums, records_of)
    )
    rate = float(trainer.objective.schedule(trainer.step - 1))
    curves.report(trainer.step, phase, rate, trainer.step == stop)


def _is_over(trainer: Trainer, preemption: Preemption) -> bool:
    """Whether the run has to save and end, the same on all workers."""
    trainer.saver.check()
    requests = collectives.gather(
        trainer.train_step.strategy, preemption.request
    )
    request = int(requests.max())
    preemption.adopt(request)
    patience = trainer.settings.early_stopping_patience
    return request > 0 or 0 < patience <= trainer.evals_since_best


def _validate(
    trainer: Trainer, validate: Validate, preemption: Preemption
) -> None:
    """Evaluates; saves the weights if they are better than all before.

    An evaluation that a signal interrupts is repeated when the run
    resumes.
    """
    trainer.pending_eval = True
    try:
        with preemption.abandoning():
            metrics = validate()
    except Abandoned:
        return
    trainer.pending_eval = False
    logs.log_evaluation(trainer.step, metrics, trainer.objective.names)
    trainer.log.write(trainer.step, "eval", metrics)
    trainer.save_if_best(metrics)


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
