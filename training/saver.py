"""Checkpoints on disk: by name, whole or not at all, the newest few.

    output_dir/
        model.ckpt-1000.data-00000-of-00001
        model.ckpt-1000.index
        model.ckpt-1000.json      sizes, hashes, settings; written last
        checkpoint                names the newest, for TensorFlow's tools

The files are TensorFlow's own name-based format, which
`tf.train.load_checkpoint` and the original release read.
"""

import dataclasses
import json
import os
import re
import shutil

import numpy as np
import tensorflow as tf

import tensor_file
from durable import sync_and_hash, write_whole
from errors import UserError
from progress import say

PREFIX = "model.ckpt"
GLOBAL_STEP = "global_step"
_SCRATCH = ".partial-checkpoint"


@dataclasses.dataclass(frozen=True)
class Restored:
    """A checkpoint that was read.

    Attributes:
        step: its global step.
        values: name -> array.
    """

    step: int
    values: dict[str, np.ndarray]


class Saver:
    """Writes and finds the checkpoints of one run.

    Args:
        folder: the run's output_dir.
        keep_max: this many newest checkpoints are kept.
    """

    def __init__(self, folder: str, keep_max: int = 5):
        self.folder = folder
        self.keep_max = keep_max

    def save(self, step: int, values: dict, settings: dict) -> str:
        """Writes a checkpoint.

        The files are synced before they get their names, the description
        last; a checkpoint without one is not whole.

        Args:
            step: global step, stored as `global_step`, int64.
            values: name -> tensor.
            settings: JSON values that describe the run.

        Returns:
            the checkpoint's prefix.

        Raises:
            UserError: the disk is full or cannot be written.
        """
        name = f"{PREFIX}-{step}"
        try:
            self._write(name, step, values, settings)
        except (OSError, tf.errors.OpError) as error:
            raise UserError(
                f"checkpoint cannot be written: {error}",
                path=os.path.join(self.folder, name),
                fix="check permissions and free space, and run again: "
                "training goes on from the checkpoint before",
            ) from None
        return os.path.join(self.folder, name)

    def _write(self, name, step, values, settings) -> None:
        scratch = os.path.join(self.folder, _SCRATCH)
        if os.path.isdir(scratch):
            shutil.rmtree(scratch)
        os.makedirs(scratch)
        tensor_file.write(
            os.path.join(scratch, name),
            {**values, GLOBAL_STEP: np.int64(step)},
        )
        files = {}
        for file in sorted(os.listdir(scratch)):
            path = os.path.join(scratch, file)
            files[file] = {"bytes": os.path.getsize(path)}
            files[file]["sha256"] = sync_and_hash(path)
        description = {"step": step, "files": files, "settings": settings}
        write_whole(
            os.path.join(scratch, f"{name}.json"),
            json.dumps(description, indent=2) + "\n",
        )
        for file in [*files, f"{name}.json"]:
            os.replace(
                os.path.join(scratch, file), os.path.join(self.folder, file)
            )
        self._name_newest()
        os.rmdir(scratch)
        for old in self.steps()[: -self.keep_max]:
            self._remove(old)

    def steps(self) -> list[int]:
        """Steps of the whole checkpoints, ascending."""
        found = []
        for file in os.listdir(self.folder):
            match = re.fullmatch(rf"{re.escape(PREFIX)}-(\d+)\.json", file)
            if match:
                found.append(int(match.group(1)))
        return sorted(found)

    def restore_latest(self) -> Restored | None:
        """Reads the newest checkpoint that is not damaged.

        Returns:
            the checkpoint, or None if the folder holds none.

        Raises:
            UserError: the folder holds checkpoints and none can be read: a
                run never starts over silently.
        """
        if not os.path.isdir(self.folder):
            return None
        steps = self.steps()
        for step in reversed(steps):
            path = os.path.join(self.folder, f"{PREFIX}-{step}")
            try:
                return self._restore(path, step)
            except (OSError, ValueError, KeyError) as error:
                say(f"warning: {path}: damaged, trying the one before: {error}")
        parts = [
            file
            for file in sorted(os.listdir(self.folder))
            if file.startswith(f"{PREFIX}-") and file.endswith(".index")
        ]
        if steps or parts:
            raise UserError(
                "no checkpoint here can be read",
                path=self.folder,
                fix="pass another --output_dir, with "
                "--init_checkpoint to start from given weights",
            )
        return None

    def _restore(self, path: str, step: int) -> Restored:
        with open(f"{path}.json", encoding="utf-8") as file:
            description = json.load(file)
        for name, expected in description["files"].items():
            part = os.path.join(self.folder, name)
            if os.path.getsize(part) != expected["bytes"]:
                raise ValueError(f"{name} is not {expected['bytes']} bytes")
            if sync_and_hash(part) != expected["sha256"]:
                raise ValueError(f"{name} is not what was written")
        return Restored(step, tensor_file.read(path))

    def _name_newest(self) -> None:
        steps = self.steps()
        names = [f"{PREFIX}-{step}" for step in steps]
        lines = [f'model_checkpoint_path: "{names[-1]}"']
        lines += [f'all_model_checkpoint_paths: "{name}"' for name in names]
        path = os.path.join(self.folder, "checkpoint")
        write_whole(path, "\n".join(lines) + "\n")

    def _remove(self, step: int) -> None:
        name = f"{PREFIX}-{step}"
        os.remove(os.path.join(self.folder, f"{name}.json"))
        for file in os.listdir(self.folder):
            if file.startswith(f"{name}."):
                os.remove(os.path.join(self.folder, file))
