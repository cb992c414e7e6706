"""Files beside a checkpoint: their locations and contents.

    model.ckpt-9.index   the checkpoint, with its data
    model.ckpt-9.json    settings of the run that wrote it
    vocab.txt            its vocabulary
    task.json            its labels

The best checkpoint of a run is in a subfolder of its own.
"""

import collections
import contextlib
import hashlib
import json
import os
import re
from typing import Annotated, Literal, NotRequired, TypedDict

import msgspec

from bert.common import atomic, flags, storage
from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.data.text import tokenizer_files
from bert.data.text.casing import Casing

TASK, VOCABULARY = "task.json", "vocab.txt"
BEST = "best"  # folder of the best checkpoint
_QUESTIONS = "spans"  # kind of question answering in a task.json
_THRESHOLD = "null_threshold.json"  # beside the checkpoints of earlier versions
TUNED_STEP = "tuned_step"  # step of the weights that task.json is fitted to
_HASH = "sha256 of {}"  # checkpoint setting: hash of a file beside it


class _Decision(TypedDict, total=False):
    cuts: list[float]
    log_weights: list[float]
    temperature: Annotated[float, msgspec.Meta(ge=1e-6, le=1e6)]
    unknown_below: float


class _Windows(TypedDict):
    pool: Literal["mean", "max"]
    stride: Annotated[int, msgspec.Meta(ge=1)]


class _Task(TypedDict):
    kind: str
    labels: list[str]
    max_seq_length: NotRequired[Annotated[int, msgspec.Meta(ge=3)]]
    pairs: NotRequired[bool | None]  # whether an example has two texts
    truncate: NotRequired[Literal["head", "tail", "head_tail"]]
    windows: NotRequired[_Windows]  # see `sequences.LongTexts`
    class_weights: NotRequired[list[float]]  # in the loss of training
    decision: NotRequired[_Decision]  # see `labels.PostProcessing`

    # Settings of token classification and question answering, as flags.
    doc_stride: NotRequired[Annotated[int, msgspec.Meta(ge=0)]]
    document_context: NotRequired[bool]
    max_query_length: NotRequired[Annotated[int, msgspec.Meta(ge=1)]]
    n_best_size: NotRequired[Annotated[int, msgspec.Meta(ge=1)]]
    max_answer_length: NotRequired[Annotated[int, msgspec.Meta(ge=1)]]
    version_2_with_negative: NotRequired[bool]
    null_score_diff_threshold: NotRequired[float]
    answer_text: NotRequired[Literal["offsets", "original"]]
    tuned_step: NotRequired[int]  # TUNED_STEP


class _NullThreshold(msgspec.Struct):
    null_score_diff_threshold: float
    global_step: int  # step of the weights that it was tuned for


class _Description(msgspec.Struct):
    settings: dict | None = None


def folder_of(path: str) -> str:
    """Returns the folder of a checkpoint, given as folder or prefix."""
    if storage.is_folder(path):
        return path
    return os.path.dirname(storage.absolute(path))


def beside(path: str, name: str) -> str:
    """Path of a file beside a checkpoint.

    For the best checkpoint of a run, which is in a subfolder, the file may
    also be in the run's folder.

    Args:
        path: str. Folder or prefix of the checkpoint.
        name: str. Name of the file.
    """
    folder = folder_of(path).rstrip("/")
    path = os.path.join(folder, name)
    if os.path.basename(folder) == BEST and not storage.is_file(path):
        return os.path.join(os.path.dirname(folder), name)
    return path


def asset(folder: str) -> str:
    """Vocabulary path of a SavedModel: its only text file, or vocab.txt."""
    assets = os.path.join(folder, "assets")
    paths = storage.find(assets, "*.txt")
    return paths[0] if len(paths) == 1 else os.path.join(assets, "vocab.txt")


def resolve(path: str) -> str:
    """Resolves a folder or prefix to the prefix of a checkpoint.

    Args:
        path: str. Prefix such as `bert_model.ckpt`, or a folder. A folder
            resolves to the best checkpoint of its run, if there is one; else
            to its newest checkpoint by step, see `prefix_of`.

    Raises:
        UserError: there are no checkpoints, or several without a step.
    """
    best = os.path.join(path, BEST)
    if prefix_of(best) != best:
        return resolve(best)

    prefix, *others = _prefixes_of(path)
    if storage.is_folder(path):
        several = [x for x in others if _step_of(x) == _step_of(prefix)]
        if several or prefix == path:
            count = len(several) + 1 if several else "no"
            raise UserError(
                f"{count} checkpoints in this folder",
                path=path,
                expected="a prefix, such as folder/bert_model.ckpt",
            )
        return prefix

    # A common mistake, as the shell completes file names.
    for ending in (".index", ".meta", ".data-00000-of-00001"):
        if path.endswith(ending):
            raise UserError(
                f"is one file of a checkpoint ({ending})",
                path=path,
                fix=f"pass {path.removesuffix(ending)}",
            )

    if not storage.exists(f"{path}.index"):
        raise UserError(
            "no such checkpoint",
            path=path,
            expected=f"the file {path}.index, or a folder of checkpoints",
            fix="keras.saving.load_model loads it"
            if path.endswith(".keras")
            else None,
        )
    return path


def prefix_of(path: str) -> str:
    """Prefix of the newest checkpoint of a folder, by step."""
    return _prefixes_of(path)[0]


def step_of(path: str) -> int:
    """Returns the step of a checkpoint, given as folder or prefix; or 0."""
    return _step_of(prefix_of(path))


def _prefixes_of(path: str) -> list[str]:
    """Prefixes of the checkpoints of a folder, newest first."""
    if not storage.is_folder(path):
        return [path]
    indexes = storage.find(path.rstrip("/"), "*.index")
    prefixes = [index.removesuffix(".index") for index in indexes]

    # By number: as text, step 1000 would come before step 200.
    return sorted(prefixes, key=_step_of, reverse=True) or [path]


def _step_of(prefix: str) -> int:
    step = re.search(r"-(\d+)$", prefix)
    return int(step[1]) if step else 0


def recorded_settings(path: str) -> dict:
    """Reads the flags that a checkpoint was trained with; {} if unknown.

    Args:
        path: str. Prefix of the checkpoint; or a folder, which means its newest
            undamaged checkpoint, from which a run resumes.

    Raises:
        UserError: the checkpoint's JSON file is damaged.
    """
    *newer, oldest = _prefixes_of(path)

    # Damaged checkpoints are skipped, as when a run resumes.
    for prefix in newer:
        with contextlib.suppress(UserError):
            return _settings_of(prefix)
    return _settings_of(oldest)


def _settings_of(prefix: str) -> dict:
    path = f"{prefix}.json"
    if not storage.exists(path):
        return {}
    description = json_files.read(path, _Description, has_nan=True)
    return flags.from_json(description.settings or {})


def recorded_casing(path: str) -> Casing:
    """Reads the casing that a checkpoint was trained with.

    Args:
        path: str. Checkpoint, see `recorded_settings`. Its JSON file, if any,
            has priority over `tokenizer_config.json`.
    """
    settings = recorded_settings(path)
    with json_files.reported(f"{prefix_of(path)}.json"):
        casing = msgspec.convert(settings, Casing)
    if casing.do_lower_case is None:
        return tokenizer_files.read_casing(folder_of(path))
    return casing


def recorded_task(folder: str) -> dict | None:
    """Reads the `task.json` of a folder, if there is one.

    Args:
        folder: str. Folder of a model.

    Returns:
        Dict with `kind` of the labels and `labels`, their names in order, and
        the other entries of `Task.to_json`. The file of a run also has
        `max_seq_length`, except in earlier versions.
        None if there is no file, except for question answering of earlier
        versions.

    Raises:
        UserError: the file is damaged.
    """
    path = os.path.join(folder, TASK)
    if not storage.exists(path):
        return _earlier_task(folder)
    task = json_files.read(path, fix="copy it again")
    with json_files.reported(path, fix="copy it again"):
        # A task may have keys of its own.
        task |= msgspec.convert(task, _Task)

    # Labels are the keys of probabilities.
    counts = collections.Counter(task["labels"])
    wrong = [x for x, count in counts.items() if not x.strip() or count > 1]
    if wrong:
        raise UserError(
            f"the label {wrong[0]!r:.40}",
            path=path,
            expected="unique names that are not empty",
            fix="copy it again",
        )

    # One number per label, or none at all.
    decision, size = task.get("decision", {}), len(task["labels"])
    for name in ("cuts", "log_weights"):
        if decision.get(name) and len(decision[name]) != size:
            raise UserError(
                f"{len(decision[name])} {name}",
                path=path,
                expected=f"{size}, one for each label",
            )
    return task


def _earlier_task(folder: str) -> dict | None:
    """Reads the task of a run of run_squad.py that has no `task.json`.

    Earlier versions recorded its settings only in the checkpoint, and a tuned
    null threshold in a file of its own.
    """
    settings = recorded_settings(folder)
    if "version_2_with_negative" not in settings:
        return None
    task = {"kind": _QUESTIONS, "labels": []} | {
        name: settings[name]
        for name in _Task.__annotations__
        if name in settings
    }
    with json_files.reported(f"{prefix_of(folder)}.json"):
        msgspec.convert(task, _Task)  # checks the types

    path, best = (os.path.join(folder, x) for x in (_THRESHOLD, BEST))
    if task["version_2_with_negative"] and storage.exists(path):
        tuned = json_files.read(path, _NullThreshold, fix="remove it")
        if tuned.global_step == step_of(
            best if storage.is_folder(best) else folder
        ):
            task["null_score_diff_threshold"] = tuned.null_score_diff_threshold
            task[TUNED_STEP] = tuned.global_step
    return task


def task_of(path: str) -> dict | None:
    """Reads the `task.json` beside a checkpoint, or one folder above.

    The best checkpoint of a run is in a subfolder of the run's folder.

    Args:
        path: str. Folder or prefix of the checkpoint.

    Raises:
        UserError: the file is damaged, or was edited after training.
    """
    task = recorded_task(os.path.dirname(beside(path, TASK)))
    if task:
        check_unchanged(path, TASK, hashes_of(None, task))
    return task


def write_task(folder: str, task: dict) -> None:
    """Writes the `task.json` of a folder."""
    described = json.dumps(task, indent=2, ensure_ascii=False)
    atomic.write_whole(os.path.join(folder, TASK), f"{described}\n")


def hashes_of(tokens: list[str] | None, task: dict | None) -> dict[str, str]:
    """Hashes in a run's settings that reveal edits of its files.

    Args:
        tokens: list of str or None. Vocabulary in order; None if unknown.
        task: dict or None. The run's `task.json`. Users may change its length.
    """
    values: dict[str, list | None] = {VOCABULARY: tokens, TASK: None}
    if task:
        values[TASK] = [task["kind"], task["labels"]]

    hashes = {}
    for name, value in values.items():
        if value is not None:
            content = json.dumps(value).encode()
            hashes[_HASH.format(name)] = hashlib.sha256(content).hexdigest()
    return hashes


def check_unchanged(path: str, name: str, hashes: dict[str, str]) -> None:
    """Rejects a file beside a checkpoint that was edited after training."""
    # Checkpoints of other projects and earlier versions have no hash.
    key = _HASH.format(name)
    if recorded_settings(path).get(key) not in (None, hashes[key]):
        raise UserError(
            "was edited after the training",
            path=beside(path, name),
            expected="the file that the run wrote",
            fix="restore it, or copy the model again",
        )
