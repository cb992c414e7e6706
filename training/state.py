"""What a checkpoint of a run holds: variables, moments and step."""

import keras

from errors import UserError
from progress import say
from training.optimization import AdamWeightDecay
from training.saver import Saver


class TrainingState:
    """The variables of a run, by name, and where they are kept.

    Args:
        named: name in the checkpoint -> trainable variable.
        optimizer: built with these variables.
        saver: writes and finds the checkpoints.
    """

    def __init__(
        self,
        named: dict[str, keras.Variable],
        optimizer: AdamWeightDecay,
        saver: Saver,
    ):
        self._variables = {**named, **optimizer.named_slots(named)}
        self._optimizer = optimizer
        self._saver = saver

    @property
    def step(self) -> int:
        """Steps that were taken."""
        return self._optimizer.step

    def save(self, settings: dict) -> None:
        """Writes a checkpoint and says so.

        Args:
            settings: JSON values that describe the run.
        """
        say(f"saved {self._saver.save(self.step, self._variables, settings)}")

    def restore(self) -> bool:
        """Takes up the newest checkpoint, if there is one.

        Raises:
            UserError: it belongs to another network.
        """
        restored = self._saver.restore_latest()
        if restored is None:
            return False
        for name, variable in self._variables.items():
            value = restored.values.get(name)
            if value is None or value.shape != tuple(variable.shape):
                found = "no" if value is None else f"{list(value.shape)}"
                raise UserError(
                    f"checkpoint {restored.step} has {found} {name}",
                    path=self._saver.folder,
                    expected=f"{list(variable.shape)}, by the config",
                    fix="pass another --output_dir",
                )
        for name, variable in self._variables.items():
            variable.assign(restored.values[name])
        self._optimizer.iterations.assign(restored.step)
        say(f"going on from step {restored.step} in {self._saver.folder}")
        return True
