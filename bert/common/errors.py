"""Errors with a one-line message and an exit code."""

import importlib.util
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, Self

# These would change the terminal, end a line, or cannot be printed.
CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_LONGEST = 2000  # maximum number of characters of a message


def printable(text: str) -> str:
    """Escapes control characters, which would change a terminal."""
    return CONTROLS.sub(lambda found: ascii(found.group())[1:-1], text)


def reason_of(error: OSError) -> str:
    """Returns the system's reason of an error, without paths or addresses."""
    return os.strerror(error.errno) if error.errno else f"{error}"


class UserError(ValueError):
    """A mistake that the user can fix: a path, a flag, a file's content.

    The message is `path:line: found; expected ...; fix`, with the parts that
    are known. Scripts print it on one line and exit with code 2
    (`common.main.run`).

    Args:
        found: str. The mistake, in a few words.
        path: str or None. The file or folder with the mistake.
        line: int or None. Line number in `path`, from 1.
        expected: str or None. The correct content or value.
        fix: str or None. Advice to the user.

    Attributes:
        others: tuple of UserError. More mistakes of the same command line,
            each printed on its own line.
    """

    exit_code = 2
    others: tuple[Self, ...] = ()

    def __init__(
        self,
        found: str,
        *,
        path: str | None = None,
        line: int | None = None,
        expected: str | None = None,
        fix: str | None = None,
    ):
        where = ":".join(str(part) for part in (path, line) if part is not None)
        message = f"{where}: {found}" if where else found
        if expected:
            message += f"; expected {expected}"
        if fix:
            message += f"; {fix}"

        # Parts from files or libraries may contain newlines.
        message = printable(" ".join(message.split()))
        if len(message) > _LONGEST:
            half = _LONGEST // 2
            message = f"{message[:half]} ... {message[-half:]}"
        super().__init__(message)


def raised_by(check: Callable, *arguments: Any) -> Iterator[UserError]:
    """Yields the errors that a check yields, or the one that it raises."""
    try:
        yield from check(*arguments) or ()
    except UserError as error:
        yield error


def raise_all(mistakes: list[UserError]) -> None:
    """Raises the first mistake, if any, with the others attached."""
    if mistakes:
        first, *others = mistakes
        first.others = tuple(others)
        raise first


def name_of(files: list[str]) -> str:
    """Formats files for a message: the first file and the number of others."""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{files[0]}{more}"


class StorageError(Exception):
    """Shared storage that does not answer; the same command may succeed later.

    Scripts print it on one line and exit with code 75. It is not an `OSError`,
    so that it is not handled like a missing or damaged file.

    Args:
        message: str. Path and cause.
    """

    exit_code = 75  # EX_TEMPFAIL

    def __init__(self, message: str):
        # An error from another process already ends with the advice.
        again = "; run the same command again"
        super().__init__(" ".join(message.split()).removesuffix(again) + again)


def check_packages(extra: str, *names: str, needed_by: str = "") -> None:
    """Checks that packages are installed, without importing them.

    Args:
        extra: str. Name of their requirements file,
            `requirements/<extra>.txt`.
        *names: str. Names of the packages in `import` statements.
        needed_by: str. The flag that needs them, for the message.

    Raises:
        UserError: some are missing.
    """
    missing = [x for x in names if importlib.util.find_spec(x) is None]
    if missing:
        raise missing_packages(extra, *missing, needed_by=needed_by)


def missing_packages(
    extra: str, *names: str, needed_by: str = "", path: str | None = None
) -> UserError:
    """Returns the error about packages that are missing or fail to import.

    Args:
        extra, *names, needed_by: see `check_packages`.
        path: str or None. The file that needs the packages.
    """
    where = f"{needed_by}: " if needed_by else ""
    return UserError(
        f"{where}missing packages: {', '.join(names)}",
        path=path,
        fix=f"in the checkout: pip install -r requirements/{extra}.txt",
    )
