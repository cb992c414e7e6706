"""Files beside a checkpoint: config, vocabulary, casing and task."""

import dataclasses
import json
import os
import re
from collections.abc import Iterable
from typing import TypedDict

import msgspec

from common import storage
from common.errors import UserError
from common.findings import SUSPICIOUS
from common.flags import flag
from common.formats import json_files
from common.progress import say
from data.text import tokenization, tokenizer_files, vocabulary_checks
from modeling.config import BertConfig

TASK = "task.json"


class _Task(TypedDict):
    kind: str
    labels: list[str]


class _Description(msgspec.Struct):
    settings: dict | None = None


@dataclasses.dataclass(frozen=True)
class ModelFiles:
    """Config, vocabulary and casing; by default those of the checkpoint."""

    bert_config_file: str | None = flag(
        None, "Default: bert_config.json beside the checkpoint.", path=True
    )
    vocab_file: str | None = flag(
        None, "Default: vocab.txt beside the checkpoint.", path=True
    )
    do_lower_case: bool | None = flag(
        None,
        "Lower-case the text. Default: as recorded in the checkpoint, else "
        "guessed from its vocabulary.",
    )
    strip_accents: bool | None = flag(
        None,
        "Strip accents. Default: as recorded in the checkpoint, else as "
        "--do_lower_case.",
    )


def folder_of(path: str) -> str:
    """Returns the folder of a checkpoint, given as folder or prefix."""
    if storage.is_folder(path):
        return path
    return os.path.dirname(storage.absolute(path))


def beside(path: str, name: str) -> str:
    """The path of a file beside a checkpoint.

    The best checkpoint of a run is in a folder of its own, below the others.

    Args:
        path: the checkpoint, as folder or prefix.
        name: name of the file.
    """
    folder = folder_of(path).rstrip("/")
    found = os.path.join(folder, name)
    if os.path.basename(folder) == "best" and not storage.is_file(found):
        return os.path.join(os.path.dirname(folder), name)
    return found


def asset(folder: str) -> str:
    """Path of the vocabulary of a SavedModel: its text file, or vocab.txt."""
    assets = os.path.join(folder, "assets")
    paths = storage.find(assets, "*.txt")
    return paths[0] if len(paths) == 1 else os.path.join(assets, "vocab.txt")


def find(path: str, name: str, given: str | None, flag: str) -> str:
    """Finds a file beside a checkpoint, unless a flag gives another.

    Args:
        path: the checkpoint, as folder or prefix.
        name: name of the file.
        given: value of the flag, or None.
        flag: name of the flag, for the message.

    Returns:
        its path.

    Raises:
        UserError: there is no such file.
    """
    found = given or beside(path, name)
    if not storage.is_file(found):
        if not (given or storage.any_starts_with(path)):
            raise UserError("no such checkpoint", path=path)
        if storage.is_file(os.path.join(folder_of(path), "saved_model.pb")):
            raise UserError(
                "is an export",
                path=path,
                expected="a checkpoint",
                fix="predict.py reads exports",
            )
        raise UserError("no such file", path=found, fix=f"pass --{flag}")
    return found


def find_files(
    path: str, config_file: str | None, vocab_file: str | None
) -> dict[str, str]:
    """Finds config and vocabulary beside a checkpoint, unless given.

    Returns:
        flag -> path.

    Raises:
        UserError: one is missing.
    """
    return {
        flag: find(path, name, given, flag)
        for flag, name, given in (
            ("bert_config_file", "bert_config.json", config_file),
            ("vocab_file", "vocab.txt", vocab_file),
        )
    }


def recorded_settings(path: str) -> dict:
    """Reads the flags that a checkpoint was trained with; {} if unknown.

    Args:
        path: the checkpoint, as prefix or as folder, which means its newest.

    Raises:
        UserError: its JSON is damaged.
    """
    path = f"{_prefix_of(path)}.json"
    if not storage.exists(path):
        return {}
    return json_files.read(path, _Description, has_nan=True).settings or {}


def recorded_casing(prefix: str) -> tuple[bool | None, bool | None]:
    """Reads the casing that a checkpoint was trained with.

    Args:
        prefix: prefix of the checkpoint. The JSON of our own checkpoints is
            read first, then `tokenizer_config.json` beside it.

    Returns:
        do_lower_case, or None if unknown, and strip_accents, or None if it
        equals do_lower_case.
    """
    settings = recorded_settings(prefix)
    with json_files.reported(f"{prefix}.json"):
        casing = msgspec.convert(settings, tokenizer_files.Casing)
    if casing.do_lower_case is None:
        return tokenizer_files.read_casing(folder_of(prefix))
    return casing.do_lower_case, casing.strip_accents


def fill_casing(
    do_lower_case: bool | None, strip_accents: bool | None, prefix: str
) -> tuple[bool | None, bool | None]:
    """Replaces a casing of None by the one that a checkpoint records."""
    recorded, strips = recorded_casing(prefix)
    return (
        recorded if do_lower_case is None else do_lower_case,
        strips if strip_accents is None else strip_accents,
    )


def recorded_task(folder: str) -> dict | None:
    """Reads the `task.json` of a folder, if there is one.

    Returns:
        `kind` of the labels, and `labels`, their names in order.

    Raises:
        UserError: it is damaged.
    """
    path = os.path.join(folder, TASK)
    if not storage.exists(path):
        return None
    return json_files.read(path, _Task, fix="copy it again")


def write_task(folder: str, task: dict) -> None:
    """Writes the `task.json` of a folder."""
    described = json.dumps(task, indent=2, ensure_ascii=False)
    storage.write_whole(os.path.join(folder, TASK), f"{described}\n")


def task_of(path: str) -> dict | None:
    """Reads the `task.json` beside a checkpoint, or one folder above.

    The best checkpoint of a run is in a folder below that of the run.

    Args:
        path: the checkpoint, as folder or prefix.
    """
    return recorded_task(os.path.dirname(beside(path, TASK)))


def guess_casing(tokens: list[str]) -> bool:
    """Guesses the casing from a vocabulary, and logs it."""
    found = tokenization.looks_lower_case(tokens)
    say(
        f"guessed do_lower_case={found} from the vocabulary; "
        "pass --do_lower_case if that is wrong"
    )
    return found


def check_casing(
    do_lower_case: bool, strip_accents: bool | None, path: str
) -> None:
    """Checks that a checkpoint was trained with this casing.

    Args:
        do_lower_case, strip_accents: the casing.
        path: the checkpoint, as folder or prefix.

    Raises:
        UserError: it was trained with another.
    """
    tokenization.validate_case_matches_checkpoint(
        do_lower_case, _prefix_of(path)
    )
    check_recorded_casing(do_lower_case, strip_accents, path)


def _prefix_of(path: str) -> str:
    """The prefix of the newest checkpoint of a folder, by its step."""
    if not storage.is_folder(path):
        return path
    indexes = storage.find(path.rstrip("/"), "*.index")
    found = [x.removesuffix(".index") for x in indexes]
    return max(found, key=_step_of, default=path)


def step_of(path: str) -> int:
    """Returns the step of a checkpoint, given as folder or prefix; or 0."""
    return _step_of(_prefix_of(path))


def _step_of(prefix: str) -> int:
    step = re.search(r"-(\d+)$", prefix)
    return int(step[1]) if step else 0


def check_recorded_casing(
    do_lower_case: bool, strip_accents: bool | None, path: str
) -> None:
    """Checks as `check_casing`, but ignores names of released models."""
    prefix = _prefix_of(path)
    recorded, recorded_strip = recorded_casing(prefix)
    if recorded is None:
        return
    trained = tokenization.strips_accents(recorded, recorded_strip)
    strips = tokenization.strips_accents(do_lower_case, strip_accents)
    for name, given, expected in (
        ("do_lower_case", do_lower_case, recorded),
        ("strip_accents", strips, trained),
    ):
        if given != expected:
            raise UserError(
                f"--{name}={given}",
                path=prefix,
                expected=f"{expected}, which it was trained with",
            )


def warn_vocabulary(
    vocab_file: str,
    do_lower_case: bool,
    strip_accents: bool | None,
    config: BertConfig | None = None,
    config_file: str | None = None,
    texts: Iterable[str] = (),
) -> None:
    """Warns if a vocabulary does not seem to fit the network or the texts.

    Args:
        vocab_file: path of the vocabulary.
        do_lower_case, strip_accents: the casing.
        config: sizes of the network, or None.
        config_file: path of the config, for messages.
        texts: texts, of which the first thousand are tokenized.
    """
    tokenizer = tokenization.FullTokenizer(
        vocab_file, do_lower_case, strip_accents
    )
    found = vocabulary_checks.check_use(
        vocab_file,
        tokenizer.vocab,
        do_lower_case,
        config and config.vocab_size,
        config_file,
    )
    found += vocabulary_checks.check_texts(
        vocab_file, tokenizer.tokenize, texts
    )
    for finding in found:
        if finding.level == SUSPICIOUS:
            say(f"warning: {finding.message}")
