"""Sessions of a run, from its checkpoint to its last step."""

from collections.abc import Callable, Iterable

import tensorflow as tf

from common.progress import say
from training import workers
from training.logs import TrainingLog
from training.loop import Schedule, Trainer
from training.preemption import Preemption
from training.saver import Restored, Saver
from training.state import TrainingState
from training.validation import Validation

# Makes the batches from the current step to the schedule's last step.
Part = tuple[Callable[[], tf.data.Dataset], Schedule]


class Session:
    """Resumes and trains a run; saves, evaluates and stops.

    Args:
        trainer: runs the steps.
        state: variables of the run and their saver.
        best: saves the best weights of the run.
        folder: the run's output_dir.
        settings: JSON values that describe the run.
    """

    def __init__(
        self,
        trainer: Trainer,
        state: TrainingState,
        best: Saver,
        folder: str,
        settings: dict,
    ):
        self._trainer, self._state, self._best = trainer, state, best
        self._folder, self._settings = folder, settings
        self._validation = None
        self._validation_state = None

    def resume(self, will_train: bool) -> Restored | None:
        """Resumes the run in the folder, if there is one.

        Args:
            will_train: whether to clean up the folder and check its space.

        Returns:
            the checkpoint, or None.
        """
        if will_train:
            self._state.prepare()
        strategy = self._trainer.steps.strategy
        workers.barrier(strategy)  # until the chief has cleaned up
        restored = self._state.restore()
        workers.check_step(strategy, self._state.step, self._folder)
        if restored and restored.state:
            self._trainer.load_state_dict(restored.state["trainer"])
            self._validation_state = restored.state["held_out"]
        return restored

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
        self._state.remove_later()
        self._best.remove_after(self._state.step)
        workers.barrier(strategy)  # until the chief has removed them
        self._validation = validation
        if validation and self._validation_state:
            validation.load_state_dict(self._validation_state)
        log = TrainingLog(self._folder, self._state.step)
        with Preemption(train_for, not workers.is_joined()) as preemption:

            def evaluate():
                if validation:
                    validation.add(
                        self._state.step, log, self._settings, preemption
                    )

            def should_stop():
                request = workers.all_reduce_max(strategy, preemption.request)
                preemption.adopt(request)
                is_over = validation is not None and validation.is_over
                return is_over or request > 0

            if validation and validation.is_owed:
                evaluate()
                self._save()
            for make_batches, schedule in parts:
                if self._state.step >= schedule.num_train_steps:
                    continue
                if should_stop():
                    break
                self._trainer.train(
                    make_batches(),
                    schedule,
                    log,
                    self._save,
                    evaluate,
                    should_stop,
                )
            last_step = parts[-1][1].num_train_steps
            should_stop()  # all workers are here and decide alike
            preemption.end(self._state.step, last_step)
        if validation and validation.is_over:
            say(
                f"finished: stopped early at step {self._state.step} of "
                f"{last_step}, without a better evaluation"
            )

    def _save(self) -> None:
        validation = self._validation.state_dict() if self._validation else None
        self._state.save(
            self._settings,
            {"trainer": self._trainer.state_dict(), "held_out": validation},
        )
