"""Outputs of the scripts that read a corpus, which must not replace it."""

import os
from collections.abc import Iterable

from common.errors import UserError


def check_no_input(outputs: Iterable[str], inputs: Iterable[str]) -> None:
    """Rejects outputs that are inputs too.

    Raises:
        UserError: a file is both.
    """
    written = set(map(os.path.realpath, outputs))
    for path in inputs:
        if os.path.realpath(path) in written:
            raise UserError(
                "is both input and output",
                path=path,
                fix="write to another folder",
            )
