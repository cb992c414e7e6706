"""Edits of valid files: of bytes, JSON values and protos.

An edit is three numbers: what is done, where, and with which value. Hypothesis
draws them and makes them smaller; the functions here only follow them.
"""

import copy
import json
import struct

from hypothesis import strategies

Edit = tuple[int, int, int]
EDITS = strategies.lists(
    strategies.tuples(
        strategies.integers(0, 9),
        strategies.integers(0, 1 << 16),
        strategies.integers(0, 1 << 16),
    ),
    min_size=1,
    max_size=4,
)

_LARGEST_COPIES = 1 << 18  # bytes that an edit repeats
NUMBERS = [0, 1, -1, 2, 7, 255, 2**15, 2**31 - 1, 2**31, 2**32, 2**35, 2**62]
NUMBERS += [2**63 - 1, 2**63, 2**64 - 1, -(2**31), -(2**63), 10**9, 10**30]
STRINGS = ["", "a", "\n", "a\nb", "\r", "\t", " ", "\0", "../x", "/etc/passwd"]
STRINGS += [".", "..", "a/b", "\x1b[31m", "\u2028", "\u00e9", "[PAD]", "[MASK]"]
STRINGS += ["layer_x", "model.ckpt-7", "a" * 70_000, "%s", "{}", "null", "-1"]
VALUES = [None, True, False, 0.0, 0.5, -1.5, 1e308, float("nan")]
VALUES += [float("inf"), -float("inf"), "\ud800", [], {}, [[]], [None]]
VALUES += [{"a": 1}, [0] * 999, *NUMBERS, *STRINGS]
RAW = ["[" * 100_000, '{"a":' * 50_000, "NaN", "1e999", "9" * 5000, "-", ""]
RAW += ['{"a": 1, "a": 2}', '"\\ud800"', '"\\u0000"', "1.5e3", "tru", "}", "]]"]
RAW += ["[" * 900 + "]" * 900, "0" * 20 + "1", "'a'", '"' + "b" * 10**6 + '"']
BYTES = [b"", b"\0", b"\xff", b"\n", b"\r\n", b"\t", b",", b'"', b"\\", b" "]
BYTES += [
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"PK\3\4",
    b"\x1f\x8b",
    b"\xc3",
    b"\x80",
]
BYTES += [b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\0" * 999, b"a" * 99_999]
BYTES += [struct.pack("<q", x) for x in (-1, 0, 2**35, 2**62, 2**63 - 1)]
BYTES += [b"\xff" * 9 + b"\1", b"[" * 9999, b"-DOCSTART-", b"[UNK]\n"]


def pick(values: list, number: int):
    return values[number % len(values)]


def edit_bytes(content: bytes, edits: list[Edit]) -> bytes:
    """Changes, inserts, repeats and removes bytes."""
    for what, where, value in edits:
        at = where % (len(content) + 1)
        size = 1 + value % 64
        before, after = content[:at], content[at:]
        match what:
            case 0 if after:
                content = before + bytes([after[0] ^ 1 << value % 8])
                content += after[1:]
            case 1 | 2:
                content = before + pick(BYTES, value) + after
            case 3 | 4:
                content = before + pick(BYTES, value) + after[size:]
            case 5:
                content = before + after[size:]
            case 6:
                content = before
            case 7:
                content = before + after[:size] * (1 + value % 999)
                content += after[size:]
            case 8:
                content = before + after[size:] + after[:size]
            case 9:
                content = before + str(pick(NUMBERS, value)).encode() + after
    return content


def edit_json(value, edits: list[Edit]) -> bytes:
    """Changes parts of a value; returns JSON, more or less."""
    root, raw, last = [copy.deepcopy(value)], {}, []
    for edit in edits:
        what, where, number = edit
        parts = list(_parts(root))
        inside, key = pick(parts, where)
        match what:
            case 0 | 1:
                inside[key] = copy.deepcopy(pick(VALUES, number))
            case 2 if inside is not root:
                del inside[key]
            case 3:
                other, name = pick(parts, number)
                inside[key] = copy.deepcopy(other[name])
            case 4:
                inside[key] = [[inside[key]], {"a": inside[key]}][number % 2]
            case 5 if isinstance(inside, dict):
                inside[pick(STRINGS, number)] = inside.pop(key)
            case 5 | 6 if isinstance(inside[key], str):
                at = where % (len(inside[key]) + 1)
                text = pick([*STRINGS, "\ud800"], number)
                inside[key] = inside[key][:at] + text + inside[key][at:]
            case 6 if isinstance(inside[key], dict):
                new = copy.deepcopy(pick(VALUES, where))
                inside[key][pick(STRINGS, number)] = new
            case 7 if isinstance(inside[key], list):
                most = 1 + _LARGEST_COPIES // len(json.dumps(inside[key]))
                inside[key] *= min(1 + number % 99, most)
            case 8 | 7:
                inside[key] = f"raw{len(raw)}"
                raw[f'"raw{len(raw)}"'] = pick(RAW, number)
            case 9:
                last.append(edit)
    text = json.dumps(root[0], ensure_ascii=bool(edits[0][2] % 2))
    for name, replacement in raw.items():
        text = text.replace(name, replacement, 1)  # of repeated ones too
    return edit_bytes(text.encode("utf-8", "surrogatepass"), last)


def edit_message(message, edits: list[Edit]) -> bytes:
    """Changes fields of a proto; returns its bytes."""
    message, last = copy.deepcopy(message), []
    for edit in edits:
        if edit[0] == 9 and len(edits) % 4 == 1:
            last.append(edit)
            continue
        try:
            _edit_field(message, *edit)
        except (
            *(AttributeError, TypeError, ValueError),
            *(LookupError, ArithmeticError),
        ):
            continue  # the field takes no such value, or nothing is left
    return edit_bytes(message.SerializePartialToString(), last)


def _parts(value):
    """Yields (container, key) of all parts of a JSON value."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from _parts(value[key])


def _edit_field(message, what: int, where: int, number: int) -> None:
    owner, field = pick(list(_fields(message)), where)
    value = getattr(owner, field.name)
    if _is_map(field):
        key = pick(list(value), number)
        if what % 3 == 0:
            del value[key]
        elif what % 3 == 1:
            renamed = pick(STRINGS, where)
            if hasattr(value[key], "CopyFrom"):
                value[renamed].CopyFrom(value[key])
            else:
                value[renamed] = value[key]
        else:
            value[key] = pick([*NUMBERS, *STRINGS], number)
    elif field.is_repeated:
        at = number % len(value)
        if what % 3 == 0:
            del value[at]
        elif what % 3 == 1:
            size = value[at].ByteSize() if field.message_type else 1
            most = 1 + _LARGEST_COPIES // (1 + size)
            value.extend([value[at]] * min(1 + number % 999, most))
        elif field.message_type:
            _set_new(value[at], where, number)
        else:
            value[at] = _scalar(field, number)
    elif what % 4 == 0:
        owner.ClearField(field.name)
    elif field.message_type:
        _set_new(value, where, number)
    else:
        setattr(owner, field.name, _scalar(field, number))


def _set_new(message, where: int, number: int) -> None:
    """Sets any field of a message, whether or not it is set."""
    field = pick(list(message.DESCRIPTOR.fields), number)
    if field.is_repeated and not field.message_type:
        getattr(message, field.name).append(_scalar(field, where))
    elif field.is_repeated and not _is_map(field):
        getattr(message, field.name).add()
    elif field.message_type:
        getattr(message, field.name).SetInParent()
    else:
        setattr(message, field.name, _scalar(field, where))


def _scalar(field, number: int):
    if field.cpp_type == field.CPPTYPE_STRING:
        text = pick(STRINGS, number)
        is_bytes = field.type == field.TYPE_BYTES
        return pick(BYTES, number) if is_bytes else text
    if field.cpp_type in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
        return pick([0.0, -1.0, 1e308, float("nan"), float("inf")], number)
    if field.cpp_type == field.CPPTYPE_BOOL:
        return bool(number % 2)
    if field.cpp_type == field.CPPTYPE_ENUM:
        return pick([*range(30), 99, 2**31 - 1, -1], number)
    return pick(NUMBERS, number)


def _is_map(field) -> bool:
    kind = field.message_type
    return bool(kind) and kind.GetOptions().map_entry


def _fields(message):
    """Yields (message, field) of all that is set, at any depth."""
    for field, value in message.ListFields():
        yield message, field
        if not field.message_type:
            continue
        if _is_map(field):
            parts = [x for x in value.values() if hasattr(x, "ListFields")]
        else:
            parts = value if field.is_repeated else [value]
        for part in parts:
            yield from _fields(part)
