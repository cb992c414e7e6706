"""Reads JSON and validates it against a schema, which is any msgspec type.

    class Task(msgspec.Struct):
        kind: str
        labels: list[str]

    task = json_files.read(path, Task)

Keys that are not in the schema are ignored.
"""

import codecs
import contextlib
import gzip
import json
import zlib
from collections.abc import Iterator
from typing import Annotated, Any, TypeAlias

import msgspec

from bert.common import storage
from bert.common.errors import UserError

LARGEST = 1 << 25  # maximum bytes of a config, manifest, tokenizer or labels
_GZIP = b"\x1f\x8b"
_TRUNCATED = "Input data was truncated"  # message of msgspec

# A value of JSON: a dict, list, string, number, boolean or None.
Json: TypeAlias = Any

# A path here could make files of other folders be read and copied into a run.
Name = Annotated[str, msgspec.Meta(pattern=r"^(?!\.{1,2}\Z)[^/\\\0]+\Z")]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]


def read(
    path: str,
    kind: Any = dict,
    expected: str | None = None,
    fix: str | None = None,
    has_nan: bool = False,
) -> Any:
    """Reads a JSON file.

    Args:
        path: str. The file, plain or compressed with gzip.
        kind: type. Type of the value. Default: dict.
        expected, fix: str or None. Parts of the error message.
        has_nan: bool. Whether NaN and infinity are accepted, see `decode`.

    Raises:
        UserError: The file cannot be read, is too large, or is not JSON of
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
        path: str. The file.
        largest: int. Maximum number of bytes after decompression.
        expected: str or None. Part of the message if reading fails.
        fix: str or None. Part of the message if the file is too large.

    Raises:
        UserError: The file cannot be read or is too large.
    """
    try:
        with storage.open_file(path, "rb") as file:
            is_packed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)

            # At most one byte too many is read, as gzip may hold gigabytes.
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
        content: str or bytes. The JSON text.
        kind: type. Type of the value. Default: any type.
        has_nan: bool. Whether to accept NaN and infinity, which are not in
            RFC 8259. Default: False.

    Raises:
        ValueError: The text is not JSON of this type.
    """
    content = content.encode() if isinstance(content, str) else content
    try:
        # Python's parser accepts NaN, msgspec's parser does not.
        if has_nan:
            return msgspec.convert(json.loads(content), kind)
        return msgspec.json.decode(
            content.removeprefix(codecs.BOM_UTF8), type=kind
        )
    except RecursionError:
        raise ValueError("JSON is nested too deep") from None
    except msgspec.DecodeError as error:
        if str(error) == _TRUNCATED:
            raise ValueError(_describe_end(content)) from None
        raise


def _describe_end(content: bytes) -> str:
    """Describes JSON text that ends too early for msgspec."""
    if not content.strip():
        return "JSON is empty"
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return "JSON is incomplete"
    return r"JSON has half of a surrogate pair, such as \ud83d"


@contextlib.contextmanager
def reported(
    path: str | None = None,
    expected: str | None = None,
    fix: str | None = None,
    line: int | None = None,
) -> Iterator[None]:
    """Context manager that converts a `ValueError` to a `UserError`.

    Args:
        path, expected, fix, line: Parts of the message, see `UserError`.
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
        value: Value to encode; numbers that are not finite become null.
        **options: Arguments of `json.dumps`.

    Returns:
        str. The JSON text.
    """
    try:
        return json.dumps(value, allow_nan=False, **options)
    except ValueError:
        # This is slower, so it is only done for values with NaN or infinity.
        finite = json.loads(json.dumps(value), parse_constant=lambda _: None)
        return json.dumps(finite, **options)
