"""What stands beside a checkpoint: its config, vocabulary and casing."""

import json
import os
from collections.abc import Iterable

from common.errors import UserError
from common.findings import SUSPICIOUS
from common.progress import say
from data.text import tokenization, tokenizer_files, vocabulary_checks
from modeling.config import BertConfig


def folder_of(path: str) -> str:
    """The folder of a checkpoint, given as folder or prefix."""
    if os.path.isdir(path):
        return path
    return os.path.dirname(os.path.abspath(path))


def find(path: str, name: str, given: str | None, flag: str) -> str:
    """A file beside a checkpoint, unless a flag gives another.

    Args:
        path: the checkpoint, as folder or prefix.
        name: of the file.
        given: the flag's value.
        flag: its name, for the message.

    Raises:
        UserError: there is no such file.
    """
    found = given or os.path.join(folder_of(path), name)
    if not os.path.isfile(found):
        raise UserError("no such file", path=found, fix=f"pass --{flag}")
    return found


def recorded_casing(prefix: str) -> tuple[bool | None, bool | None]:
    """The casing that a checkpoint was trained with, if a file says.

    Args:
        prefix: of the checkpoint. The JSON file of ours is asked first, then
            `tokenizer_config.json` beside it.

    Returns:
        do_lower_case, None if it is not known, and strip_accents, None if it
        is as do_lower_case.
    """
    path, settings = f"{prefix}.json", {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            settings = json.load(file).get("settings", {})
    if settings.get("do_lower_case") is None:
        return tokenizer_files.read_casing(folder_of(prefix))
    return settings["do_lower_case"], settings.get("strip_accents")


def fill_casing(
    do_lower_case: bool | None, strip_accents: bool | None, prefix: str
) -> tuple[bool | None, bool | None]:
    """The casing, where it is None as a checkpoint was trained."""
    recorded, strips = recorded_casing(prefix)
    return (
        recorded if do_lower_case is None else do_lower_case,
        strips if strip_accents is None else strip_accents,
    )


def recorded_task(folder: str) -> dict | None:
    """What the network in a folder was trained for, if it says so.

    Returns:
        `kind` of its labels and `labels`, their names in order.
    """
    try:
        with open(os.path.join(folder, "task.json"), encoding="utf-8") as file:
            recorded = json.load(file)
        known = recorded["kind"] and isinstance(recorded["labels"], list)
        return recorded if known else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def task_of(path: str) -> dict | None:
    """What a checkpoint was trained for; the best one is below its run's.

    Args:
        path: the checkpoint, as folder or prefix.
    """
    folder = folder_of(path)
    return recorded_task(folder) or recorded_task(f"{folder}/..")


def guess_casing(tokens: list[str]) -> bool:
    """The casing that a vocabulary looks made for, and says so."""
    found = tokenization.looks_lower_case(tokens)
    say(
        f"do_lower_case={found}, as the vocabulary looks; "
        "pass --do_lower_case if that is wrong"
    )
    return found


def check_casing(
    do_lower_case: bool, strip_accents: bool | None, init_checkpoint: str
) -> None:
    """Checks that the casing is the one that a checkpoint was trained with."""
    tokenization.validate_case_matches_checkpoint(
        do_lower_case, init_checkpoint
    )
    check_recorded_casing(do_lower_case, strip_accents, init_checkpoint)


def check_recorded_casing(
    do_lower_case: bool, strip_accents: bool | None, prefix: str
) -> None:
    """As `check_casing`, but ignores the names of released models."""
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
        vocab_file: the vocabulary.
        do_lower_case, strip_accents: the casing.
        config: sizes of the network; None without one.
        config_file: its file, for messages.
        texts: the first thousand are tokenized.
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
