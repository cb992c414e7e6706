"""Examples of classification: text, or two, and what is said about it.

Source    a file, and its columns
Labels    what a label may be: one of several, several, or a number
examples  Source -> Example, each label checked
rows      Example -> ids, as `data.records.example_files` has them
"""

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from common.errors import UserError
from data import features, sequences, tables

CLASSES, MULTI_LABEL, REGRESSION = "classes", "multi_label", "regression"
_AT_ONCE = 1024


@dataclasses.dataclass(frozen=True)
class Source:
    """A file of examples.

    Attributes:
        path: the file, see `data.tables`.
        text, text_b, label, id: columns; there may be no second text, no
            label and no id.
        header: line 1 names the columns.
        needs_label: null is no label, and an error; else it is None, as in
            files that are only predicted.
        keep: (column, value) that the rows must have, or None for all.
        delimiter: between fields, see `tables.rows`.
        skip_broken: leave rows with too few or too many fields out, which
            are said, not refused: published files have some.
    """

    path: str
    text: tables.Column
    text_b: tables.Column | None = None
    label: tables.Column | None = None
    id: tables.Column | None = None
    header: bool = True
    needs_label: bool = True
    keep: tuple[tables.Column, str] | None = None
    delimiter: str | None = None
    skip_broken: bool = False


@dataclasses.dataclass(frozen=True)
class Labels:
    """What the labels of a task may be.

    Attributes:
        kind: CLASSES, one of the names; MULTI_LABEL, any number of them;
            REGRESSION, a number.
        names: of the classes, in the order of their ids.
        aliases: other spellings in the files -> name.
        separator: between the names of a field, for MULTI_LABEL.
    """

    kind: str = CLASSES
    names: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    separator: str = ","

    @property
    def size(self) -> int:
        """C, outputs of the network."""
        return 1 if self.kind == REGRESSION else len(self.names)


class Example(NamedTuple):
    """A text, or two, of a task.

    Attributes:
        id: from the file, or the number of the row from 0.
        text: the first text.
        text_b: the second, or "".
        label: id of the class; C times 0 or 1; a number; None if the
            source has no labels, or the row of one that needs none.
    """

    id: str
    text: str
    text_b: str
    label: int | list[int] | float | None


def examples(
    source: Source,
    labels: Labels,
    tell: Callable[[str], None] | None = None,
) -> Iterator[Example]:
    """Yields the examples of a file.

    Args:
        source: the file and its columns.
        labels: what a label may be.
        tell: takes a line about rows that were left out, and one about
            fields that are longer than most.

    Raises:
        UserError: with the line, whatever is wrong with it; or there is no
            example.
    """
    broken: list[int] = []
    long: list[int] = []
    number = -1
    for number, (line, found) in enumerate(_fields(source, broken, long)):
        label = None
        if source.label is not None:
            label = _read_label(found["label"], labels, source, line)
        yield Example(
            _text(found.get("id", number), "id", source, line),
            _text(found["text"], "text", source, line),
            _text(found.get("text_b", ""), "text_b", source, line),
            label,
        )
    if broken and tell:
        tell(
            f"{source.path}: left out {len(broken)} rows with too few or too "
            "many columns, as the published file has them (lines "
            f"{tables.first_few(broken)})"
        )
    if long and tell:
        tell(tables.describe_long(source.path, long))
    if number < 0:
        raise _no_example(source)


def discover(source: Source, labels: Labels) -> tuple[str, ...]:
    """The labels of a file: sorted, as numbers if they are numbers.

    Raises:
        UserError: as `examples`; or there are fewer than two labels.
    """
    seen: Counter = Counter()
    first = None
    for line, found in _fields(source, [], []):
        names = _names(found["label"], labels, source, line)
        first = first or names  # [] while no row has a label
        seen.update(names)
    others = [count for name, count in seen.items() if [name] != first]
    if first is None:
        raise _no_example(source)
    if (
        first
        and not source.header
        and seen[first[0]] == 1
        and min(others, default=0) > 1
    ):
        raise UserError(
            f"label {first[0][:60]!r}, which is nowhere else",
            path=source.path,
            line=1,
            expected="a label",
            fix="if line 1 is a header, pass --header",
        )
    if len(seen) < 2 and labels.kind == CLASSES or not seen:
        only = "".join(f": {name!r}" for name in seen)
        raise UserError(
            f"{len(seen) or 'no'} label{only}",
            path=source.path,
            expected="two different ones at least",
            fix="is this the right label column?",
        )
    rare = sum(1 for count in seen.values() if count == 1)
    if len(seen) > 1000 and rare > len(seen) // 2:
        raise UserError(
            f"{len(seen):,} different labels, {rare:,} of them once",
            path=source.path,
            expected="classes",
            fix="is this the right label column? For numbers --regression",
        )
    if all(_is_whole(name) for name in seen):
        return tuple(sorted(seen, key=lambda name: (int(name), name)))
    return tuple(sorted(seen))


def label_schema(labels: Labels) -> dict[str, tuple[str, int]]:
    """Features of a record besides the encoder's inputs: (kind, size)."""
    kind = "float32" if labels.kind == REGRESSION else "int64"
    size = labels.size if labels.kind == MULTI_LABEL else 1
    return {
        features.LABEL_IDS: (kind, size),
        features.IS_REAL_EXAMPLE: ("int64", 1),
    }


def rows(
    some: Iterable[Example],
    ids_of_lines: Callable[[list[str]], list[list[int]]],
    special: tuple[int, int],
    max_seq_length: int,
    labels: Labels,
) -> Iterator[dict]:
    """Yields examples as ids, cut to fit as the original cuts them.

    Args:
        some: the examples; as many are held as one call tokenizes.
        ids_of_lines: texts to ids.
        special: ids of `[CLS]` and `[SEP]`.
        max_seq_length: S, pieces of a row at most.
        labels: what a label is; that of a row to be predicted is written
            as 0, as in the original's files, and is not read again.

    Yields:
        a row as of `data.records.example_files`.
    """
    some = iter(some)
    blank = [0] * labels.size if labels.kind == MULTI_LABEL else [0]
    while held := list(itertools.islice(some, _AT_ONCE)):
        texts = [text for e in held for text in (e.text, e.text_b)]
        ids = iter(ids_of_lines(texts))
        for example, a, b in zip(held, ids, ids, strict=True):
            a, b = sequences.truncate_pair(
                a, b, max_seq_length - (3 if b else 2)
            )
            joined, segments = sequences.join_pair(a, b, *special)
            label = example.label
            if not isinstance(label, list):
                label = blank if label is None else [label]
            yield {
                features.INPUT_IDS: joined,
                features.SEGMENT_IDS: segments,
                features.LABEL_IDS: label,
                features.IS_REAL_EXAMPLE: [1],
            }


def _no_example(source: Source) -> UserError:
    kept = f" with {source.keep[1]!r}" if source.keep else ""
    return UserError(
        f"no example{kept}",
        path=source.path,
        expected="one a line" + " behind the header" * source.header,
    )


def _fields(
    source: Source, broken: list[int], long: list[int]
) -> Iterator[tuple[int, dict]]:
    """Line and named values of each row that is kept."""
    columns = {
        name: getattr(source, name)
        for name in ("text", "text_b", "label", "id")
        if getattr(source, name) is not None
    }
    if source.keep:
        columns["keep"] = source.keep[0]
    table = tables.rows(
        source.path,
        list(columns.values()),
        source.header,
        broken if source.skip_broken else None,
        long,
        source.delimiter,
    )
    for line, values in table:
        found = dict(zip(columns, values, strict=True))
        if source.keep is None or found.pop("keep") == source.keep[1]:
            yield line, found


def _text(value, what: str, source: Source, line: int) -> str:
    """A field as text; a number of a .jsonl file too."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    found = "null" if value is None else repr(value)
    raise UserError(
        f"the {what} is {found}",
        path=source.path,
        line=line,
        expected="a string",
    )


def _names(value, labels: Labels, source: Source, line: int) -> list[str]:
    """The names of labels in a field."""
    several = labels.kind == MULTI_LABEL
    if isinstance(value, list) and several:
        values = value
    elif isinstance(value, str) and several:
        values = [x for x in value.split(labels.separator) if x.strip()]
    else:
        values = [value]
    names = []
    for one in values:
        name = str(one).lower() if isinstance(one, bool) else one
        name = _text(name, "label", source, line).strip()
        if not name:
            raise UserError("no label", path=source.path, line=line)
        names.append(dict(labels.aliases).get(name, name))
    return names


def _read_label(value, labels: Labels, source: Source, line: int):
    """A field as `Example.label`."""
    if value is None and not source.needs_label:
        return None
    if value is None:
        raise UserError(
            "the label is null",
            path=source.path,
            line=line,
            expected="a label in every row of a file that is trained on or "
            "scored",
        )
    if labels.kind == REGRESSION:
        return _read_number(value, source, line)
    ids = []
    for name in _names(value, labels, source, line):
        if name not in labels.names:
            raise _unknown(name, labels, source, line)
        ids.append(labels.names.index(name))
    if labels.kind == CLASSES:
        return ids[0]
    return [int(i in ids) for i in range(labels.size)]


def _unknown(name, labels: Labels, source: Source, line: int) -> UserError:
    known = ", ".join(labels.names[:10]) + ", ..." * (labels.size > 10)
    fix = "is this the right file, and its label column?"
    if line == 1 and not source.header:
        fix = "it looks like a header, which this file should not have"
    return UserError(
        f"unknown label {name[:60]!r}",
        path=source.path,
        line=line,
        expected=f"one of {known}",
        fix=fix,
    )


def _read_number(value, source: Source, line: int) -> float:
    try:
        number = float(value)
        if isinstance(value, bool) or not math.isfinite(number):
            raise ValueError
    except (TypeError, ValueError):
        raise UserError(
            f"label {str(value)[:60]!r}",
            path=source.path,
            line=line,
            expected="a number",
        ) from None
    return number


def _is_whole(name: str) -> bool:
    try:
        int(name)
    except ValueError:
        return False
    return True


def check_header(source: Source, labels: Labels) -> None:
    """Refuses a header that is a row of data: it would be lost, unseen.

    Raises:
        UserError: line 1 has a label of the task, or, where there are none,
            a number for an id.
    """
    if not source.header or tables.is_json(source.path):
        return
    fields = tables.header(source.path, source.delimiter)
    for column in (source.label, source.id):
        if not isinstance(column, int) or not (
            -len(fields) <= column < len(fields)
        ):
            continue
        value = fields[column].strip()
        names = {*labels.names, *dict(labels.aliases)}
        if value in names or _is_number(value):
            raise UserError(
                f"{value!r} in column {column}",
                path=source.path,
                line=1,
                expected="a header",
                fix="put a line with the names of the columns before the data",
            )


def _is_number(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False
