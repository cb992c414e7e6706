"""The tuned threshold of SQuAD 2.0, which belongs to the weights of a run."""

import msgspec

from bert.common import atomic, storage
from bert.common.formats import json_files
from bert.common.progress import say
from bert.modeling.formats import checkpoint_files
from bert.tasks.run_folder import RunFolder
from bert.tasks.squad.settings import Settings

FILE = "null_threshold.json"


class _Tuned(msgspec.Struct):
    """A threshold, and the weights that it was tuned for."""

    null_score_diff_threshold: float
    global_step: int
    predict_file: str | None = None
    init_checkpoint: str | None = None


def restore(settings: Settings, folder: RunFolder, step: int) -> float:
    """Reads the threshold that was tuned for these weights.

    Args:
        settings: the settings of the script.
        folder: the folder of the run.
        step: of the weights; 0: those of --init_checkpoint.

    Returns:
        the threshold; without one that fits, --null_score_diff_threshold.

    Raises:
        UserError: its file is damaged.
    """
    default, source = (
        settings.null_score_diff_threshold,
        _source(settings, step),
    )
    path, (_, start) = folder.file(FILE), source

    # The weights of another run bring the threshold tuned for them.
    if start and not storage.exists(path):
        path = checkpoint_files.beside(start, FILE)
        source = checkpoint_files.step_of(start), None

    # A threshold that is not used may mean a forgotten flag.
    is_given, exists = settings.is_threshold_given, storage.exists(path)
    if not settings.version_2_with_negative and (is_given or exists):
        say(
            "warning: without --version_2_with_negative the null threshold "
            "is not used: every question has an answer"
        )
        return default
    if settings.tune_null_threshold or is_given or not exists:
        return default

    fix = "remove it, or pass --null_score_diff_threshold"
    tuned = json_files.read(path, _Tuned, fix=fix)
    if (tuned.global_step, tuned.init_checkpoint) != source:
        say(f"ignoring {path}: tuned for other weights")
        return default
    threshold = tuned.null_score_diff_threshold
    say(f"null threshold {threshold:.4f} restored from {path}")
    return threshold


def save(
    settings: Settings, folder: RunFolder, step: int, threshold: float
) -> str:
    """Writes a tuned threshold.

    Args:
        settings, folder, step: as for `restore`.
        threshold: the threshold.

    Returns:
        the path of its file.
    """
    path = folder.file(FILE)
    step, start = _source(settings, step)
    tuned = _Tuned(threshold, step, settings.predict_file, start)
    text = json_files.to_json(msgspec.to_builtins(tuned), indent=2)
    atomic.write_whole(path, f"{text}\n")
    say(f"null threshold tuned to {threshold:.4f}")
    return path


def _source(settings: Settings, step: int) -> tuple[int, str | None]:
    """Step of the weights, and --init_checkpoint at step 0."""
    model = settings.finetuning.training.model
    return step, None if step else model.init_checkpoint
