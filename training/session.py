"""Sessions of a run, from its checkpoint to its last step."""

from collections.abc import Callable, Iterable

import keras
import numpy as np
import tensorflow as tf

from common.errors import UserError
from common.progress import say
from training import workers
from training.logs import TrainingLog
from training.loop import Schedule, Trainer
from training.preemption import Preemption
from training.saver import GLOBAL_STEP, Restored, Saver
from training.validation import Validation

# Makes the batches from the current step to the schedule's last step.
Part = tuple[Callable[[], tf.data.Dataset], Schedule]


class Session:
    """Resumes and trains a run; saves, evaluates and stops.

    A checkpoint holds the variables, their moments and the step.

    Args:
        trainer: runs the steps.
        named: name in the checkpoint -> variable.
        saver: writes and finds the checkpoints.
        best: saves the best weights of the run.
        folder: the run's output_dir.
        settings: JSON values that describe the run.
    """

    def __init__(
        self,
        trainer: Trainer,
        named: dict[str, keras.Variable],
        saver: Saver,
        best: Saver,
        folder: str,
        settings: dict,
    ):
        self._trainer, self._saver, self._best = trainer, saver, best
        self._folder, self._settings = folder, settings
        self._optimizer, self._named = trainer.steps.optimizer, named
        self._variables = {**named, **self._optimizer.named_slots(named)}
        self._validation = self._validation_state = None

    @property
    def step(self) -> int:
        """Number of steps taken."""
        return self._optimizer.step

    def resume(self, will_train: bool) -> Restored | None:
        """Resumes the run in the folder, if there is one.

        Args:
            will_train: whether to clean up the folder, to check its space and
                to restore the moments, not only the weights.

        Returns:
            the checkpoint, or None.

        Raises:
            UserError: it is of another network.
        """
        self._saver.wait()
        if will_train:
            self._saver.sweep()
            self._saver.check_space(self._variables)
        strategy = self._trainer.steps.strategy
        workers.barrier(strategy)  # until the chief has cleaned up
        restored = self._saver.restore_latest()
        if restored:
            variables = self._variables if will_train else self._named
            fix = "pass another --output_dir, or the flags of this run"
            self._assign(variables, restored.values, self._saver.folder, fix)
        fix = "put --output_dir on a file system that they share"
        workers.check_settings(strategy, {"the step to resume": self.step}, fix)
        if restored and restored.state:  # the best weights have none
            self._trainer.load_state_dict(restored.state["trainer"])
            self._validation_state = restored.state["held_out"]
        return restored

    def resume_optimizer(
        self, values: dict[str, np.ndarray], path: str
    ) -> None:
        """Continues with the moments and the step of another run.

        Args:
            values: its checkpoint.
            path: of the checkpoint, for messages.

        Raises:
            UserError: the checkpoint lacks a variable, a moment or the step.
        """
        fix = "omit --resume_optimizer"
        if GLOBAL_STEP not in values:
            raise UserError(f"has no {GLOBAL_STEP}", path=path, fix=fix)
        self._assign(self._variables, values, path, fix)

    def train(
        self,
        parts: Iterable[Part],
        validation: Validation | None = None,
        train_for: float | None = None,
    ) -> None:
        """Trains to the last step, or until a stop is requested.

        Checkpoints, best weights and curves of later steps than the current
        one belong to an abandoned branch of the run and are removed.

        Args:
            parts: batches and schedules, trained one after the other.
            validation: evaluates during training.
            train_for: time limit in seconds.

        Raises:
            SystemExit: the run was interrupted, and saved.
        """
        parts = list(parts)
        strategy = self._trainer.steps.strategy
        self._saver.remove_after(self.step)
        self._best.remove_after(self.step)
        workers.barrier(strategy)  # until the chief has removed them
        self._validation = validation
        if validation and self._validation_state:
            validation.load_state_dict(self._validation_state)
        log = TrainingLog(self._folder, self.step)
        with (
            self._saver,
            self._trainer.profile,
            Preemption(train_for, not workers.is_joined()) as preemption,
        ):

            def evaluate():
                if validation:
                    validation.add(self.step, log, self._settings, preemption)

            def should_stop():
                self._saver.check()
                requests = workers.gather(strategy, preemption.request)
                request = int(requests.max())
                preemption.adopt(request)
                is_over = validation is not None and validation.is_over
                return is_over or request > 0

            if validation and validation.is_owed:
                evaluate()
                self.save()
            for make_batches, schedule in parts:
                if self.step >= schedule.num_train_steps:
                    continue
                if should_stop():
                    break
                self._trainer.train(
                    make_batches(),
                    schedule,
                    log,
                    self.save,
                    evaluate,
                    should_stop,
                )
            last_step = parts[-1][1].num_train_steps
            should_stop()  # all workers are here and decide alike
            self._saver.wait()
            preemption.end(self.step, last_step)
        if validation and validation.is_over and self.step < last_step:
            say(
                f"finished: stopped early at step {self.step} of "
                f"{last_step}, without a better evaluation"
            )

    def save(self) -> None:
        """Writes a checkpoint in a thread."""
        state, validation = self._validation_state, self._validation
        state = validation.state_dict() if validation else state
        self._saver.save_in_background(
            self.step,
            self._variables,
            self._settings,
            {"trainer": self._trainer.state_dict(), "held_out": state},
        )

    def _assign(
        self, variables: dict, values: dict, path: str, fix: str
    ) -> None:
        """Assigns the values of a checkpoint: all of them, or an error."""
        step = int(values[GLOBAL_STEP])
        for name, variable in variables.items():
            value = values.get(name)
            if value is None or value.shape != tuple(variable.shape):
                found = "no" if value is None else f"{list(value.shape)}"
                raise UserError(
                    f"checkpoint {step} has {found} {name}",
                    path=path,
                    expected=f"{list(variable.shape)}, from the config",
                    fix=fix,
                )
        for name, variable in variables.items():
            variable.assign(values[name])
        self._optimizer.iterations.assign(step)
        say(f"resuming from step {step} in {path}")
