"""JSON that is checked by a schema, any type of msgspec, while it is read.

class Task(msgspec.Struct):
    kind: str
    labels: list[str]

task = json_files.read(path, Task)

Keys that a schema does not name are ignored.
"""

import codecs
import contextlib
import gzip
import json
import zlib
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from bert.common import storage
from bert.common.errors import UserError

LARGEST = 1 << 25  # bytes of config, manifest, tokenizer, labels
_GZIP = b"\x1f\x8b"

# Files of other folders would be read, and copied into a run.
Name = Annotated[str, msgspec.Meta(pattern=r"^(?!\.{1,2}\Z)[^/\\\0]+\Z")]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]


def is_json(path: str) -> bool:
    """Returns whether a file has JSON or JSON lines, by its name."""
    return path.removesuffix(".gz").endswith((".jsonl", ".json"))


def read(
    path: str,
    kind: Any = dict,
    expected: str | None = None,
    fix: str | None = None,
    has_nan: bool = False,
) -> Any:
    """Reads a JSON file.

    Args:
        path: the file, plain or compressed with gzip.
        kind: type of its value.
        expected, fix: for the message.
        has_nan: as for `decode`.

    Raises:
        UserError: the file cannot be read, is too large, or is not JSON of
            this type.
    """
    content = read_bytes(path, LARGEST, expected)
    with reported(path, expected, fix):
        return decode(content, kind, has_nan)


def read_bytes(
    path: str,
    largest: int,
    expected: str | None = None,
    fix: str | None = None,
) -> bytes:
    """Reads a whole file, plain or compressed with gzip.

    Args:
        path: the file.
        largest: maximum number of bytes, decompressed.
        expected: for the message.
        fix: for the message of a file that is too large.

    Raises:
        UserError: the file cannot be read, or is too large.
    """
    try:
        with storage.open_file(path, "rb") as file:
            is_packed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)

            # One byte too many is read at most: gzip may hold gigabytes.
            text = gzip.GzipFile(fileobj=file) if is_packed else file
            content = text.read(largest + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"damaged gzip file: {error}", path=path) from None
    except OSError as error:
        reason = getattr(error, "strerror", None) or f"{error}"
        raise UserError(reason, path=path, expected=expected) from None
    if len(content) > largest:
        raise UserError(f"more than {largest:,} bytes", path=path, fix=fix)
    return content


def decode(content: bytes | str, kind: Any = Any, has_nan: bool = False) -> Any:
    """Parses JSON.

    Args:
        content: the text.
        kind: type of the value.
        has_nan: whether NaN and infinite numbers, which RFC 8259 has not, are
            accepted.

    Raises:
        ValueError: it is not JSON of this type.
    """
    content = content.encode() if isinstance(content, str) else content
    try:
        # Python's parser takes NaN, that of msgspec does not.
        if has_nan:
            return msgspec.convert(json.loads(content), kind)
        return msgspec.json.decode(
            content.removeprefix(codecs.BOM_UTF8), type=kind
        )
    except RecursionError:
        raise ValueError("JSON is nested too deep") from None


@contextlib.contextmanager
def reported(
    path: str | None = None,
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


def to_json(value, **options) -> str:
    """Encodes a value as strict JSON: RFC 8259 has no NaN.

    Args:
        value: value to encode; numbers that are not finite become null.
        **options: arguments of `json.dumps`.

    Returns:
        the text.
    """
    try:
        return json.dumps(value, allow_nan=False, **options)
    except ValueError:
        # Slower, so only for values that need it.
        finite = json.loads(json.dumps(value), parse_constant=lambda _: None)
        return json.dumps(finite, **options)
