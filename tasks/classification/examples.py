"""Examples of classification: one or two texts and a label.

Source    a file and its columns
Labels    the valid labels: one of several, any of several, or a number
examples  Source -> TextExample, with each label checked
encode    TextExample -> token ids, as `data.records.example_files` writes them
"""

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from common.errors import UserError
from data import features, sequences, tables

CLASSES, MULTI_LABEL, REGRESSION = "classes", "multi_label", "regression"
_AT_ONCE = 1024
_LARGEST = 3.4e38  # as float32


@dataclasses.dataclass(frozen=True)
class Source:
    """A file of examples.

    Attributes:
        path: the file, see `data.tables`.
        text, text_b, label, id: columns; all but `text` are optional.
        header: whether line 1 names the columns.
        needs_label: whether a null label is an error; if not, the label is
            None, as in files for prediction only.
        keep: (column, value) of the rows to keep; None keeps all rows.
        delimiter: the delimiter of fields, see `tables.rows`.
        eval_share: share of the examples of each label that are for
            evaluation; 0: the file is not divided.
        seed: seed of this choice.
        is_one_group: whether a share is drawn from all examples together, as
            of numbers and of several labels, instead of from each label.
        is_eval: whether the source has these examples, or the others.
        skip_broken: skip and report rows with too few or too many fields,
            which some published files have, instead of rejecting the file.
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
    eval_share: float = 0.0
    seed: int = 0
    is_one_group: bool = False
    is_eval: bool = False
    skip_broken: bool = False


@dataclasses.dataclass(frozen=True)
class Labels:
    """The valid labels of a task.

    Attributes:
        kind: CLASSES, one of the names; MULTI_LABEL, any number of them;
            REGRESSION, a number.
        names: names of the classes, in the order of their ids.
        aliases: pairs of another spelling in the files and its name.
        separator: for MULTI_LABEL, the separator of names in a field.
    """

    kind: str = CLASSES
    names: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    separator: str = ","

    @property
    def size(self) -> int:
        """C, the number of outputs of the network."""
        return 1 if self.kind == REGRESSION else len(self.names)


class TextExample(NamedTuple):
    """One or two texts with their label.

    Attributes:
        id: the id in the file, or the number of the example from 0.
        text: the first text.
        text_b: the second text, or "".
        label: the id of the class; a list of C zeros and ones; a number; or
            None if the example has no label.
        line: the line of the file that the example starts in, from 1.
    """

    id: str
    text: str
    text_b: str
    label: int | list[int] | float | None
    line: int


def examples(
    source: Source,
    labels: Labels,
    log: Callable[[str], None] | None = None,
) -> Iterator[TextExample]:
    """Yields the examples of a file.

    Args:
        source: the file and its columns.
        labels: the valid labels.
        log: called with a message about skipped rows, and with one about
            unusually long fields.

    Raises:
        UserError: a line is invalid, or the file has no examples.
    """
    broken: list[int] = []
    long: list[int] = []
    number = count = -1
    chosen = _examples_for_evaluation(source)
    for number, (line, found) in enumerate(_fields(source, broken, long)):
        if source.eval_share and (number in chosen) != source.is_eval:
            continue
        count += 1
        label = None
        if source.label is not None:
            label = _read_label(found["label"], labels, source, line)
        yield TextExample(
            _text(found.get("id", number), "id", source, line),
            _text(found["text"], "text", source, line),
            _text(found.get("text_b", ""), "text_b", source, line),
            label,
            line,
        )
    if broken and log:
        log(
            f"{source.path}: skipped {len(broken)} rows with too few or too "
            "many columns, as the published file has them (lines "
            f"{tables.first_few(broken)})"
        )
    if long and log:
        log(tables.describe_long(source.path, long))
    if count < 0:
        raise _no_example(source)


def _examples_for_evaluation(source: Source) -> set[int]:
    """Chooses examples by `eval_share`; returns their numbers, from 0."""
    if not source.eval_share:
        return set()
    by_label: dict[str, list[int]] = {}
    for number, (_, found) in enumerate(_fields(source, [], [])):
        key = "" if source.is_one_group else str(found["label"]).strip()
        by_label.setdefault(key, []).append(number)
    generator, chosen = np.random.default_rng(source.seed), set()
    for _, numbers in sorted(by_label.items()):
        # A label that occurs once is for training.
        wanted = max(1, round(source.eval_share * len(numbers)))
        drawn = generator.permutation(numbers)[: wanted * (len(numbers) > 1)]
        chosen.update(drawn.tolist())
    return chosen


def discover(source: Source, labels: Labels) -> tuple[str, ...]:
    """Collects the labels of a file.

    Returns:
        the labels, sorted: numerically if all of them are whole numbers.

    Raises:
        UserError: as in `examples`; or the column does not look like labels.
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
            f"label {first[0][:60]!r}, which occurs nowhere else",
            path=source.path,
            line=1,
            expected="a label",
            fix="if line 1 is a header, pass --header, else --labels",
        )
    if len(seen) < 2 and labels.kind == CLASSES or not seen:
        only = "".join(f": {name!r}" for name in seen)
        raise UserError(
            f"{len(seen) or 'no'} label{only}",
            path=source.path,
            expected="at least two different labels",
            fix="is this the right label column?",
        )
    rare = sum(1 for count in seen.values() if count == 1)
    if rare == len(seen) > 20 or len(seen) > 1000 and rare > len(seen) // 2:
        raise UserError(
            f"{len(seen):,} different labels, {rare:,} of them only once",
            path=source.path,
            expected="classes",
            fix="is this the label column? For numbers, pass --regression",
        )
    if all(_is_whole(name) for name in seen):
        return tuple(sorted(seen, key=lambda name: (int(name), name)))
    return tuple(sorted(seen))


def schema(labels: Labels) -> dict:
    """Schema of the records, for `data.records.example_files`."""
    from data.records.example_files import Feature

    kind = "float32" if labels.kind == REGRESSION else "int64"
    size = labels.size if labels.kind == MULTI_LABEL else 1
    return {
        features.LABEL_IDS: Feature(kind, size=size),
        features.IS_REAL_EXAMPLE: Feature(),
    }


def encode(
    some: Iterable[TextExample],
    ids_of_lines: Callable[[list[str]], list[list[int]]],
    special: tuple[int, int],
    max_seq_length: int,
    labels: Labels,
    on_length: Callable[[int], None] = lambda tokens: None,
) -> Iterator[dict]:
    """Yields the features of examples, truncated as in the original.

    Args:
        some: the examples; they are tokenized in groups of `_AT_ONCE`.
        ids_of_lines: function from texts to lists of token ids.
        special: ids of `[CLS]` and `[SEP]`.
        max_seq_length: S, the maximum number of tokens of an example.
        labels: the labels of the task; a missing label is written as 0, as in
            the original's files.
        on_length: called with the number of tokens of each example, special
            ones included, before it is truncated.

    Yields:
        feature name -> values, as `data.records.example_files` takes them.
    """
    some = iter(some)
    blank = [0] * labels.size if labels.kind == MULTI_LABEL else [0]
    while held := list(itertools.islice(some, _AT_ONCE)):
        texts = [text for e in held for text in (e.text, e.text_b)]
        ids = iter(ids_of_lines(texts))
        for example, a, b in zip(held, ids, ids, strict=True):
            added = 3 if b else 2
            on_length(len(a) + len(b) + added)
            a, b = sequences.truncate_pair(a, b, max_seq_length - added)
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
        expected="one per line" + " after the header" * source.header,
    )


def _fields(
    source: Source, broken: list[int], long: list[int]
) -> Iterator[tuple[int, dict]]:
    """Yields the line number and the named fields of each row to keep."""
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
        # NaN, as pandas writes it, is a missing cell.
        values = [None if x != x else x for x in values]
        found = dict(zip(columns, values, strict=True))
        if source.keep is None or found.pop("keep") == source.keep[1]:
            yield line, found


def _text(value, what: str, source: Source, line: int) -> str:
    """A field as text; also a number of a file with types."""
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
    """Names of the labels in a field."""
    several = labels.kind == MULTI_LABEL
    if isinstance(value, list) and several:
        values = value
    elif isinstance(value, str) and several:
        if value.strip()[:1] + value.strip()[-1:] == "[]":
            raise UserError(
                f"a list as text, {value[:60]!r}",
                path=source.path,
                line=line,
                expected=f"labels separated by {labels.separator!r}",
                fix="write the lists to a .jsonl file",
            )
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
    """A field as `TextExample.label`."""
    if not source.needs_label:
        text = str(value).strip()
        # Hugging Face's test files have -1.
        if labels.kind == CLASSES and "-1" not in labels.names:
            text = "" if text in ("-1", "-1.0") else text
        if value is None or not text and labels.kind != MULTI_LABEL:
            return None
    if value is None:
        raise UserError(
            "the label is null",
            path=source.path,
            line=line,
            expected="a label in every row of a file for training or "
            "evaluation",
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
    fix = "is this the right file and the right label column?"
    if line == 1 and not source.header:
        fix = "it looks like a header, but this file should have none"
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
        if isinstance(value, bool) or not abs(number) < _LARGEST:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
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
    """Rejects data in line 1 of a file with a header: it would be lost.

    Raises:
        UserError: the label or id column of line 1 has a label or a number.
    """
    if not source.header or tables.has_types(source.path):
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
                fix="add a line with the column names before the data",
            )


def _is_number(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False
