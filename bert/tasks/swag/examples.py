"""Reads multiple-choice examples: SWAG's CSV files, and JSON lines.

.csv    SWAG's columns sent1, sent2, ending0 .. ending3 and label: the first
        segment is sent1, the second is sent2 followed by an ending
.jsonl  {"context": "...", "choices": ["...", "..."], "label": 0}, with two
        or more choices

[CLS] She opens the box. [SEP] She looks in. [SEP]       choice 0
[CLS] She opens the box. [SEP] She eats the box. [SEP]   choice 1
"""

import dataclasses
import functools
import itertools

from bert.common.errors import UserError
from bert.common.formats import endings
from bert.common.formats.json_files import Json
from bert.data import tables
from bert.data.tables import Column, InputFile, TableSchema

_CONTEXT, _CHOICES, _LABEL = "context", "choices", "label"


@dataclasses.dataclass
class ChoiceExample:
    """A text and its possible continuations.

    Attributes:
        context: the first segment.
        choices: the second segments, two or more.
        label: index of the correct choice; None if unknown.
        line: line number in the file, from 1.
    """

    context: str
    choices: list[str]
    label: int | None
    line: int

    def texts(self) -> dict:
        """The fields of the example for `MultipleChoice.encode`."""
        return {"context": self.context, "choices": self.choices}


def read(path: str, labelled: bool) -> InputFile[ChoiceExample]:
    """Reads the `ChoiceExample`s of a file.

    Args:
        path: str. A table, see `data.tables`, with the columns of SWAG's
            files or of the JSON lines above.
        labelled: bool. Whether the examples must have labels.

    Raises:
        UserError: if the file cannot be read, a line is invalid, or the file
            has no examples.
    """
    schema = functools.partial(_schema_of, path, labelled)
    return tables.read(path, schema, _example)


def labels_of(examples: list[ChoiceExample]) -> list[int]:
    """Returns the labels of labelled examples."""
    return [x.label for x in examples if x.label is not None]


def _schema_of(path: str, labelled: bool, names: list[str]) -> TableSchema:
    """Returns the schema of a file, by the names of its columns."""
    label = {_LABEL: Column(_LABEL, None)} if labelled else {}
    numbered = map("ending{}".format, itertools.count())
    columns = [*itertools.takewhile(names.__contains__, numbered)]
    if _CHOICES in names or (endings.format_of(path) == "json" and not columns):
        lists = {_CONTEXT: Column(_CONTEXT), _CHOICES: Column(_CHOICES, _texts)}
        return lists | label
    if len(columns) < 2:
        raise UserError(
            f"{len(columns)} columns ending0, ending1, ..",
            path=path,
            line=1,
            expected="two or more; the names in the header are "
            f"{', '.join(names)[:200]}",
            fix="pass SWAG's train.csv or val.csv, not train_full.csv",
        )
    texts = ["sent1", "sent2", *columns]
    return {x: Column(x, tables.optional_text) for x in texts} | label


def _texts(value: Json, field: str) -> list[str]:
    """Checks a list of texts."""
    is_list = isinstance(value, list)
    if not (is_list and all(isinstance(x, str) for x in value)):
        raise UserError(
            f"{field} {repr(value)[:40]}", expected="a list of strings"
        )
    return value


def _example(line: int, **fields: Json) -> ChoiceExample:
    """Makes an example from the columns of either form."""
    is_labelled, label = _LABEL in fields, fields.pop(_LABEL, None)
    if _CHOICES in fields:
        context, choices = fields[_CONTEXT], fields[_CHOICES]
    else:
        # sent2 is the start of all endings, and may be empty.
        context, start, *endings = fields.values()
        choices = [f"{start} {x}".strip() if x.strip() else "" for x in endings]
        if isinstance(label, str) and label.strip().isdecimal():
            label = int(label)

    count = len(choices)
    if count < 2:
        raise UserError(
            "1 choice" if count else "0 choices", expected="two or more"
        )
    for number, choice in enumerate(choices):
        if not choice.strip():
            raise UserError(f"choice {number} is empty", expected="a text")
    if is_labelled and not (type(label) is int and 0 <= label < count):
        raise UserError(
            f"label {label!r}",
            expected=f"the index of the correct choice, 0 to {count - 1}",
        )
    return ChoiceExample(context, choices, label, line)
