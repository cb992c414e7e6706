"""Reads examples for classification: one or two texts and a label.

columns   columns of a file -> its schema
read      file -> Table of examples, with labels as in the file
label     Table -> examples with checked labels as numbers
"""

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.data import features, tables
from bert.data.label_kinds import CLASSES, MULTI_LABEL, REGRESSION, Labels
from bert.data.records.encoding import Feature, Schema
from bert.data.sequences import FIRST_TOKENS, LongTexts
from bert.data.tables import Column, Table

TRAIN, DEV, TEST = "train", "dev", "test"
_KINDS = {"label": None, "group": tables.optional_text}


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
        language: the language in XNLI's files, else "".
    """

    id: str = ""
    text: str = ""
    text_b: str = ""
    label: Any = None
    line: int = 0
    group: str = ""
    language: str = ""


def columns(
    text: str | int | None,
    text_b: str | int | None = None,
    label: str | int | None = None,
    *,
    optional: Container[str] = (),
    **named: str | int | None,
) -> tables.Schema:
    """Makes the schema of a file of `TextExample`s.

    Args:
        text, text_b, label: str, int or None. Columns, see `tables.Column`;
            None for a field without a column.
        optional: container of str. Fields whose columns may be missing.
        **named: str, int or None. Columns of `id`, `group` and `language`.
    """
    given = {"text": text, "text_b": text_b, "label": label, **named}
    return {
        field: Column(name, _KINDS.get(field, tables.text), field in optional)
        for field, name in given.items()
        if name is not None
    }


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """One file of a run or of a task.

    Attributes:
        split: TRAIN, DEV or TEST.
        path: the file.
        examples: its examples.
        name: "", or a name such as "mismatched" for a second file.
        submission: the name of its predictions on the GLUE site, or "".
        schema: its columns, see `columns`.
        options: dict, more arguments of `Table.read`.
        sha256: SHA-256 hash of the file, in hex.
    """

    split: str
    path: str
    examples: list[TextExample] = dataclasses.field(default_factory=list)
    name: str = ""
    submission: str = ""
    schema: tables.Schema = dataclasses.field(default_factory=dict)
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    sha256: str = ""

    @property
    def labels(self) -> np.ndarray:
        """The labels: [N] for one label or number, int [N, C] for several."""
        labels = np.array([example.label for example in self.examples])
        return labels.astype("f4") if labels.dtype.kind == "f" else labels

    @property
    def is_labelled(self) -> bool:
        """Whether the examples are labelled.

        With MULTI_LABEL, some examples may be without labels, but not all.
        """
        labels = [example.label for example in self.examples]
        if isinstance(labels[0], list):
            return any(map(any, labels))
        return None not in labels

    def file(self, stem: str, ending: str) -> str:
        """A file name such as `test_results_mismatched.tsv`."""
        return f"{stem}{'_' if self.name else ''}{self.name}{ending}"


@dataclasses.dataclass(frozen=True)
class Data:
    """The labels, metrics and files of a task or of a run.

    Attributes:
        labels: the valid labels.
        metrics: names of metrics; the first selects the best checkpoint.
        parts: the files. Paths of a task are relative to --data_dir;
            `{language}` is a placeholder.
        has_pairs: whether examples have two texts.
        notes: lines to print: label counts and warnings.
        class_weights: weight of each label in the training loss; () if all
            are 1.
        long_texts: long-text handling: truncation or windows.
    """

    labels: Labels
    metrics: tuple[str, ...]
    parts: tuple[Part, ...]
    has_pairs: bool = False
    notes: tuple[str, ...] = ()
    class_weights: tuple[float, ...] = ()
    long_texts: LongTexts = FIRST_TOKENS

    def of(self, split: str) -> list[Part]:
        """The files of a split."""
        return [part for part in self.parts if part.split == split]

    def texts(self) -> Iterator[str]:
        """Yields the text of each example."""
        for part in self.parts:
            for example in part.examples:
                yield f"{example.text} {example.text_b}"

    def describe(self) -> dict:
        """Kind and names of the labels, as in `task.json`."""
        task = {"kind": self.labels.kind, "labels": list(self.labels.names)}
        return task | ({"pairs": True} if self.has_pairs else {})

    def describe_training(self) -> dict:
        """Inference settings for `task.json`: weights, long texts."""
        weights = list(self.class_weights)
        task = self.long_texts.described()
        return task | ({"class_weights": weights} if weights else {})

    def weights_by_name(self) -> dict[str, float]:
        """Name -> weight of each label in the loss; {} if all are 1."""
        return dict(zip(self.labels.names, self.class_weights))


def read(part: Part, language: str = "") -> Table:
    """Reads the `TextExample`s of a file, with labels as in the file.

    Args:
        part: the file.
        language: str. The language to read, if the file has several.

    Raises:
        UserError: a line is invalid, or the file has no examples.
    """
    table = Table.read(part.path, part.schema, TextExample, **part.options)
    rows = [x for x in table.rows if x.language in ("", language)]
    if not rows:
        raise UserError(f"no rows with {language!r}", path=part.path)
    if "id" not in table.cells:
        rows = [x._replace(id=str(i)) for i, x in enumerate(rows)]
    return dataclasses.replace(table, rows=rows)


def discover(table: Table, labels: Labels) -> tuple[str, ...]:
    """Collects the labels of a file.

    Returns:
        the labels, sorted: numerically if all of them are whole numbers.

    Raises:
        UserError: a label is invalid, or the column does not look like labels.
    """
    path, has_header = table.path, table.cells["label"] is not None
    of_rows = _each(table, lambda example: _names(example.label, labels))
    count = Counter(itertools.chain.from_iterable(of_rows))

    # A unique label in line 1 is probably a header.
    first = next(filter(None, of_rows), [])
    others = [n for name, n in count.items() if [name] != first]
    if (
        first
        and not has_header
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
        for example in table.rows
        if example.label is None
        or (kind != MULTI_LABEL and not str(example.label).strip())
    ]
    if lines:
        raise UserError(
            f"rows without a label: {len(lines):,} of "
            f"{len(table.rows):,} (lines {tables.first_few(lines)})",
            path=table.path,
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
    names = {*labels.names, *dict(labels.aliases)}
    table.check_header(names, "label", "id")
    has_header = table.cells.get("label") is not None

    def checked(example: TextExample) -> TextExample:
        field = example.label
        if not needed and _is_absent(field, labels):
            return example._replace(label=None)

        if labels.kind == REGRESSION:
            return example._replace(label=tables.number(field, "label"))
        found = _names(field, labels)
        for name in found:
            if name not in labels.names:
                is_header = example.line == 1 and not has_header
                raise _unknown(name, labels, is_header)
        if labels.kind == CLASSES:
            return example._replace(label=labels.names.index(found[0]))
        bits = [int(name in found) for name in labels.names]
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
    for example in table.rows:
        with json_files.reported(table.path, line=example.line):
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
        name = tables.text(name, "label").strip()
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
