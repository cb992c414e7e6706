"""Reads multiple-choice examples: SWAG's CSV files, and JSON lines.

.csv    SWAG's columns sent1, sent2, ending0 .. ending3 and label: the first
        segment is sent1, the second is sent2 followed by an ending
.jsonl  {"context": "...", "choices": ["...", "..."], "label": 0}, with two
        or more choices

[CLS] She opens the box. [SEP] She looks in. [SEP]       choice 0
[CLS] She opens the box. [SEP] She eats the box. [SEP]   choice 1
"""

import dataclasses

from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.data import tables
from bert.tasks.swag.settings import Settings

_LABEL = "label"
_ENDING = "ending"


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


def read(path: str, labelled: bool) -> list[ChoiceExample]:
    """Reads a file.

    Args:
        path: str. A .csv, .jsonl or .json file, which may have .gz appended;
            or a .parquet file with the same columns.
        labelled: bool. Whether the examples must have labels.

    Raises:
        UserError: if the file cannot be read, a line is invalid, or the file
            has no examples.
    """
    if not (tables.is_csv(path) or tables.has_types(path)):
        raise UserError(
            "is neither .csv nor .jsonl",
            path=path,
            expected="SWAG's CSV or JSON lines",
        )
    parse, examples = _of_lists, []

    # The format is inferred from the column names.
    def choose(names: list[str]) -> list[tables.Column]:
        nonlocal parse
        columns: list[tables.Column] = ["context", "choices"]
        is_swag = not json_files.is_json(path) or f"{_ENDING}0" in names
        if is_swag and "choices" not in names:
            parse, columns = _of_endings, _columns_of_endings(path, names)
        return columns + [_LABEL] * labelled

    for line, values in tables.rows(path, choose, header=True):
        with json_files.reported(path, line=line):
            context, choices, label = parse(values, labelled)
            _check(choices, label, labelled)
        examples.append(ChoiceExample(context, choices, label, line))
    if not examples:
        raise UserError("no examples", path=path, expected="one per line")
    return examples


def read_files(settings: Settings) -> dict[str, list[ChoiceExample]]:
    """Reads the files that the settings require.

    Returns:
        flag of a file -> its examples.

    Raises:
        UserError: a file is invalid, see `read`.
    """
    return {
        name: read(path, name != "predict_file")
        for name, path in settings.files.items()
    }


def _columns_of_endings(path: str, names: list[str]) -> list[tables.Column]:
    """Selects the columns of SWAG's files, without the label."""
    endings: list[tables.Column] = []
    while f"{_ENDING}{len(endings)}" in names:
        endings.append(f"{_ENDING}{len(endings)}")
    if len(endings) < 2:
        raise UserError(
            f"{len(endings)} columns {_ENDING}0, {_ENDING}1, ..",
            path=path,
            line=1,
            expected="two or more; the names in the header are "
            f"{', '.join(names)[:200]}",
            fix="pass SWAG's train.csv or val.csv, not train_full.csv",
        )
    return ["sent1", "sent2", *endings]


def _of_endings(values: list, labelled: bool) -> tuple:
    """Returns context, choices and label of a row of SWAG's files."""
    # Typed files may have null and numbers.
    values = ["" if x is None else str(x) for x in values]
    label = values.pop() if labelled else None
    if labelled and label.strip().isdecimal():
        label = int(label)
    context, start, *endings = values
    # sent2 is the start of all endings, and may be empty.
    choices = [f"{start} {x}".strip() if x.strip() else "" for x in endings]
    return context, choices, label


def _of_lists(values: list, labelled: bool) -> tuple:
    """Returns context, choices and label of a JSON line."""
    label = values.pop() if labelled else None
    context, choices = values
    if not isinstance(context, str):
        raise UserError(f"context {repr(context)[:40]}", expected="a string")
    if not isinstance(choices, list) or not all(
        isinstance(x, str) for x in choices
    ):
        raise UserError(
            f"choices {repr(choices)[:40]}", expected="a list of strings"
        )
    return context, choices, label


def _check(choices: list[str], label, labelled: bool) -> None:
    count = len(choices)
    if count < 2:
        raise UserError(
            "1 choice" if count else "0 choices", expected="two or more"
        )
    for number, choice in enumerate(choices):
        if not choice.strip():
            raise UserError(f"choice {number} is empty", expected="a text")
    if labelled and not (type(label) is int and 0 <= label < count):
        raise UserError(
            f"label {label!r}",
            expected=f"the index of the correct choice, 0 to {count - 1}",
        )
