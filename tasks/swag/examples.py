"""Multiple-choice examples: SWAG's CSV files, and JSON lines.

.csv    SWAG's columns sent1, sent2, ending0 .. ending3 and label: the first
        segment is sent1, the second is sent2 followed by an ending
.jsonl  {"context": "...", "choices": ["...", "..."], "label": 0}, with two
        or more choices

[CLS] She opens the door. [SEP] She walks in. [SEP]        choice 0
[CLS] She opens the door. [SEP] She eats the door. [SEP]   choice 1
"""

import dataclasses
from collections.abc import Callable, Iterator

from common.errors import UserError
from common.formats import json_files
from data import features, sequences, tables

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


def read(
    path: str, labelled: bool, log: Callable[[str], None] | None = None
) -> Iterator[ChoiceExample]:
    """Yields the examples of a file.

    Args:
        path: a .csv, .jsonl or .json file, each also with .gz; or .parquet,
            with the columns of one of these.
        labelled: whether the examples must have labels.
        log: called with a line about unusually long fields, if there are any.

    Raises:
        UserError: if the file cannot be read, or a line is not an example.
    """
    if not (tables.is_csv(path) or tables.has_types(path)):
        raise UserError(
            "is neither .csv nor .jsonl",
            path=path,
            expected="SWAG's CSV or JSON lines",
        )
    long: list[int] = []
    is_json = json_files.is_json(path)
    if not is_json and tables.has_types(path):
        is_json = "choices" in tables.header(path)
    reader = _json if is_json else _csv
    for example in reader(path, labelled, long):
        _check(example, path, labelled)
        yield example
    if long and log:
        log(tables.describe_long(path, long))


class ChoiceFile:
    """The examples of a file, which each iteration reads again.

    Args:
        path, labelled, log: as for `read`.

    Attributes:
        choices: maximum number of choices of an example.

    Raises:
        UserError: as `read`, or there are no examples.
    """

    def __init__(self, path: str, labelled: bool, log: Callable[[str], None]):
        self._path, self._labelled = path, labelled
        self._count = self.choices = 0
        for example in read(path, labelled, log):
            self._count += 1
            self.choices = max(self.choices, len(example.choices))
        if not self._count:
            raise UserError("no examples", path=path, expected="one per line")

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[ChoiceExample]:
        return read(self._path, self._labelled)


def training_schema(choices: int) -> dict:
    """Schema of the records, for `data.records.example_files`."""
    from data.records.example_files import Feature

    return {
        features.LABEL_IDS: Feature(),
        features.CHOICE_WEIGHTS: Feature("float32", size=choices),
    }


class Featurizer:
    """Converts examples to features.

    Args:
        ids_of: text -> token ids.
        cls_id, sep_id, unk_id: ids of `[CLS]`, `[SEP]` and `[UNK]`.
        max_seq_length: maximum S; longer pairs are truncated as in the
            original.
        choices: C; examples with fewer choices are padded.

    Attributes:
        truncated: number of choices truncated so far.
    """

    def __init__(
        self,
        ids_of: Callable[[str], list[int]],
        cls_id: int,
        sep_id: int,
        unk_id: int,
        max_seq_length: int,
        choices: int,
    ):
        self._ids_of = ids_of
        self._cls, self._sep, self._unk = cls_id, sep_id, unk_id
        self._space = max_seq_length - 3
        self._choices = choices
        self.truncated = 0

    def featurize(self, example: ChoiceExample) -> dict:
        """Converts an example to features.

        Args:
            example: has at most C choices.

        Returns:
            input_ids and segment_ids, C lists each; label_ids, 0 if the label
            is unknown; choice_weights.
        """
        context = self._ids_of(example.context)
        pairs = []
        for choice in example.choices:
            # The tokenizer may drop all characters of a choice.
            choice = self._ids_of(choice) or [self._unk]
            self.truncated += len(context) + len(choice) > self._space
            a, b = sequences.truncate_pair(context, choice, self._space)
            pairs.append(sequences.join_pair(a, b, self._cls, self._sep))
        missing = self._choices - len(pairs)
        pairs += [sequences.join_pair([], [], self._cls, self._sep)] * missing
        weights = [1.0] * len(example.choices) + [0.0] * missing
        return {
            features.INPUT_IDS: [ids for ids, _ in pairs],
            features.SEGMENT_IDS: [segments for _, segments in pairs],
            features.LABEL_IDS: [example.label or 0],
            features.CHOICE_WEIGHTS: weights,
        }


def _csv(path: str, labelled: bool, long: list[int]) -> Iterator[ChoiceExample]:
    header = tables.header(path)
    endings = []
    while f"{_ENDING}{len(endings)}" in header:
        endings.append(f"{_ENDING}{len(endings)}")
    if len(endings) < 2:
        raise UserError(
            f"{len(endings)} columns {_ENDING}0, {_ENDING}1, ..",
            path=path,
            line=1,
            expected="two or more; the names in the header are "
            f"{', '.join(header)[:200]}",
            fix="pass SWAG's train.csv or val.csv, not train_full.csv",
        )
    label = [_LABEL] if labelled else []
    columns = ["sent1", "sent2", *endings, *label]
    for line, values in tables.rows(path, columns, header=True, long=long):
        # Files with types have null and numbers, too.
        values = ["" if x is None else str(x) for x in values]
        context, start, *choices = values
        found = choices.pop() if labelled else None
        if not all(x.strip() for x in choices):
            raise _empty(path, line, [x.strip() for x in choices].index(""))
        if labelled and not found.strip().isdecimal():
            raise _wrong_label(path, line, found, len(choices))
        # sent2 is the beginning of all endings, and may be empty.
        choices = [f"{start} {x}".strip() for x in choices]
        yield ChoiceExample(
            context, choices, int(found) if labelled else None, line
        )


def _json(
    path: str, labelled: bool, long: list[int]
) -> Iterator[ChoiceExample]:
    columns = ["context", "choices"] + [_LABEL] * labelled
    for line, values in tables.rows(path, columns, header=False, long=long):
        context, choices, *label = values
        if not isinstance(context, str):
            raise UserError(
                f"context {repr(context)[:40]}",
                path=path,
                line=line,
                expected="a string",
            )
        if not isinstance(choices, list) or not all(
            isinstance(x, str) for x in choices
        ):
            raise UserError(
                f"choices {repr(choices)[:40]}",
                path=path,
                line=line,
                expected="a list of strings",
            )
        if labelled and type(label[0]) is not int:
            raise _wrong_label(path, line, label[0], len(choices))
        yield ChoiceExample(
            context, choices, label[0] if labelled else None, line
        )


def _check(example: ChoiceExample, path: str, labelled: bool) -> None:
    count = len(example.choices)
    if count < 2:
        raise UserError(
            f"{count} choice{'s' * (count != 1)}",
            path=path,
            line=example.line,
            expected="two or more",
        )
    for number, choice in enumerate(example.choices):
        if not choice.strip():
            raise _empty(path, example.line, number)
    if labelled and not 0 <= example.label < count:
        raise _wrong_label(path, example.line, example.label, count)


def _empty(path: str, line: int, number: int) -> UserError:
    return UserError(
        f"choice {number} is empty", path=path, line=line, expected="a text"
    )


def _wrong_label(path: str, line: int, label, count: int) -> UserError:
    return UserError(
        f"label {label!r}",
        path=path,
        line=line,
        expected=f"the number of the correct choice, 0 to {count - 1}",
    )
