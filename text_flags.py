"""Flags and checks of the scripts that start from text. Reads no flag."""

import os
from collections.abc import Collection

from absl import flags

from errors import UserError
from modeling.config import BertConfig


def define_text(values: flags.FlagValues, required: bool = True) -> None:
    """Defines the flags that say how text becomes ids.

    Args:
        values: gets the flags.
        required: there is no other way to a vocabulary.
    """
    flags.DEFINE_string(
        "vocab_file",
        None,
        "Vocabulary, one token a line.",
        flag_values=values,
        required=required,
    )
    define_case(values)


def define_case(values: flags.FlagValues) -> None:
    """Defines the flag of the casing."""
    flags.DEFINE_bool(
        "do_lower_case",
        True,
        "Lower-case the text and strip accents. True for uncased models.",
        flag_values=values,
    )


def check_vocabulary(
    tokens: Collection[str], path: str, config: BertConfig, where: str
) -> None:
    """Refuses a vocabulary that is larger than the network's.

    Args:
        tokens: of the vocabulary.
        path: its file.
        config: sizes of the network.
        where: they come from, for the message.
    """
    if len(tokens) > config.vocab_size:
        raise UserError(
            f"{len(tokens)} tokens",
            path=path,
            expected=f"at most {config.vocab_size}, vocab_size ({where})",
        )


def check_length(
    length: int, flag: str, config: BertConfig, where: str
) -> None:
    """Refuses rows that are longer than the network has positions.

    Args:
        length: pieces in a row.
        flag: that says so.
        config, where: see `check_vocabulary`.
    """
    most = config.max_position_embeddings
    if length > most:
        raise UserError(
            f"--{flag}={length}",
            expected=f"at most max_position_embeddings, {most} ({where})",
        )


def check_output_file(path: str, flag: str) -> None:
    """Refuses a path that cannot become a file, before any work is done.

    Raises:
        UserError: it is a folder, or in a folder that does not exist.
    """
    folder = os.path.dirname(os.path.abspath(path))
    if not path or os.path.isdir(path):
        raise UserError(f"--{flag}={path!r}", expected="the name of a file")
    if not os.path.isdir(folder):
        raise UserError(
            f"--{flag}={path!r}",
            expected=f"a folder {folder}",
            fix="make the folder first",
        )
