"""JSON files of strangers: read with limits, and checked by a schema.

_SCHEMA = {"kind": Kind(str), "labels": Kind(list, each=Kind(str))}
task = json_files.read(path, _SCHEMA)
"""

import dataclasses
import json
import math
import re
from typing import Any

from common import limits, storage
from common.errors import UserError

NAME = "a name without a folder"
SHA256 = "64 hexadecimal digits"
_PATTERNS = {
    # Names of other folders would be read, and copied into a run.
    NAME: r"(?!\.{1,2}\Z)[^/\\\0]+",
    SHA256: "[0-9a-f]{64}",
}
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclasses.dataclass(frozen=True)
class Kind:
    """A value of JSON.

    Attributes:
        type: its type; an int is a float, too.
        at_least, at_most: range of a number.
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
    try:
        if not storage.is_remote(path):
            storage.check_regular(path)
        with storage.open_file(path, "rb") as file:
            content = limits.read_json(file, path, limits.LARGEST_SETTINGS)
        value = parse(content, has_nan)
        if not isinstance(value, dict):
            raise ValueError("not a JSON object")
        check(value, schema or {})
        return value
    except UserError:
        raise
    except storage.errors() as error:
        found = getattr(error, "strerror", None) or error
        raise UserError(
            f"{found}", path=path, expected=expected, fix=fix
        ) from None
    except (ValueError, EOFError, *limits.DAMAGED_GZIP) as error:
        raise UserError(
            f"{error}", path=path, expected=expected, fix=fix
        ) from None


def parse(content: str | bytes, has_nan: bool = False) -> Any:
    """Parses strict JSON; for `has_nan`, see `read`.

    Raises:
        ValueError: it is no JSON, nested too deep, has a duplicate key, NaN,
            an infinite number or half of a surrogate pair.
    """
    try:
        value = json.loads(
            content,
            object_pairs_hook=_unique,
            parse_constant=None if has_nan else _reject,
        )
    except RecursionError:
        raise ValueError("not JSON: nested too deep") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"not JSON: {error}") from None
    raw = content.encode() if isinstance(content, str) else content
    if _SURROGATE.search(raw):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = ord(error.object[error.start])
            raise ValueError(
                f"holds half of a surrogate pair, \\u{half:04x}"
            ) from None
    return value


def check(value: Any, schema: dict[str, Kind], where: str = "") -> None:
    """Checks the keys and values of an object.

    Args:
        value: the object.
        schema: kind of each value; further keys are ignored.
        where: start of the names of its keys, for messages.

    Raises:
        ValueError: a value is missing, or another than expected.
    """
    if not isinstance(value, dict):
        raise ValueError(f"{where or 'a run'} is no object")
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
        found = f"of type {type(value).__name__}"
        raise ValueError(f"{where} is {found}, expected {kind.type.__name__}")
    limit = None
    if kind.pattern and not re.fullmatch(_PATTERNS[kind.pattern], value):
        limit = kind.pattern
    if kind.at_least is not None:
        if not kind.at_least <= value < math.inf:
            limit = f"at least {kind.at_least}"
        elif value > kind.at_most:
            limit = f"at most {kind.at_most:,}"
    if limit:
        raise ValueError(f"{where} is {value!r:.50}, expected {limit}")
    if kind.each:
        parts = value.items() if kind.type is dict else enumerate(value)
        for key, part in parts:
            check_value(part, kind.each, f"{where}[{key!r:.50}]")


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
