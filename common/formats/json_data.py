"""JSON of data: SQuAD files, JSON lines, requests.

Only the values that are used are checked: others may be NaN, or have duplicate
keys or halves of surrogate pairs.
"""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from common.errors import UserError
from common.formats import json_files
from common.formats.json_files import Kind

LARGEST_MB = 128  # decompressed: SQuAD has 42


def is_json(path: str) -> bool:
    """Returns whether a file has JSON or JSON lines, by its name."""
    return path.removesuffix(".gz").endswith((".jsonl", ".json"))


def read(path: str, max_json_mb: int = LARGEST_MB) -> Any:
    """Reads JSON or JSON lines, plain or compressed with gzip.

    Args:
        path: the file.
        max_json_mb: megabytes of the largest file, decompressed.

    Returns:
        the value; for JSON lines, the list of values.

    Raises:
        UserError: the file cannot be read, is too large or is not JSON.
    """
    content = json_files.read_bytes(
        path,
        max_json_mb * 1_000_000,
        fix="split the file, or pass a larger --max_json_mb",
    )
    with reported(path):
        try:
            return parse(content)
        except ValueError as error:
            if "Extra data" not in str(error):
                raise
    values = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if line.strip():
            with reported(path, line=number):
                values.append(parse(line))
    return values


@contextlib.contextmanager
def reported(
    path: str | None,
    expected: str | None = None,
    fix: str | None = None,
    line: int | None = None,
) -> Iterator[None]:
    """Context that converts a `ValueError` to a `UserError` about a file.

    Args:
        path, expected, fix, line: for the message.
    """
    try:
        yield
    except ValueError as error:
        raise UserError(
            f"{error}", path=path, line=line, expected=expected, fix=fix
        ) from None


def parse(content: str | bytes) -> Any:
    """Parses JSON.

    Raises:
        ValueError: it is not JSON, or is nested too deep.
    """
    try:
        if isinstance(content, bytes):
            content = content.decode("utf-8-sig")
        return json.loads(content)
    except RecursionError:
        found = "nested too deep"
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        found = f"invalid UTF-8 byte {byte:#04x} at byte {error.start}"
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        found = f"{error.msg}, {line}column {error.colno}"
    raise ValueError(f"not JSON: {found}")


def parse_line(line: str) -> dict:
    """Parses a line of JSON lines, which must be an object.

    Raises:
        ValueError: it is not JSON, or not an object.
    """
    value = parse(line)
    if not isinstance(value, dict):
        raise ValueError(f"not an object: {line.strip()[:40]}")
    return value


def check(value: Any, schema: dict[str, Kind], where: str = "") -> None:
    """Checks values of an object like `json_files.check`, and their text.

    Raises:
        ValueError: a value is missing, is not as expected, or has half of a
            surrogate pair.
    """
    json_files.check(value, schema, where)
    for name in schema:
        check_text(value.get(name), f"{where}{name}")


def check_text(value: Any, where: str) -> None:
    """Rejects half of a surrogate pair, as `json_files.check_text`.

    Args:
        value: a string, a list that contains strings, or another value.
        where: name of the value in the message.

    Raises:
        ValueError: a string has half of a pair.
    """
    if isinstance(value, list):
        for part in value:
            check_text(part, where)
    elif isinstance(value, str):
        json_files.check_text(value, f"{where} ")
