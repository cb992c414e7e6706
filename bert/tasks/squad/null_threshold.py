"""Saves and restores the null threshold that was tuned for weights."""

import msgspec

from bert.common import storage
from bert.common.formats import json_files
from bert.common.progress import log
from bert.modeling.formats import checkpoint_files
from bert.tasks.run_folder import RunFolder, has_checkpoint
from bert.tasks.squad import answers
from bert.tasks.squad.settings import Settings, describe

FILE = "null_threshold.json"


class _Tuned(msgspec.Struct):
    """A threshold and the weights for which it was tuned.

    Attributes:
        null_score_diff_threshold: the threshold.
        global_step: step of the weights.
        init_checkpoint: --init_checkpoint at step 0, else None.
    """

    null_score_diff_threshold: float
    global_step: int
    init_checkpoint: str | None = None


def restore(settings: Settings, folder: RunFolder, step: int) -> float:
    """Reads the threshold that was tuned for these weights.

    Args:
        settings: the settings of the script.
        folder: the folder of the run.
        step: int. Step of the weights; 0 for the weights of --init_checkpoint.

    Returns:
        the threshold; --null_score_diff_threshold if it was not tuned.

    Raises:
        UserError: the file of the threshold is damaged.
    """
    default = settings.null_score_diff_threshold
    is_set = settings.tune_null_threshold or settings.is_threshold_given
    if is_set or not settings.version_2_with_negative:
        return default

    # With --init_checkpoint, use the threshold tuned for that checkpoint.
    path, start = folder.file(FILE), _start_of(settings, step)
    weights = step, start
    is_other = start and not storage.exists(path)
    if is_other:
        path = checkpoint_files.beside(start, FILE)
    if not storage.exists(path):
        return default
    if is_other:
        prefix = checkpoint_files.resolve(start)
        weights = checkpoint_files.step_of(prefix), None

    fix = "remove it, or pass --null_score_diff_threshold"
    tuned = json_files.read(path, _Tuned, fix=fix)
    if (tuned.global_step, tuned.init_checkpoint) != weights:
        log(f"ignoring {path}: tuned for other weights")
        return default
    threshold = tuned.null_score_diff_threshold
    log(f"null threshold {threshold:.4f} restored from {path}")
    return threshold


def save(
    settings: Settings, folder: RunFolder, step: int, threshold: float
) -> str:
    """Writes a tuned threshold, also to the `task.json` of the weights.

    Args:
        settings, folder, step: the arguments of `restore`.
        threshold: float. The threshold.

    Returns:
        the path of its file.
    """
    log(f"null threshold tuned to {threshold:.4f}")
    tuned = _Tuned(threshold, step, _start_of(settings, step))
    if folder.is_chief and has_checkpoint(folder.path):
        task = checkpoint_files.recorded_task(folder.path)
        task = task or describe(settings)  # missing in earlier versions
        tuning = {"null_score_diff_threshold": threshold, "tuned_step": step}
        checkpoint_files.write_task(folder.path, task | tuning)
    return answers.write(folder.file(FILE), msgspec.structs.asdict(tuned))


def _start_of(settings: Settings, step: int) -> str | None:
    """--init_checkpoint at step 0, else None."""
    return None if step else settings.init_checkpoint
