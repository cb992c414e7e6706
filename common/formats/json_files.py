"""JSON files of strangers: read with limits, and checked by a schema.

_SCHEMA = {"kind": Kind(str), "labels": Kind(list, each=Kind(str))}
task = json_files.read(path, _SCHEMA)

For data, which are larger and less strict, see `json_data`.
"""

import dataclasses
import gzip
import json
import math
import re
import zlib
from typing import Any

from common import storage
from common.errors import UserError

LARGEST = 1 << 25  # bytes of config, manifest, tokenizer, labels
# A value of two bytes, such as `[]`, may need 200 bytes of memory when parsed.
# The number of values is therefore limited as well: one object or list per 64
# bytes of the maximum size, and one number or string per 16 bytes.
_BYTES_OF_OBJECT, _BYTES_OF_VALUE = 64, 16
_GZIP = b"\x1f\x8b"
_AT_ONCE = 1 << 20
NAME = "a name without a folder"
SHA256 = "64 hexadecimal digits"
_PATTERNS = {
    # Names of other folders would be read, and copied into a run.
    NAME: r"(?!\.{1,2}\Z)[^/\\\0]+",
    SHA256: "[0-9a-f]{64}",
}
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


@dataclasses.dataclass(frozen=True)
class Kind:
    """A value of JSON.

    Attributes:
        type: its type; an int is a float, too.
        at_least, at_most: range of a number, which then must be finite.
        pattern: NAME or SHA256, for a str.
        each: kind of the elements of a list, or of the values of a dict.
        is_required: whether the key must be there.
        is_nullable: whether null is accepted.
    """

    type: type
    at_least: float | None = None
    at_most: float = math.inf
    pattern: str | None = None
    each: "Kind | None" = None
    is_required: bool = True
    is_nullable: bool = False


def optional(kind: type, **limits) -> Kind:
    """Returns the kind of a value that may be missing or null."""
    return Kind(kind, **limits, is_required=False, is_nullable=True)


def read(
    path: str,
    schema: dict[str, Kind] | None = None,
    expected: str | None = None,
    fix: str | None = None,
    has_nan: bool = False,
) -> dict:
    """Reads a JSON object.

    Args:
        path: the file.
        schema: kinds of its values; further keys are ignored.
        expected, fix: for the message.
        has_nan: accept NaN and infinite numbers, which RFC 8259 has not.

    Returns:
        the object.

    Raises:
        UserError: the file is missing, no regular file, too large, no JSON,
            has a duplicate key, half of a surrogate pair, or another value
            than the schema expects.
    """
    content = read_bytes(path, LARGEST, expected)
    try:
        value = parse(content, has_nan)
        if not isinstance(value, dict):
            raise ValueError("not a JSON object")
        check(value, schema or {})
    except ValueError as error:
        raise UserError(
            f"{error}", path=path, expected=expected, fix=fix
        ) from None
    return value


def read_bytes(
    path: str, largest: int, expected: str | None = None, fix: str | None = None
) -> bytes:
    """Reads a whole JSON file, plain or compressed with gzip.

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
            return _read(file, path, largest, fix)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        found = f"damaged gzip file: {error}"
    except OSError as error:
        found = getattr(error, "strerror", None) or f"{error}"
    raise UserError(found, path=path, expected=expected)


def _read(file, path: str, largest: int, fix: str | None) -> bytes:
    is_packed = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    text = gzip.GzipFile(fileobj=file) if is_packed else file
    parts, size, objects, values = [], 0, 0, 0
    while part := text.read(_AT_ONCE):
        parts.append(part)
        size += len(part)
        objects += part.count(b"{") + part.count(b"[")
        values += part.count(b",")
        for name, found, most in (
            ("bytes", size, largest),
            ("objects", objects, largest // _BYTES_OF_OBJECT),
            ("values", values, largest // _BYTES_OF_VALUE),
        ):
            if found > most:
                raise UserError(
                    f"more than {most:,} {name}"
                    f"{' when decompressed' * is_packed}",
                    path=path,
                    expected="JSON that fits into memory",
                    fix=fix,
                )
    return b"".join(parts)


def parse(content: bytes, has_nan: bool = False) -> Any:
    """Parses strict JSON; for `has_nan`, see `read`.

    Raises:
        ValueError: it is no JSON, nested too deep, has a duplicate key, NaN,
            an infinite number or half of a surrogate pair.
    """
    try:
        value = json.loads(
            content.decode("utf-8-sig"),
            object_pairs_hook=_unique,
            parse_constant=None if has_nan else _reject,
        )
    except RecursionError:
        raise ValueError("not JSON: nested too deep") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"not JSON: {error}") from None
    if _SURROGATE.search(content):
        check_text(json.dumps(value, ensure_ascii=False))
    return value


def check_text(text: str, where: str = "") -> None:
    """Rejects half of a surrogate pair, which UTF-8 cannot encode.

    JSON may write a character beyond U+FFFF as a pair, "\\ud83d\\ude00"; a
    program that truncated the text inside a pair left half of it.

    Args:
        text: the text.
        where: start of the message.

    Raises:
        ValueError: the text has half of a pair.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = ord(text[error.start])
        raise ValueError(
            f"{where}holds half of a surrogate pair, \\u{half:04x}"
        ) from None


def check(value: Any, schema: dict[str, Kind], where: str = "") -> None:
    """Checks the keys and values of an object.

    Args:
        value: the object.
        schema: kind of each value; further keys are ignored.
        where: start of the names of its keys, for messages; without it the
            value must be an object.

    Raises:
        ValueError: a value is missing, or another than expected.
    """
    if not isinstance(value, dict):
        raise ValueError(
            f"{where.rstrip('.: ')} is {describe(value)}, expected an object"
        )
    for name, kind in schema.items():
        if name in value:
            check_value(value[name], kind, f"{where}{name}")
        elif kind.is_required:
            raise ValueError(f"{where}{name} is missing")


def check_value(value: Any, kind: Kind, where: str) -> None:
    """Checks a value; see `check`."""
    if value is None and kind.is_nullable:
        return
    accepted = (int, float) if kind.type is float else kind.type
    is_bool = isinstance(value, bool)  # which is an int, too
    if not isinstance(value, accepted) or is_bool != (kind.type is bool):
        raise ValueError(
            f"{where} is {describe(value)}, expected {_NAMES[kind.type]}"
        )
    limit = None
    if kind.pattern and not re.fullmatch(_PATTERNS[kind.pattern], value):
        limit = kind.pattern
    if kind.at_least is not None:
        if not -math.inf < value < math.inf:
            limit = "a finite number"
        elif value < kind.at_least:
            limit = f"at least {kind.at_least}"
        elif value > kind.at_most:
            limit = f"at most {kind.at_most:,}"
    if limit:
        raise ValueError(f"{where} is {value!r:.50}, expected {limit}")
    if kind.each:
        parts = value.items() if kind.type is dict else enumerate(value)
        for key, part in parts:
            check_value(part, kind.each, f"{where}[{key!r:.50}]")


def describe(value: Any) -> str:
    """Describes the type of a value for a message."""
    is_word = value is None or isinstance(value, bool)
    return json.dumps(value) if is_word else _NAMES[type(value)]


def _unique(pairs: list[tuple]) -> dict:
    values = dict(pairs)
    if len(values) < len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"duplicate key {key!r:.80}")
            seen.add(key)
    return values


def _reject(constant: str):
    raise ValueError(f"{constant} is no number")
