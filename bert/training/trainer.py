"""Trainer: a network in training, its log and its checkpoints.

restore -> training_loop.fit, which saves after every few steps -> restore_best
"""

import collections
import os
from collections.abc import Iterable

import keras
import numpy as np
from numpy.typing import NDArray

from bert.common import storage
from bert.common.errors import UserError
from bert.common.progress import log
from bert.training import collectives, finite_check, logs, workers
from bert.training.logs import TrainingLog
from bert.training.saver import GLOBAL_STEP, PREFIX, Restored, Saver
from bert.training.settings import Training
from bert.training.train_step import TrainStep


class Trainer:
    """A network in training, which its checkpoints hold.

    A checkpoint holds the variables, their moments and the step. Its JSON file
    holds the settings, the sums of the log and the best evaluation.

    Args:
        settings: Training. Intervals and limits. Without `do_train`, only the
            weights are restored.
        train_step: TrainStep. Network and optimizer.
        named: dict. Name in the checkpoint -> variable.
        saver: Saver. Writes and finds the checkpoints.
        best: Saver. Writes and finds the best weights.
        folder: str. Folder where this process writes the curves.
        description: dict. JSON values that describe the run.

    Attributes:
        settings, train_step, named, saver, best, description: the arguments.
        objective: Objective. Losses, learning rate and metric.
        log: TrainingLog. Curves of the run.
        losses: deque of float. Losses of the last good steps.
        weights_step: int. Training step of the current weights.
        evals_since_best: int. Number of evaluations since the best one.
        pending_eval: bool. Whether an interrupted evaluation has to be
            repeated.
    """

    def __init__(
        self,
        settings: Training,
        train_step: TrainStep,
        named: dict[str, keras.Variable],
        saver: Saver,
        best: Saver,
        folder: str,
        description: dict,
    ):
        self.settings, self.train_step, self.named = settings, train_step, named
        self.objective = train_step.objective
        self.saver, self.best, self.description = saver, best, description
        self.log = TrainingLog(
            folder,
            train_step,
            settings.iterations_per_loop,
            settings.steps_to_profile if workers.is_chief() else None,
        )
        self._variables = {**named, **train_step.optimizer.named_slots(named)}
        self.losses = collections.deque(maxlen=finite_check.WINDOW)
        self.weights_step = 0

        # The best validation metric; infinite before the first evaluation.
        self._best_value = np.inf
        self.evals_since_best, self.pending_eval = 0, False

    @property
    def step(self) -> int:
        """Number of steps taken."""
        return self.train_step.optimizer.step

    @property
    def checkpoint(self) -> str:
        """Prefix of the newest checkpoint."""
        return os.path.join(self.saver.folder, f"{PREFIX}-{self.step}")

    def weights(self) -> dict[str, NDArray]:
        """All current weights: original name -> array."""
        return {name: x.numpy() for name, x in self.named.items()}

    def restore(self) -> Restored | None:
        """Resumes the run in the folder, if there is one.

        Returns:
            Restored, the checkpoint; or None.

        Raises:
            UserError: the checkpoint belongs to another network.
        """
        if self.settings.do_train:
            self.saver.sweep()
        strategy = self.train_step.strategy
        collectives.barrier(strategy)  # until the chief has removed files
        restored = self.saver.restore_latest()
        if restored:
            fix = "pass another --output_dir, or the flags of this run"
            self.assign(restored.values, self.saver.folder, fix)
        fix = "put --output_dir on a file system that they share"
        collectives.check_settings(
            strategy, {"the step to resume": self.step}, fix
        )
        if restored and restored.state:  # best weights are saved without one
            self.load_state_dict(restored.state)
        return restored

    def assign(self, values: dict[str, NDArray], path: str, fix: str) -> None:
        """Assigns the weights, the moments and the step of a checkpoint.

        Args:
            values: dict. Name -> array of the checkpoint.
            path: str. Path of the checkpoint, for messages.
            fix: str. Advice to the user.

        Raises:
            UserError: the checkpoint lacks a variable, a moment or the step.
        """
        variables = self._variables if self.settings.do_train else self.named
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

    def drop_later_steps(self) -> None:
        """Drops an abandoned branch of the run.

        It consists of the checkpoints, best weights and curves of steps after
        the current one.
        """
        self.saver.remove_after(self.step)
        self.best.remove_after(self.step)
        # Wait until the chief has removed them.
        collectives.barrier(self.train_step.strategy)
        if not self.best.saved_steps():  # the search for the best starts again
            self._best_value, self.evals_since_best = np.inf, 0
        self.log.drop_after(self.step)

    def save(self) -> None:
        """Writes a checkpoint in a background thread."""
        self.saver.save_in_background(
            self.step, self._variables, self.description, self.state_dict()
        )

    def save_if_best(self, metrics: dict[str, float]) -> None:
        """Saves the weights if their metric is better than all before.

        Args:
            metrics: dict. Metric -> value of the current weights.
        """
        objective = self.objective
        name, best = objective.metric, self._best_value
        value, sign = metrics[name], objective.sign
        if not sign * value > (sign * best if np.isfinite(best) else -np.inf):
            self.evals_since_best += 1
            return
        self.saver.wait()
        storage.make_folder(self.best.folder)
        # The metric replaces a setting of the same name.
        described = {**metrics, **self.description, name: value}
        self.best.save(self.step, self.named, described)
        self._best_value, self.evals_since_best = value, 0
        log(f"best {name} so far: {value:.4f}, {self.best.folder}")

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

    def state_dict(self) -> dict:
        """JSON values for `load_state_dict`."""
        rate = self.objective.schedule(self.step)
        return {
            "trainer": {
                "learning_rate": float(rate),
                "window": self.log.state_dict(),
                "losses": list(self.losses),
                "steps": self.train_step.state_dict(),
            },
            "held_out": {
                "is_owed": self.pending_eval,
                "best": {
                    "value": self._best_value.hex(),
                    "waited": self.evals_since_best,
                },
            },
        }

    def load_state_dict(self, state: dict) -> None:
        """Restores the state of an interrupted run."""
        self.log.load_state_dict(state["trainer"]["window"])
        # Checkpoints of earlier versions have no losses.
        self.losses.extend(state["trainer"].get("losses", ()))
        self.train_step.load_state_dict(state["trainer"]["steps"])
        if held_out := state["held_out"]:  # earlier versions: None
            self.pending_eval = held_out["is_owed"]
            self._best_value = float.fromhex(held_out["best"]["value"])
            self.evals_since_best = held_out["best"]["waited"]
