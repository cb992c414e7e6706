"""Reads examples for classification: one or two texts and a label.

File      a path and its columns
read      File -> Table: its examples, with labels as in the file
label     Table -> examples with checked labels as numbers
"""

import dataclasses
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.common.progress import say
from bert.data import features, tables
from bert.data.label_kinds import CLASSES, MULTI_LABEL, REGRESSION, Labels
from bert.data.records.encoding import Feature, Schema

_LARGEST = 3.4e38  # of a float32


@dataclasses.dataclass(frozen=True)
class File:
    """A file of examples.

    Attributes:
        path: the file, see `data.tables`.
        text, text_b, label, id, group: columns; all but `text` are optional.
        header: whether line 1 has the column names.
        optional: "label" or "id", which is ignored if the file lacks its
            column; or "".
        keep: (column, value) of the rows to keep; None keeps all rows.
        delimiter: the delimiter of fields, see `tables.rows`.
        skip_broken: whether to skip and report rows with too few or too
            many fields, as in some published files, instead of failing.
        part: "", or a name such as "mismatched" for a second file.
        submission: the name of its predictions on the GLUE site, or "".
    """

    path: str
    text: tables.Column
    text_b: tables.Column | None = None
    label: tables.Column | None = None
    id: tables.Column | None = None
    header: bool = True
    optional: str = ""
    keep: tuple[tables.Column, str] | None = None
    delimiter: str | None = None
    skip_broken: bool = False
    part: str = ""
    submission: str = ""
    group: tables.Column | None = None


class TextExample(NamedTuple):
    """One or two texts with their label.

    Attributes:
        id: the id in the file, or the number of the example from 0.
        text: the first text.
        text_b: the second text, or "".
        label: the id of the class; a list of C zeros and ones; a number; or
            None if the example has no label. In a `Table`, the field.
        line: the first line of the example in the file, from 1.
        group: examples of a group stay in the same split; "" for no group.
    """

    id: str
    text: str
    text_b: str
    label: Any
    line: int
    group: str = ""


@dataclasses.dataclass(frozen=True)
class Table:
    """The examples of a file, whose labels are not checked yet.

    Attributes:
        file: the file; `label` is None if it lacks that column.
        names: the fields of line 1, or the column names.
        examples: the examples, in order.
    """

    file: File
    names: list[str]
    examples: list[TextExample]


def read(file: File) -> Table:
    """Reads a file; reports skipped rows.

    Raises:
        UserError: a line is invalid, or the file has no examples.
    """
    broken, names = [], []

    # Field of an example -> its column, if it has one.
    columns = {
        name: getattr(file, name)
        for name in ("text", "text_b", "label", "id", "group")
        if getattr(file, name) is not None
    }
    if file.keep:
        columns["keep"] = file.keep[0]

    # The file's columns are known once its line 1 is read.
    def choose(line_1: list[str]) -> list[tables.Column]:
        names.extend(line_1)
        present: list[tables.Column] = [*line_1]
        if file.optional == "id":
            present += range(-len(line_1), len(line_1))
        if columns.get(file.optional) not in present:
            columns.pop(file.optional, None)
        return list(columns.values())

    rows = tables.rows(
        file.path,
        choose,
        file.header,
        broken if file.skip_broken else None,
        file.delimiter,
    )

    examples = []
    for line, values in rows:
        # NaN, as pandas writes it, is a missing cell.
        values = [None if x != x else x for x in values]
        fields = dict(zip(columns, values, strict=True))
        if file.keep and fields["keep"] != file.keep[1]:
            continue

        group = fields.get("group")
        with json_files.reported(file.path, line=line):
            example = TextExample(
                tables.text_of(fields.get("id", len(examples)), "id"),
                tables.text_of(fields["text"], "text"),
                tables.text_of(fields.get("text_b", ""), "text_b"),
                fields.get("label"),
                line,
                tables.text_of("" if group is None else group, "group"),
            )
        examples.append(example)

    if broken:
        say(
            f"{file.path}: skipped {len(broken)} rows of the published file "
            "with too few or too many columns (lines "
            f"{tables.first_few(broken)})"
        )

    if not examples:
        kept = f" with {file.keep[1]!r}" if file.keep else ""
        expected = "one per line"
        if file.header:
            expected += " after the header"
        raise UserError(f"no example{kept}", path=file.path, expected=expected)
    file = dataclasses.replace(file, label=columns.get("label"))
    return Table(file, names, examples)


def discover(table: Table, labels: Labels) -> tuple[str, ...]:
    """Collects the labels of a file.

    Returns:
        the labels, sorted: numerically if all of them are whole numbers.

    Raises:
        UserError: a label is invalid, or the column does not look like labels.
    """
    path, header = table.file.path, table.file.header
    of_rows = _each(table, lambda example: _names(example.label, labels))
    count = Counter(itertools.chain.from_iterable(of_rows))

    # A unique label in line 1 is probably a header.
    first = next(filter(None, of_rows), [])
    others = [n for name, n in count.items() if [name] != first]
    if (
        first
        and not header
        and count[first[0]] == 1
        and min(others, default=0) > 1
    ):
        raise UserError(
            f"label {first[0][:60]!r} occurs only in this line",
            path=path,
            line=1,
            expected="a label",
            fix="if line 1 is a header, pass --header, else --labels",
        )

    if len(count) < 2 and labels.kind == CLASSES or not count:
        only = "".join(f": {name!r}" for name in count)
        raise UserError(
            f"{len(count) or 'no'} label{only}",
            path=path,
            expected="at least two different labels",
            fix="is this the right label column?",
        )

    # Mostly unique values are texts, ids or numbers, not labels.
    rare = sum(1 for n in count.values() if n == 1)
    if rare == len(count) > 20 or len(count) > 1000 and rare > len(count) // 2:
        raise UserError(
            f"{len(count):,} different labels, {rare:,} of them only once",
            path=path,
            expected="classes",
            fix="is this the label column? For numbers, pass --regression",
        )
    return in_order(count)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Sorts names, numerically if all of them are whole numbers."""
    if all(re.fullmatch(r"[+-]?\d+", name) for name in names):
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    return tuple(sorted(names))


def check_labelled(table: Table, kind: str) -> None:
    """Rejects unlabelled rows in a file for training or evaluation.

    Args:
        table: the table; its labels are not checked yet.
        kind: the kind of labels; an empty field is valid for MULTI_LABEL.

    Raises:
        UserError: labels are missing; the message has the number of rows.
    """
    lines = [
        example.line
        for example in table.examples
        if example.label is None
        or (kind != MULTI_LABEL and not str(example.label).strip())
    ]
    if lines:
        raise UserError(
            f"rows without a label: {len(lines):,} of "
            f"{len(table.examples):,} (lines {tables.first_few(lines)})",
            path=table.file.path,
            expected="a label in every row of a file for training or "
            "evaluation",
            fix="fill in the labels, or move these rows to --predict_file",
        )


def label(table: Table, labels: Labels, needed: bool) -> list[TextExample]:
    """Checks the labels of a table.

    Args:
        table: the table.
        labels: the valid labels.
        needed: bool. Whether each row must have a label, see
            `check_labelled`; if not, missing labels become None.

    Returns:
        the examples, with labels as numbers.

    Raises:
        UserError: a label is invalid, or line 1 is an example although a
            header is expected.
    """
    _check_header(table, labels)
    if table.file.label is None:
        return table.examples

    def checked(example: TextExample) -> TextExample:
        field = example.label
        if not needed and _is_absent(field, labels):
            return example._replace(label=None)

        if labels.kind == REGRESSION:
            return example._replace(label=_number(field))
        names = _names(field, labels)
        for name in names:
            if name not in labels.names:
                is_header = example.line == 1 and not table.file.header
                raise _unknown(name, labels, is_header)
        if labels.kind == CLASSES:
            return example._replace(label=labels.names.index(names[0]))
        bits = [int(name in names) for name in labels.names]
        return example._replace(label=bits)

    return _each(table, checked)


def schema(labels: Labels) -> Schema:
    """Schema of `data.records.examples.Examples`."""
    kind = "float32" if labels.kind == REGRESSION else "int64"
    size = labels.size if labels.kind == MULTI_LABEL else 1
    return {
        features.LABEL_IDS: Feature(kind, size=size),
        features.IS_REAL_EXAMPLE: Feature(),
    }


def _each(table: Table, function: Callable[[TextExample], Any]) -> list:
    """Calls a function on each example; adds path and line to errors."""
    results = []
    for example in table.examples:
        with json_files.reported(table.file.path, line=example.line):
            results.append(function(example))
    return results


def _names(field, labels: Labels) -> list[str]:
    """Names of the labels in a field."""
    values = [field]
    if labels.kind == MULTI_LABEL:
        if isinstance(field, list):
            values = field
        elif isinstance(field, str):
            if field.strip()[:1] + field.strip()[-1:] == "[]":
                raise UserError(
                    f"a list as text, {field[:60]!r}",
                    expected=f"labels separated by {labels.separator!r}",
                    fix="write the lists to a .jsonl file",
                )
            values = [x for x in field.split(labels.separator) if x.strip()]
    names = []
    for value in values:
        name = str(value).lower() if isinstance(value, bool) else value
        name = tables.text_of(name, "label").strip()
        if not name:
            raise UserError("no label")
        names.append(dict(labels.aliases).get(name, name))
    return names


def _is_absent(field, labels: Labels) -> bool:
    """Whether a label is missing in a row of a file for prediction."""
    if field is None:
        return True
    text = str(field).strip()
    # Test sets of Hugging Face have -1 for unknown labels.
    if labels.kind == CLASSES and "-1" not in labels.names:
        return text in ("", "-1", "-1.0")
    return not text and labels.kind != MULTI_LABEL


def _unknown(name: str, labels: Labels, is_header: bool) -> UserError:
    fix = "is this the right file and the right label column?"
    if is_header:
        fix = "it looks like a header, but this file should have none"
    valid = ", ".join(labels.names[:10])
    if labels.size > 10:
        valid += ", ..."
    return UserError(
        f"unknown label {name[:60]!r}", expected=f"one of {valid}", fix=fix
    )


def _number(field) -> float:
    try:
        number = float(field)
        if isinstance(field, bool) or not abs(number) < _LARGEST:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise UserError(
            f"label {str(field)[:60]!r}", expected="a number"
        ) from None
    return number


def _check_header(table: Table, labels: Labels) -> None:
    """Rejects a file with an example in line 1, where a header belongs."""
    file, fields = table.file, table.names
    if not file.header or tables.has_types(file.path):
        return

    # Labels and numbers are not column names.
    for column in (file.label, file.id):
        if not isinstance(column, int):
            continue
        value = fields[column].strip()
        names = {*labels.names, *dict(labels.aliases)}
        if value in names or _is_number(value):
            raise UserError(
                f"{value!r} in column {column}",
                path=file.path,
                line=1,
                expected="a header",
                fix="add a line with the column names before the data",
            )


def _is_number(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False
