"""Checkpoints on disk: name-based and atomic; only the newest are kept.

    output_dir/
        model.ckpt-1000.data-00000-of-00001
        model.ckpt-1000.index
        model.ckpt-1000.json      sizes, settings; written last
        checkpoint                lists the checkpoints, for TensorFlow's tools

The files have TensorFlow's own name-based format, which
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
from numpy.typing import NDArray

from bert.common import atomic, flags, storage
from bert.common.atomic import write_whole
from bert.common.errors import StorageError, UserError
from bert.common.formats import json_files, tensor_files
from bert.common.formats.json_files import Name
from bert.common.progress import log

PREFIX = "model.ckpt"
GLOBAL_STEP = "global_step"
_NAMES = "checkpoint"

# Exceptions from reading a damaged checkpoint.
DAMAGE = (OSError, ValueError)


class _File(msgspec.Struct):
    bytes: int


class Description(msgspec.Struct):
    """The JSON file of a checkpoint.

    Attributes:
        step: int. Global step of the checkpoint.
        files: dict. Name -> size of each other file of the checkpoint.
        settings, state: dict. As passed to `save`.
    """

    step: int
    files: dict[Name, _File]
    settings: dict
    state: dict


@dataclasses.dataclass(frozen=True)
class Restored:
    """A checkpoint in memory.

    Attributes:
        step: int. Global step of the checkpoint.
        values: dict. Name -> array.
        settings, state: dict. As passed to `save`.
    """

    step: int
    values: dict[str, NDArray]
    settings: dict
    state: dict


class Saver:
    """Writes and reads the checkpoints of one run.

    With several workers only the chief writes, and all read its files. As a
    context manager it waits at the end for a checkpoint in progress.

    Args:
        folder: str. The run's output_dir.
        keep_max: int. Number of checkpoints to keep. Default: 5.
        writes: bool. Whether this process writes them. Default: True.
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

        The files are synced before they are renamed, the description last. A
        checkpoint without a description is incomplete. Checkpoints of later
        steps belong to an abandoned branch of the run, and are removed.

        Args:
            step: int. Global step, stored as `global_step`, int64.
            values: dict. Name -> tensor.
            settings: dict. JSON values that describe the run.
            state: dict or None. More JSON values for resuming. Default: None.

        Returns:
            The checkpoint's prefix, or None if another worker writes it.

        Raises:
            UserError: a value is not finite, or the files cannot be written.
                Earlier checkpoints are kept.
        """
        self.wait()
        if not self._writes:
            return None
        return self._save(step, values, settings, state)

    def save_in_background(
        self, step: int, values: dict, settings: dict, state: dict | None = None
    ) -> None:
        """Writes a checkpoint in a thread, which also logs its path.

        Waits for the previous checkpoint first. The thread holds a copy of the
        values. On a CPU it is the variables' own memory, which they give up
        when the next step assigns them; else it is a copy on the host.

        Args:
            step, values, settings, state: see `save`.

        Raises:
            UserError: the previous checkpoint could not be written.
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
        """Raises the error of a failed background write, if any."""
        if self._pending is not None and self._pending.done():
            self.wait()

    def wait(self) -> None:
        """Waits for a checkpoint in progress.

        Raises:
            UserError: the checkpoint could not be written.
        """
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def _save_and_log(self, *arguments) -> None:
        log(f"saved {self._save(*arguments)}")

    def _save(
        self, step: int, values: dict, settings: dict, state: dict | None
    ) -> str:
        name = f"{PREFIX}-{step}"
        path = os.path.join(self.folder, name)

        # A run resumed from NaN would only give NaN.
        for variable, value in values.items():
            if not np.isfinite(value).all():
                raise UserError(
                    f"not saved: {variable} has values that are not finite",
                    path=path,
                    fix="lower --learning_rate; earlier checkpoints are kept",
                )

        # Otherwise it would be created again, without the run's other files.
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

        # Removed only now, when the new checkpoint is complete.
        for old in self.saved_steps()[: -self.keep_max]:
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
        """Removes the checkpoints of later steps, including damaged ones.

        Args:
            step: int. Step from which the run resumes.
        """
        if not self._writes:
            return

        # Newest first: if this is interrupted, it leaves no gap.
        later = [x for x in self.saved_steps(".+") if x > step]
        for other in reversed(later):
            self._remove(other)
            log(
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

        # Incomplete ones are kept if there is no complete checkpoint.
        complete = self.saved_steps()
        for step in self.saved_steps(".+"):
            if complete and step not in complete:
                self._remove(step)

        for path in storage.find(self.folder, "*.partial"):
            if storage.is_file(path):  # an export may be a folder
                storage.remove(path)

    def saved_steps(self, ending: str = "json") -> list[int]:
        """Steps of the checkpoints, ascending.

        Args:
            ending: str. Regular expression of the file endings that count.
                Default: "json", which only complete checkpoints have.
        """
        pattern = re.compile(rf"{re.escape(PREFIX)}-(\d+)\.{ending}")
        matches = map(pattern.fullmatch, storage.list_folder(self.folder))
        return sorted({int(match[1]) for match in matches if match})

    def restore_latest(self) -> Restored | None:
        """Reads the newest checkpoint that is not damaged.

        Returns:
            Restored, or None if the folder has no checkpoints.

        Raises:
            UserError: the folder has checkpoints, but none can be read. A run
                never silently starts over.
        """
        steps = self.saved_steps()
        for step in reversed(steps):
            path = os.path.join(self.folder, f"{PREFIX}-{step}")
            try:
                with storage.open_file(f"{path}.json", "rb"):
                    return self._restore(path, step)
            except PermissionError:
                raise  # the checkpoint may be undamaged
            except DAMAGE as error:
                log(
                    f"warning: {path}: unreadable, restoring an earlier "
                    f"checkpoint: {error}"
                )

        # Starting at step 0 would discard the run.
        if steps or self.saved_steps("index"):
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
            if storage.is_remote(path):  # the same error if a store is gone
                raise StorageError(f"{path}: {error}") from None
            raise

        # A checkpoint copied over another may have the same sizes.
        if values.get(GLOBAL_STEP) != step:
            raise ValueError(f"global_step is {values.get(GLOBAL_STEP)}")
        settings = flags.from_json(description.settings)
        return Restored(step, values, settings, description.state)

    def _name_newest(self) -> None:
        steps = self.saved_steps()
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
        # The description first: without it the checkpoint is incomplete.
        for path in reversed(storage.find(self.folder, f"{PREFIX}-{step}.*")):
            storage.remove(path)


def check_whole(path: str) -> Description:
    """Compares the sizes of a checkpoint's files with its description.

    Args:
        path: str. Prefix of the checkpoint.

    Returns:
        Description of the checkpoint.

    Raises:
        OSError or ValueError (`DAMAGE`): the sizes differ, or a file cannot be
            read.
    """
    description = json_files.read(f"{path}.json", Description, has_nan=True)

    # An incomplete copy has another size.
    for name, file in description.files.items():
        part = os.path.join(os.path.dirname(path), name)
        if storage.size(part) != file.bytes:
            raise ValueError(f"{name} is not {file.bytes} bytes")
    return description
