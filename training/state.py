"""State of a run, as its checkpoints hold it: variables, moments, step."""

import os

import keras
import tensorflow as tf

from common.errors import UserError
from common.progress import say
from training.optimization import AdamWeightDecay
from training.saver import Restored, Saver


class TrainingState:
    """Variables, moments and step of a run, with their saver.

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
        """Number of steps taken."""
        return self._optimizer.step

    def save(self, settings: dict, extra: dict | None = None) -> None:
        """Writes a checkpoint and logs its path.

        Args:
            settings: JSON values that describe the run.
            extra: further JSON values for resuming; floats as hex.
        """
        path = self._saver.save(self.step, self._variables, settings, extra)
        if path:
            say(f"saved {path}")

    def prepare(self) -> None:
        """Cleans up after a killed run and checks the free disk space."""
        self._saver.sweep()
        self._saver.check_space(self._variables)

    def remove_later(self) -> None:
        """Removes checkpoints of later steps than the current one."""
        self._saver.remove_after(self.step)

    def restore(self) -> Restored | None:
        """Restores the newest checkpoint, if there is one.

        Returns:
            the checkpoint, or None.

        Raises:
            UserError: it is of another network.
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
                    expected=f"{list(variable.shape)}, from the config",
                    fix="pass another --output_dir",
                )
        for name, variable in self._variables.items():
            variable.assign(restored.values[name])
        self._optimizer.iterations.assign(restored.step)
        say(f"resuming from step {restored.step} in {self._saver.folder}")
        return restored


def environment(strategy: tf.distribute.Strategy) -> dict[str, str | int]:
    """Versions and devices that decide the last bits of a run.

    Measured: on CPUs the version of TensorFlow, the number of threads and
    oneDNN change them; the number of devices changes them everywhere.
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
