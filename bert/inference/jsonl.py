"""Predicts lines of text or JSON, or rows of a table; prints lines of JSON.

read -> examples -> PredictionPrinter.print
"""

import dataclasses
import functools
import itertools
import json
import math
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TextIO

from bert.common import text_lines
from bert.common.errors import CONTROLS, UserError
from bert.common.formats import json_files
from bert.common.formats.json_files import Json
from bert.data import table_rows, tables
from bert.data.row_settings import RowSettings
from bert.data.tables import Column
from bert.inference import example_parsing
from bert.inference.predictor import Predictor, json_values
from bert.tasks.task import Task

STDIN = "stdin"  # in messages
_ROWS = 1024  # maximum number of rows of a table that are read at once
_MOST_IDS = 1 << 20  # later ids are compared with these, to limit memory


class Example(NamedTuple):
    """A line of text or JSON, or a row of a table.

    Attributes:
        line: int. Line number, from 1.
        fields: dict or UserError. The example for a `Predictor`, or the error
            in the line.
        kept: dict. Name -> value of fields that the output repeats.
    """

    line: int
    fields: dict | UserError
    kept: dict


def read(
    settings: RowSettings,
    task: Task,
    path: str | None,
    inputs: Sequence[str],
    span: text_lines.Span | None = None,
    stream=None,
) -> Iterator[list[Example]]:
    """Yields the examples of a file, or of standard input.

    Args:
        settings: RowSettings. Columns and format of the rows.
        task: Task. The task that reads them.
        path: str or None. The file; None for standard input.
        inputs: sequence of str. Names of the fields, in the order of a line.
        span: Span or None. Rows to read, see `divide`. Default: None, all.
        stream: binary file or None. The open file. Default: None, open it.

    Raises:
        UserError: See `read_table`.
    """
    if path and settings.reads_table(path):
        yield from read_table(settings, task, path, span, stream)
        return

    source, is_json = path or STDIN, settings.reads_json(path)
    stream = stream if path else sys.stdin.buffer
    with text_lines.opened(source, stream) as file:
        yield from read_examples(file, task, is_json, inputs, source, span)


def divide(
    settings: RowSettings,
    task: Task,
    path: str,
    inputs: Sequence[str],
    num_bytes: float,
) -> Iterator[tuple[text_lines.Span, int]]:
    """Divides a file into ranges of whole rows, with their numbers of rows.

    Args:
        settings, task, path, inputs: See `read`.
        num_bytes: float. Size of a range.

    Raises:
        UserError: See `read_table`; or all rows of the file have an error.
    """
    first: UserError | None = None
    for example in itertools.chain.from_iterable(
        read(settings, task, path, inputs)
    ):
        if not isinstance(example.fields, UserError):
            break
        first = first or example.fields
    else:
        if first:
            raise first
    if not settings.reads_table(path):
        return text_lines.divide(path, num_bytes)
    _, header = _columns(settings, task, path)
    return table_rows.divide(path, num_bytes, header, settings.delimiter)


def read_examples(
    stream,
    task: Task,
    is_json: bool,
    inputs: Sequence[str],
    source: str = STDIN,
    span: text_lines.Span | None = None,
) -> Iterator[list[Example]]:
    """Yields lists of examples as soon as their lines are available.

    Args:
        stream: binary file, see `text_lines.blocks`.
        task, is_json, inputs, source: see `fields_of`.
        span: Span or None. Lines to read. Default: None, all lines.

    Raises:
        UserError: The file is not a text, by its first bytes.
    """
    for block in text_lines.blocks(span or text_lines.Span(source), stream):
        examples = []
        if block.line == 1:
            text_lines.check_start(block.content, source)
        lines = block.content.removesuffix(b"\n").split(b"\n")
        for number, line in enumerate(lines, block.line):
            try:
                parsed = fields_of(line, number, task, is_json, inputs, source)
                examples.append(Example(number, *parsed))
            except UserError as error:
                examples.append(Example(number, error, {}))

        yield examples


def read_table(
    settings: RowSettings,
    task: Task,
    path: str,
    span: text_lines.Span | None = None,
    stream=None,
) -> Iterator[list[Example]]:
    """Yields lists of examples, one for each row of a table.

    Args:
        settings, task, path, span, stream: See `read`.

    Raises:
        UserError: A given column is not an input of the model, the columns of
            the texts are unknown, or the file is damaged.
    """
    schema, header = _columns(settings, task, path)
    make = functools.partial(_example_of_row, path, task.optional_inputs)
    _, rows = tables.scan(
        path,
        schema,
        make,
        header,
        settings.delimiter,
        span=span,
        stream=stream,
    )
    examples = (
        Example(line, row, {}) if isinstance(row, UserError) else row
        for line, row in rows
    )
    while read := [*itertools.islice(examples, _ROWS)]:
        yield read


def _columns(
    settings: RowSettings, task: Task, path: str
) -> tuple[tables.TableSchema, bool]:
    """Returns the columns of a table, and whether line 1 has their names.

    Args:
        settings, task, path: See `read`.

    Raises:
        UserError: A given column is not an input of the model.
    """
    if example_parsing.has_choices(task):
        raise UserError(
            "a table cannot hold choices",
            path=path,
            fix="pass lines of JSON, with --json",
        )
    fields = (*task.inputs, *task.optional_inputs)
    if settings.text_b_column is not None and len(fields) == 1:
        raise UserError(
            f"--text_b_column={settings.text_b_column}",
            expected=f"a model of two texts; this model reads {fields[0]}",
            fix="omit the flag, or pass the column as --text_column",
        )

    # By default, the columns have the names of the inputs.
    given = {
        "text_column": settings.text_column,
        "text_b_column": settings.text_b_column,
    }
    schema = {
        field: Column(
            tables.column_of(field if name is None else name),
            None,
            name is None and field in task.optional_inputs,
            flag,
        )
        for field, (flag, name) in zip(fields, given.items())
        if name is not None
        or field in task.inputs
        or settings.text_column is None
    }
    if settings.id_column is not None:
        schema["id"] = Column(tables.column_of(settings.id_column), None)

    # Names of columns need a header. With numbers, the first row is data.
    return schema, any(isinstance(x.name, str) for x in schema.values())


def _example_of_row(
    path: str, optional: Sequence[str], line: int, **fields: Json
) -> Example:
    """Makes an example from the columns of a row."""
    kept = {"id": fields.pop("id")} if "id" in fields else {}

    # Ids in a Parquet file may be NaN or dates, which JSON does not have.
    found = kept.get("id")
    if isinstance(found, float) and not math.isfinite(found):
        kept["id"] = None
    elif not isinstance(found, str | int | float | None):
        kept["id"] = str(found)
    try:
        with json_files.reported(path, line=line):
            texts = {
                name: tables.text(x, name)
                for name, x in fields.items()
                if x is not None or name not in optional
            }
    except UserError as error:
        return Example(line, error, kept)
    return Example(line, texts, kept)


def fields_of(
    line: bytes,
    number: int,
    task: Task,
    is_json: bool,
    inputs: Sequence[str],
    source: str = STDIN,
) -> tuple[dict, dict]:
    """Parses a line.

    Args:
        line: bytes. The line without its newline.
        number: int. Line number in messages.
        task: Task. The task that reads them.
        is_json: bool. Whether the line is a JSON object.
        inputs: sequence of str. Names of the fields, in the order of a line
            that is not JSON.
        source: str. Name of the input in messages. Default: "stdin".

    Returns:
        the example, and the other values of a JSON object.

    Raises:
        UserError: The line is not valid.
    """
    text_lines.check(line, source, number)
    text = text_lines.decode(line, source, number).removesuffix("\r")
    if not is_json:
        return _split(text, task, inputs, source, number), {}

    with json_files.reported(source, "a JSON object", line=number):
        values = json_files.decode(text, dict)
    with json_files.reported(source, line=number):
        fields = example_parsing.parse(task, values)
    return fields, {k: x for k, x in values.items() if k not in fields}


def _split(
    text: str,
    task: Task,
    inputs: Sequence[str],
    source: str,
    line: int,
) -> dict:
    """Splits a line of text into its fields, which tabs separate."""
    most = len(inputs)
    fields: list = [text] if most == 1 else text.split("\t")
    count = len(fields)
    optional = task.optional_inputs
    lacks = any(name not in optional for name in inputs[count:])
    if lacks or (count > most and not example_parsing.has_choices(task)):
        may_lack = inputs[-1] in optional
        raise UserError(
            "1 field" if count == 1 else f"{count} fields",
            path=source,
            line=line,
            expected=f"{f'{most - 1} or ' * may_lack}{most} separated by tabs: "
            f"{', '.join(inputs)}",
        )

    # The remaining fields are the choices.
    if example_parsing.has_choices(task):
        fields[most - 1 :] = [fields[most - 1 :]]
    return dict(zip(inputs, fields))


def to_json(
    prediction: dict, line: int, source: str = STDIN, kept: dict | None = None
) -> str:
    """Formats a prediction as a JSON object, after the `kept` values.

    Args:
        prediction: dict. JSON values.
        line: int. Line number in messages.
        source: str. Name of the input in messages. Default: "stdin".
        kept: dict or None. Values of the line to repeat.

    Raises:
        UserError: A number is not finite.
    """
    try:
        return _dump((kept or {}) | json_values(prediction))
    except (ValueError, TypeError):
        raise UserError(
            f"the prediction is {json.dumps(prediction, default=str)[:60]}",
            path=source,
            line=line,
            expected="finite numbers",
            fix="check the text and the training of the model",
        ) from None


def _dump(values: dict) -> str:
    """Formats an object as a line for all readers, and for a terminal."""
    line = json.dumps(values, ensure_ascii=False, allow_nan=False)
    return CONTROLS.sub(lambda found: f"\\u{ord(found.group()):04x}", line)


@dataclasses.dataclass
class Counts:
    """Numbers of lines of each kind.

    Attributes:
        lines: int. Number of lines.
        errors: int. Number of lines with an error.
        empty: int. Number of lines without a text.
        truncated: int. Number of lines that were truncated.
        repeated: int. Number of lines with the `id` of an earlier line; of the
            same partition, if there are several.
        replaced: list of str. The names that occur both in a line and in its
            prediction.
        max_length: int. Longest sequence of the model in tokens.
    """

    lines: int = 0
    errors: int = 0
    empty: int = 0
    truncated: int = 0
    repeated: int = 0
    replaced: list[str] = dataclasses.field(default_factory=list)
    max_length: int = 0

    def add(self, other: "Counts") -> None:
        """Adds the numbers of other lines."""
        self.lines += other.lines
        self.errors += other.errors
        self.empty += other.empty
        self.truncated += other.truncated
        self.repeated += other.repeated
        self.replaced += [x for x in other.replaced if x not in self.replaced]
        self.max_length = max(self.max_length, other.max_length)

    def notes(self) -> list[str]:
        """Returns log lines about errors and unusual lines."""
        kinds = {
            "warning: lines with an error instead of a prediction": self.errors,
            "note: empty lines, which are predicted like other lines": (
                self.empty
            ),
            "note: lines that were truncated to the model's "
            f"{self.max_length:,} tokens": self.truncated,
            "note: lines with the id of an earlier line": self.repeated,
        }
        notes = [
            f"{kind}: {count:,} of {self.lines:,}"
            for kind, count in kinds.items()
            if count
        ]

        if self.replaced:
            notes.append(
                "note: values of the input were replaced by values of the "
                f"prediction with the same name: {', '.join(self.replaced)}"
            )
        return notes


class PredictionPrinter:
    """Prints the prediction of each example, or the error in its line.

    Args:
        predictor: Predictor. The model.
        batch_size: int. Maximum number of lines that are computed at once.
        strict: bool. Whether to raise the first error instead of printing it.
        source: str. Name of the input in messages. Default: "stdin".
        signature: str. One of `task.signatures`, or "" for the first.
            Default: "".
        file: text file or None. Default: None, standard output.
        names_file: bool. Whether an error names the source. Default: False.

    Attributes:
        counts: Counts. Numbers of lines so far.
        first_error: UserError or None. The first error of a line.
    """

    def __init__(
        self,
        predictor: Predictor,
        batch_size: int,
        strict: bool,
        source: str = STDIN,
        signature: str = "",
        file: TextIO | None = None,
        names_file: bool = False,
    ):
        self._predictor, self._source = predictor, source
        self._where = {"file": source} if names_file else {}
        self._signature, self._file = signature, file
        self._batch_size, self._strict = batch_size, strict
        self.counts = Counts(max_length=predictor.task.max_length)
        self.first_error: UserError | None = None
        self._ids: set[int] = set()  # hashes

    def print(self, examples: list[Example]) -> None:
        """Predicts and prints the next examples.

        Args:
            examples: list of Example. The examples.

        Raises:
            UserError: With `strict`, a line has an error. The predictions of
                the lines before it have been printed.
        """
        for start in range(0, len(examples), self._batch_size):
            self._print(examples[start : start + self._batch_size])
            # A program may be waiting for the predictions.
            (self._file or sys.stdout).flush()

    def _print(self, examples: list[Example]) -> None:
        counts = self.counts
        counts.lines += len(examples)
        self._count_ids(examples)
        is_error = [isinstance(x.fields, UserError) for x in examples]
        if self._strict and any(is_error):
            examples = examples[: is_error.index(True) + 1]

        valid = [x.fields for x in examples if isinstance(x.fields, dict)]
        valid = [self._predictor.signed(x, self._signature) for x in valid]
        first = self._predictor.task.inputs[0]
        counts.empty += sum(not x[first].strip() for x in valid)
        predictions, truncated = self._predictor.with_lengths(valid)
        counts.truncated += truncated
        rest = iter(predictions)

        for number, fields, kept in examples:
            try:
                if isinstance(fields, UserError):
                    raise fields
                prediction = next(rest)
                names = [x for x in kept if x in prediction]
                counts.add(Counts(replaced=names))
                line = to_json(prediction, number, self._source, kept)
                print(line, file=self._file)
            except UserError as error:
                if self._strict:
                    raise
                counts.errors += 1
                self.first_error = self.first_error or error
                message = str(error).removeprefix(f"{self._source}:{number}: ")
                failure = {"error": message, "line": number, **self._where}
                print(_dump(kept | failure), file=self._file)

    def _count_ids(self, examples: list[Example]) -> None:
        for found in (
            hash(repr(x.kept["id"])) for x in examples if "id" in x.kept
        ):
            self.counts.repeated += found in self._ids
            if len(self._ids) < _MOST_IDS:
                self._ids.add(found)
