"""Trainer: network, training loop and checkpoints of a run."""

import collections
import os
from collections.abc import Callable, Iterable

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import config  # has no public name

from bert.common import storage
from bert.common.errors import UserError
from bert.common.progress import duration, log
from bert.training import (
    collectives,
    finite_check,
    logs,
    memory_estimate,
    workers,
)
from bert.training.objective import Objective, Phase
from bert.training.preemption import Abandoned, Preemption
from bert.training.saver import GLOBAL_STEP, PREFIX, Restored, Saver
from bert.training.settings import Training
from bert.training.train_step import TrainStep

Validate = Callable[[], dict[str, float]]


class Trainer:
    """Trains a network, and keeps its checkpoints.

    A checkpoint holds the variables, their moments and the step.

    Args:
        objective: Objective. Network, losses and learning rate.
        settings: Training. Intervals, limits and batch sizes.
        train_step: TrainStep. Computes training and evaluation steps.
        named: dict. Name in the checkpoint -> variable.
        saver: Saver. Writes and finds the checkpoints.
        best: Saver. Writes and finds the best weights.
        folder: str. Folder where this process writes the curves.
        description: dict. JSON values that describe the run.
        lengths: tuple of int. Sequence lengths of the batches of examples,
            ascending. Default: ().

    Attributes:
        weights_step: int. Training step of the current weights.
    """

    def __init__(
        self,
        objective: Objective,
        settings: Training,
        train_step: TrainStep,
        named: dict[str, keras.Variable],
        saver: Saver,
        best: Saver,
        folder: str,
        description: dict,
        lengths: tuple[int, ...] = (),
    ):
        self.objective, self.settings = objective, settings
        self.train_step = train_step
        self.named, self.folder, self.lengths = named, folder, lengths
        self.description = description
        self._variables = {**named, **train_step.optimizer.named_slots(named)}
        self.weights_step = 0

        self._saver, self.best = saver, best
        self._log = logs.TrainingLog(
            folder,
            train_step,
            settings.iterations_per_loop,
            settings.steps_to_profile if workers.is_chief() else None,
        )
        self._losses = collections.deque(maxlen=finite_check.WINDOW)

        # The best validation metric, the number of evaluations since then,
        # and whether an interrupted evaluation has to be repeated.
        self._best_value: float | None = None
        self._evals_since_best, self._pending_eval = 0, False

    @property
    def step(self) -> int:
        """Number of steps taken."""
        return self.train_step.optimizer.step

    @property
    def checkpoint(self) -> str:
        """Prefix of the newest checkpoint."""
        return os.path.join(self._saver.folder, f"{PREFIX}-{self.step}")

    def weights(self) -> dict[str, np.ndarray]:
        """All current weights: original name -> array."""
        return {name: x.numpy() for name, x in self.named.items()}

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
        validates = validate is not None
        if settings.dry_run:
            memory_estimate.report(self, phases)
            raise SystemExit
        self._drop_later_steps()

        limit = settings.seconds
        if limit is not None and not settings.max_time:
            log(f"SLURM: the job leaves {duration(limit)} of training")
        with (
            self._saver,
            self._log,
            Preemption(limit, workers.index_and_count()[1] == 1) as preemption,
            finite_check.annotate_errors(self.train_step),
        ):
            # Repeat the evaluation that a signal interrupted.
            if validates and self._pending_eval:
                self._validate(validate, preemption)
                self.save()

            is_over = self._is_over(preemption)
            eval_steps = settings.eval_steps if validates else 0
            for phase in phases:
                if is_over or self.step >= phase.end_step:
                    continue
                iterator = _iterate(phase.batches(self))
                self._log.begin_phase()
                log("compiling the step ...")

                while not is_over and self.step < phase.end_step:
                    # As many steps as fit before the next stop, in one call.
                    first = self.step
                    stop = self._next_stop(phase, last_step, eval_steps)
                    count = self._log.steps_per_call(first, stop - first)
                    # The slowest worker decides.
                    counts = collectives.gather(self.train_step.strategy, count)
                    count = int(counts.min())
                    with tf.profiler.experimental.Trace(
                        "train", step_num=first + 1, _r=1
                    ):
                        sums = self.train_step.train(
                            iterator, tf.constant(count)
                        )
                        sums = sums.numpy()
                    self._log.count_call(count)

                    # Log.
                    self._log.add(
                        finite_check.check(
                            self.train_step,
                            self._losses,
                            first,
                            sums,
                            phase.records_of,
                        )
                    )
                    is_last = self.step == phase.end_step
                    is_stop = is_last or self.step == stop
                    rate = float(self.objective.learning_rate(self.step - 1))
                    self._log.report(self.step, phase, rate, is_stop)

                    # Evaluate and save.
                    if validates and _is_due(eval_steps, self.step, is_last):
                        self._validate(validate, preemption)
                    is_over = self._is_over(preemption)
                    every = settings.save_checkpoints_steps
                    if is_over or _is_due(every, self.step, is_last):
                        self.save()
                    self._log.resume()

            # All workers get here and make the same decision.
            self._is_over(preemption)
            self._saver.wait()
            preemption.end(self.step, last_step)
        if self.step < last_step:
            log(
                f"finished: stopped early at step {self.step} of "
                f"{last_step}, without a better evaluation"
            )

    def _next_stop(self, phase: Phase, last_step: int, eval_steps: int) -> int:
        """The next step after which the run logs, evaluates, saves or ends."""
        settings = self.settings
        log_steps = settings.log_steps or min(100, max(1, last_step // 50))
        stops = [phase.end_step]
        for every in (log_steps, settings.save_checkpoints_steps, eval_steps):
            if every:
                stops.append((self.step // every + 1) * every)
        return min(stops)

    def _drop_later_steps(self) -> None:
        """Drops an abandoned branch of the run.

        It consists of the checkpoints, best weights and curves of steps after
        the current one.
        """
        self._saver.remove_after(self.step)
        self.best.remove_after(self.step)
        collectives.barrier(
            self.train_step.strategy
        )  # until the chief removed them
        if not self.best.steps():  # the search for the best starts again
            self._best_value, self._evals_since_best = None, 0
        self._log.drop_after(self.step)

    def _is_over(self, preemption: Preemption) -> bool:
        """Whether the run has to save and end, the same on all workers."""
        self._saver.check()
        requests = collectives.gather(
            self.train_step.strategy, preemption.request
        )
        request = int(requests.max())
        preemption.adopt(request)
        patience = self.settings.early_stopping_patience
        return request > 0 or 0 < patience <= self._evals_since_best

    def _validate(self, validate: Validate, preemption: Preemption) -> None:
        """Evaluates; saves the weights if they are better than all before.

        An evaluation that a signal interrupts is repeated when the run
        resumes.
        """
        self._pending_eval = True
        try:
            with preemption.abandoning():
                metrics = validate()
        except Abandoned:
            return
        self._pending_eval = False
        logs.log_evaluation(self.step, metrics, self.objective.losses)
        self._log.write(self.step, "eval", metrics)

        value, best = metrics[self.objective.metric], self._best_value
        sign = -1 if self.objective.lower_is_better else 1
        if not sign * value > (-np.inf if best is None else sign * best):
            self._evals_since_best += 1
            return
        self._saver.wait()
        storage.make_folder(self.best.folder)
        # The metric replaces a setting of the same name.
        described = {
            **metrics,
            **self.description,
            self.objective.metric: value,
        }
        self.best.save(self.step, self.named, described)
        self._best_value, self._evals_since_best = value, 0
        name, folder = self.objective.metric, self.best.folder
        log(f"best {name} so far: {value:.4f}, {folder}")

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

    def restore(self) -> Restored | None:
        """Resumes the run in the folder, if there is one.

        Without --do_train, only the weights are restored.

        Returns:
            Restored, the checkpoint; or None.

        Raises:
            UserError: the checkpoint belongs to another network.
        """
        trains = self.settings.do_train
        self._saver.wait()
        if trains:
            self._saver.sweep()
        strategy = self.train_step.strategy
        collectives.barrier(strategy)  # until the chief has removed files
        restored = self._saver.restore_latest()
        if restored:
            variables = self._variables if trains else self.named
            fix = "pass another --output_dir, or the flags of this run"
            self.assign(restored.values, self._saver.folder, fix, variables)
        fix = "put --output_dir on a file system that they share"
        collectives.check_settings(
            strategy, {"the step to resume": self.step}, fix
        )
        if restored and restored.state:  # best weights are saved without one
            self._load_state_dict(restored.state)
        return restored

    def assign(
        self,
        values: dict[str, np.ndarray],
        path: str,
        fix: str,
        variables: dict[str, keras.Variable] | None = None,
    ) -> None:
        """Assigns the weights, the moments and the step of a checkpoint.

        Args:
            values: dict. Name -> array of the checkpoint.
            path: str. Path of the checkpoint, for messages.
            fix: str. Advice to the user.
            variables: dict or None. Name -> variable to assign. Default: None,
                all weights and moments.

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
        self.train_step.optimizer.iterations.assign(step)
        log(f"resuming from step {step} in {path}")

    def restore_best(self) -> None:
        """Restores the best weights of the run, if there are any."""
        settings = self.settings
        self.weights_step = self.step
        # At step 0 they would replace the weights of --init_checkpoint.
        if self.step and (settings.eval_steps or not settings.do_train):
            best = self.best.restore_latest()
            if best:
                for name, variable in self.named.items():
                    variable.assign(best.values[name])
                log(f"using the best checkpoint, from step {best.step}")
                self.weights_step = best.step

    def save(self) -> None:
        """Writes a checkpoint in a background thread."""
        self._saver.save_in_background(
            self.step, self._variables, self.description, self._state_dict()
        )

    def _state_dict(self) -> dict:
        """JSON values for `_load_state_dict`."""
        value = np.inf if self._best_value is None else self._best_value
        return {
            "trainer": {
                "learning_rate": float(self.objective.learning_rate(self.step)),
                "window": self._log.state_dict(),
                "losses": list(self._losses),
                "steps": self.train_step.state_dict(),
            },
            "held_out": {
                "is_owed": self._pending_eval,
                "best": {
                    "value": value.hex(),
                    "waited": self._evals_since_best,
                },
            },
        }

    def _load_state_dict(self, state: dict) -> None:
        """Restores the state of an interrupted run."""
        self._log.load_state_dict(state["trainer"]["window"])
        # Checkpoints of earlier versions have no losses.
        self._losses.extend(state["trainer"].get("losses", ()))
        self.train_step.load_state_dict(state["trainer"]["steps"])
        if held_out := state["held_out"]:  # earlier versions: None
            self._pending_eval = held_out["is_owed"]
            value = float.fromhex(held_out["best"]["value"])
            self._best_value = value if np.isfinite(value) else None
            self._evals_since_best = held_out["best"]["waited"]


def _is_due(every: int, step: int, is_last: bool) -> bool:
    """Whether an action of this interval is due; always at the last step."""
    return is_last or (every > 0 and step % every == 0)


def _iterate(batches: tf.data.Dataset):
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
