"""Flags and checks of the scripts that start from text. Reads no flag."""

import os

from absl import flags

from common.errors import UserError


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


def define_case(
    values: flags.FlagValues,
    default: bool | None = True,
    meaning: str = "Lower-case the text. True for uncased models.",
) -> None:
    """Defines the flags of the casing.

    Args:
        values: gets the flags.
        default: of --do_lower_case.
        meaning: of --do_lower_case.
    """
    flags.DEFINE_bool("do_lower_case", default, meaning, flag_values=values)
    flags.DEFINE_bool(
        "strip_accents",
        None,
        "Strip accents. Default: as --do_lower_case"
        + (" says." if default else ", and found like it."),
        flag_values=values,
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
