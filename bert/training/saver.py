"""Checkpoints on disk: name-based, atomic, the newest few.

    output_dir/
        model.ckpt-1000.data-00000-of-00001
        model.ckpt-1000.index
        model.ckpt-1000.json      sizes, settings; written last
        checkpoint                names the newest, for TensorFlow's tools

The files are TensorFlow's own name-based format, which
`tf.train.load_checkpoint` and the original release read.
"""

import concurrent.futures
import dataclasses
import json
import os
import re

import msgspec
import numpy as np
import tensorflow as tf

from bert.common import atomic, storage, tensor_files
from bert.common.atomic import write_whole
from bert.common.errors import StorageError, UserError
from bert.common.formats import json_files
from bert.common.formats.json_files import Name
from bert.common.progress import say

PREFIX = "model.ckpt"
GLOBAL_STEP = "global_step"
_NAMES = "checkpoint"

# Exceptions from reading a damaged checkpoint.
DAMAGE = (OSError, ValueError)


class _File(msgspec.Struct):
    bytes: int


class Description(msgspec.Struct):
    """The JSON of a checkpoint.

    Attributes:
        step: its global step.
        files: name -> size of each of its other files.
        settings, state: as passed to `save`.
    """

    step: int
    files: dict[Name, _File]
    settings: dict
    state: dict


@dataclasses.dataclass(frozen=True)
class Restored:
    """A checkpoint in memory.

    Attributes:
        step: its global step.
        values: name -> array.
        settings, state: as passed to `save`.
    """

    step: int
    values: dict[str, np.ndarray]
    settings: dict
    state: dict


class Saver:
    """Writes and reads the checkpoints of one run.

    Of several workers only the chief writes; all read its files. As a context
    manager it waits in the end for the checkpoint that is being written.

    Args:
        folder: the run's output_dir.
        keep_max: number of checkpoints to keep.
        writes: whether this process writes them.
    """

    def __init__(self, folder: str, keep_max: int = 5, writes: bool = True):
        self.folder = folder
        self.keep_max = keep_max

        self._pending: concurrent.futures.Future | None = None
        self._writes = writes
        self._is_there = storage.is_folder(self.folder)

    def save(
        self, step: int, values: dict, settings: dict, state: dict | None = None
    ) -> str | None:
        """Writes a checkpoint.

        The files are synced before they are renamed, the description last; a
        checkpoint without one is incomplete. Checkpoints of later steps
        belong to an abandoned branch of the run, and are removed.

        Args:
            step: global step, stored as `global_step`, int64.
            values: name -> tensor.
            settings: JSON values that describe the run.
            state: further JSON values for resuming.

        Returns:
            the checkpoint's prefix; None: another worker writes it.

        Raises:
            UserError: a value is not finite, or the files cannot be written;
                earlier checkpoints are kept.
        """
        self.wait()
        if not self._writes:
            return None
        return self._save(step, values, settings, state)

    def save_in_background(
        self, step: int, values: dict, settings: dict, state: dict | None = None
    ) -> None:
        """Writes a checkpoint in a thread, and logs its path there.

        Waits for the checkpoint before. The thread has a copy of the values:
        on a CPU the variables' own memory, which they leave to it when the
        next step assigns them; of other devices one on the host.

        Args:
            step, values, settings, state: as for `save`.

        Raises:
            UserError: the checkpoint before could not be written.
        """
        self.wait()
        if not self._writes:
            return

        with tf.device("CPU:0"):
            copy = {name: tf.identity(x) for name, x in values.items()}

        thread = concurrent.futures.ThreadPoolExecutor(1, "checkpoint")
        self._pending = thread.submit(
            self._save_and_log, step, copy, settings, state
        )
        thread.shutdown(wait=False)  # it ends with the checkpoint

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.wait()

    def check(self) -> None:
        """Raises the error of a checkpoint that could not be written."""
        if self._pending is not None and self._pending.done():
            self.wait()

    def wait(self) -> None:
        """Waits for the checkpoint that is being written.

        Raises:
            UserError: it could not be written.
        """
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def _save_and_log(self, *arguments) -> None:
        say(f"saved {self._save(*arguments)}")

    def _save(
        self, step: int, values: dict, settings: dict, state: dict | None
    ) -> str:
        name = f"{PREFIX}-{step}"
        path = os.path.join(self.folder, name)

        # A run that resumed from NaN would only give NaN.
        for variable, value in values.items():
            if not np.isfinite(value).all():
                raise UserError(
                    f"not saved: {variable} has values that are not finite",
                    path=path,
                    fix="lower --learning_rate; earlier checkpoints are kept",
                )

        # Else it would be made again, without the run's other files.
        if self._is_there and not storage.is_folder(self.folder):
            raise UserError(
                "has been removed",
                path=f"{self.folder}/",
                fix="run the same command again",
            )

        self._is_there = True

        description = {"step": step, "settings": settings, "state": state or {}}
        with atomic.whole_folder(self.folder, f"{name}.json") as folder:
            tensor_files.write(
                os.path.join(folder, name),
                {**values, GLOBAL_STEP: np.int64(step)},
            )
            self._describe(folder, name, description)
            self.remove_after(step)

        self._name_newest()

        # Only now, when the new one is complete.
        for old in self.steps()[: -self.keep_max]:
            self._remove(old)
        return path

    def _describe(self, folder: str, name: str, description: dict) -> None:
        files = {
            os.path.basename(path): {"bytes": storage.size(path)}
            for path in storage.find(folder, "*")
        }
        text = json.dumps({**description, "files": files}, indent=2) + "\n"
        write_whole(os.path.join(folder, f"{name}.json"), text)

    def remove_after(self, step: int) -> None:
        """Removes the checkpoints of later steps, damaged ones too.

        Args:
            step: the step from which the run resumes.
        """
        if not self._writes:
            return

        # The newest first: if this is interrupted, no gap is left.
        later = [x for x in self.steps(".+") if x > step]
        for other in reversed(later):
            self._remove(other)
            say(
                f"removed {self.folder}/{PREFIX}-{other}: later than step "
                f"{step}, from which the run resumes"
            )

        if later:
            self._name_newest()

    def sweep(self) -> None:
        """Removes the unfinished files of a killed run."""
        if not self._writes or not storage.is_folder(self.folder):
            return

        scratch = atomic.scratch(self.folder, atomic.UNFINISHED)
        storage.remove_folder(scratch)

        # Without a complete one nothing goes: it may be all there is.
        complete = self.steps()
        for step in self.steps(".+"):
            if complete and step not in complete:
                self._remove(step)

        for path in storage.find(self.folder, "*.partial"):
            if storage.is_file(path):  # an export may be a folder
                storage.remove(path)

    def steps(self, ending: str = "json") -> list[int]:
        """Steps of the checkpoints, ascending.

        Args:
            ending: pattern of the endings of files that count; default: that
                of the description, which complete checkpoints have.
        """
        pattern = re.compile(rf"{re.escape(PREFIX)}-(\d+)\.{ending}")
        matches = map(pattern.fullmatch, storage.list_folder(self.folder))
        return sorted({int(match[1]) for match in matches if match})

    def restore_latest(self) -> Restored | None:
        """Reads the newest checkpoint that is not damaged.

        Returns:
            the checkpoint, or None if the folder holds none.

        Raises:
            UserError: the folder holds checkpoints and none can be read; a
                run never silently starts over.
        """
        steps = self.steps()
        for step in reversed(steps):
            path = os.path.join(self.folder, f"{PREFIX}-{step}")
            try:
                with storage.open_file(f"{path}.json", "rb"):
                    return self._restore(path, step)
            except PermissionError:
                raise  # it may be undamaged
            except DAMAGE as error:
                say(
                    f"warning: {path}: unreadable, restoring an earlier "
                    f"checkpoint: {error}"
                )

        # To begin at step 0 would throw away the run.
        if steps or self.steps("index"):
            raise UserError(
                "no checkpoint here can be read",
                path=self.folder,
                fix="pass another --output_dir, and --init_checkpoint to start "
                "from given weights, with --resume_optimizer for a run of the "
                "original",
            )
        return None

    def _restore(self, path: str, step: int) -> Restored:
        description = check_whole(path)
        try:
            values = tensor_files.read(path)
        except ValueError as error:
            if storage.is_remote(path):  # it does not tell that a store is gone
                raise StorageError(f"{path}: {error}") from None
            raise

        # A checkpoint copied over another may have the same sizes.
        if values.get(GLOBAL_STEP) != step:
            raise ValueError(f"global_step is {values.get(GLOBAL_STEP)}")
        return Restored(step, values, description.settings, description.state)

    def _name_newest(self) -> None:
        steps = self.steps()
        path = os.path.join(self.folder, _NAMES)
        if not steps:
            if storage.exists(path):
                storage.remove(path)
            return

        names = [f"{PREFIX}-{step}" for step in steps]

        # Names without a folder, so that the folder can be moved.
        lines = [f'model_checkpoint_path: "{names[-1]}"']
        lines += [f'all_model_checkpoint_paths: "{name}"' for name in names]
        write_whole(path, "\n".join(lines) + "\n")

    def _remove(self, step: int) -> None:
        # The description first: without it the others do not count.
        for path in reversed(storage.find(self.folder, f"{PREFIX}-{step}.*")):
            storage.remove(path)


def check_whole(path: str) -> Description:
    """Compares the sizes of a checkpoint's files with its description.

    Args:
        path: the checkpoint's prefix.

    Returns:
        the description.

    Raises:
        one of DAMAGE: they differ, or cannot be read.
    """
    description = json_files.read(f"{path}.json", Description, has_nan=True)

    # A copy that was cut short shows by its size.
    for name, file in description.files.items():
        part = os.path.join(os.path.dirname(path), name)
        if storage.size(part) != file.bytes:
            raise ValueError(f"{name} is not {file.bytes} bytes")
    return description
