"""What a checkpoint of a run holds: variables, moments and step."""

import os

import keras
import tensorflow as tf

from common.errors import UserError
from common.progress import say
from training.optimization import AdamWeightDecay
from training.saver import Restored, Saver


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

    def save(self, settings: dict, extra: dict | None = None) -> None:
        """Writes a checkpoint and says so.

        Args:
            settings: JSON values that describe the run.
            extra: JSON values that the run needs to go on; floats as hex.
        """
        path = self._saver.save(self.step, self._variables, settings, extra)
        if path:
            say(f"saved {path}")

    def prepare(self) -> None:
        """Tidies up after a killed run; rejects a disk that is too small."""
        self._saver.sweep()
        self._saver.check_space(self._variables)

    def forget_later(self) -> None:
        """Removes checkpoints after the present step: the run went back."""
        self._saver.forget_after(self.step)

    def restore(self) -> Restored | None:
        """Takes up the newest checkpoint, if there is one.

        Returns:
            what was read.

        Raises:
            UserError: it belongs to another network.
        """
        restored = self._saver.restore_latest()
        if restored is None:
            return None
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
        return restored


def environment(strategy: tf.distribute.Strategy) -> dict[str, str | int]:
    """What decides the last bits of a run besides its settings.

    Measured: on CPUs the version of TensorFlow, the number of threads and
    oneDNN change them; the number of devices changes them anywhere.
    """
    kinds = {
        tf.DeviceSpec.from_string(device).device_type
        for device in strategy.extended.worker_devices
    }
    found = {
        "tensorflow": tf.__version__,
        "device": ", ".join(sorted(kinds)),
        "replicas": strategy.num_replicas_in_sync,
    }
    if kinds == {"CPU"}:
        config = tf.config.threading
        cores = len(os.sched_getaffinity(0))
        found["threads"] = config.get_intra_op_parallelism_threads() or cores
        found["onednn"] = os.environ.get("TF_ENABLE_ONEDNN_OPTS", "1")
    for device in tf.config.list_physical_devices("GPU")[:1]:
        details = tf.config.experimental.get_device_details(device)
        found["device"] = details.get("device_name", "GPU")
    return found
