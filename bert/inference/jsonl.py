"""Predicts lines of text or JSON, or rows of a table; prints lines of JSON.

read -> examples -> PredictionPrinter.print
"""

import functools
import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bert.common import text_lines
from bert.common.errors import CONTROLS, UserError
from bert.common.formats import endings, json_files
from bert.data import tables
from bert.data.tables import Column
from bert.inference.predictor import Predictor, json_values
from bert.inference.settings import Settings

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
    settings: Settings, predictor: Predictor, source: str
) -> Iterator[list[Example]]:
    """Yields the examples of the input file, or of standard input.

    Args:
        settings: Settings. Settings of the script.
        predictor: Predictor. The model.
        source: str. Name of the input in messages.

    Raises:
        UserError: See `read_table`.
    """
    if settings.reads_table:
        yield from read_table(settings, predictor)
        return

    path, inputs = settings.input_file, settings.ordered(predictor.task.inputs)
    is_json = settings.json or endings.format_of(path or "") == "json"
    opened = None if path else sys.stdin.buffer
    with text_lines.opened(source, opened) as stream:
        yield from read_examples(stream, predictor, is_json, inputs, source)


def read_examples(
    stream,
    predictor: Predictor,
    is_json: bool,
    inputs: Sequence[str],
    source: str = STDIN,
) -> Iterator[list[Example]]:
    """Yields lists of examples as soon as their lines are available.

    Args:
        stream: binary stream with `read1`.
        predictor, is_json, inputs, source: see `fields_of`.
    """
    for block in text_lines.blocks(text_lines.Span(source), stream):
        examples = []
        lines = block.content.removesuffix(b"\n").split(b"\n")
        for number, line in enumerate(lines, block.line):
            try:
                parsed = fields_of(
                    line, number, predictor, is_json, inputs, source
                )
                examples.append(Example(number, *parsed))
            except UserError as error:
                examples.append(Example(number, error, {}))

        yield examples


def read_table(
    settings: Settings, predictor: Predictor
) -> Iterator[list[Example]]:
    """Yields lists of examples, one for each row of a table.

    Args:
        settings: Settings. Settings of the script.
        predictor: Predictor. The model.

    Raises:
        UserError: A given column is not an input of the model, the columns of
            the texts are unknown, or the file is damaged.
    """
    path, task = settings.input_file, predictor.task
    if predictor.has_choices:
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
            tables.column_of(field if name is None else name), None, flag=flag
        )
        for field, (flag, name) in zip(fields, given.items())
        if name is not None or field in task.inputs
    }
    if settings.id_column is not None:
        schema["id"] = Column(tables.column_of(settings.id_column), None)

    # Names of columns need a header. With numbers, the first row is data.
    header = any(isinstance(x.name, str) for x in schema.values())
    make = functools.partial(_example_of_row, path)
    reader = tables.TableReader(path, schema, make, header, settings.delimiter)
    examples = (
        Example(line, row, {}) if isinstance(row, UserError) else row
        for line, row in reader
    )
    while read := [*itertools.islice(examples, _ROWS)]:
        yield read


def _example_of_row(path: str, line: int, **fields: Any) -> Example:
    """Makes an example from the columns of a row."""
    kept = {"id": fields.pop("id")} if "id" in fields else {}

    # Ids in a Parquet file may be dates or have other types.
    if not isinstance(kept.get("id"), str | int | None):
        kept["id"] = str(kept["id"])
    try:
        with json_files.reported(path, line=line):
            texts = {name: tables.text(x, name) for name, x in fields.items()}
    except UserError as error:
        return Example(line, error, kept)
    return Example(line, texts, kept)


def fields_of(
    line: bytes,
    number: int,
    predictor: Predictor,
    is_json: bool,
    inputs: Sequence[str],
    source: str = STDIN,
) -> tuple[dict, dict]:
    """Parses a line.

    Args:
        line: bytes. The line without its newline.
        number: int. Line number in messages.
        predictor: Predictor. The model.
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
        values = _split(text, predictor.has_choices, inputs, source, number)
        return values, {}

    with json_files.reported(source, "a JSON object", line=number):
        values = json_files.decode(text, dict)
    with json_files.reported(source, line=number):
        fields = predictor.parse(values)
    return fields, {k: x for k, x in values.items() if k not in fields}


def _split(
    text: str, has_choices: bool, inputs: Sequence[str], source: str, line: int
) -> dict:
    """Splits a line of text into its fields, which tabs separate."""
    most = len(inputs)
    fields: list = [text] if most == 1 else text.split("\t")
    count = len(fields)
    if count < most or (count > most and not has_choices):
        raise UserError(
            "1 field" if count == 1 else f"{count} fields",
            path=source,
            line=line,
            expected=f"{most} separated by tabs: {', '.join(inputs)}",
        )

    # The remaining fields are the choices.
    if has_choices:
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


class PredictionPrinter:
    """Prints the prediction of each example, or the error in its line.

    Args:
        predictor: Predictor. The model.
        batch_size: int. Maximum number of lines that are computed at once.
        strict: bool. Whether to raise the first error instead of printing it.
        source: str. Name of the input in messages. Default: "stdin".
        signature: str. One of `task.signatures`, or "" for the first.
            Default: "".

    Attributes:
        count: int. Number of lines so far.
        errors: int. Number of lines with an error.
        empty: int. Number of lines without a text.
        truncated: int. Number of lines that were truncated.
        repeated: int. Number of lines with the `id` of an earlier line.
        replaced: dict. Its keys are the names that occur both in a line and
            in its prediction.
    """

    def __init__(
        self,
        predictor: Predictor,
        batch_size: int,
        strict: bool,
        source: str = STDIN,
        signature: str = "",
    ):
        self._predictor, self._source = predictor, source
        self._signature = signature
        self._batch_size, self._strict = batch_size, strict
        self.count = self.errors = self.empty = 0
        self.truncated = self.repeated = 0
        self._ids: set[int] = set()  # hashes
        self.replaced: dict[str, None] = {}

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
            sys.stdout.flush()

    def _print(self, examples: list[Example]) -> None:
        self.count += len(examples)
        self._count_ids(examples)
        is_error = [isinstance(x.fields, UserError) for x in examples]
        if self._strict and any(is_error):
            examples = examples[: is_error.index(True) + 1]

        valid = [x.fields for x in examples if isinstance(x.fields, dict)]
        valid = [self._predictor.signed(x, self._signature) for x in valid]
        first = self._predictor.task.inputs[0]
        self.empty += sum(not x[first].strip() for x in valid)
        predictions, truncated = self._predictor.with_lengths(valid)
        self.truncated += truncated
        rest = iter(predictions)

        for number, fields, kept in examples:
            try:
                if isinstance(fields, UserError):
                    raise fields
                prediction = next(rest)
                self.replaced |= dict.fromkeys(
                    x for x in kept if x in prediction
                )
                print(to_json(prediction, number, self._source, kept))
            except UserError as error:
                if self._strict:
                    raise
                self.errors += 1
                message = str(error).removeprefix(f"{self._source}:{number}: ")
                failure = kept | {"error": message, "line": number}
                print(_dump(failure))

    def _count_ids(self, examples: list[Example]) -> None:
        for found in (
            hash(repr(x.kept["id"])) for x in examples if "id" in x.kept
        ):
            self.repeated += found in self._ids
            if len(self._ids) < _MOST_IDS:
                self._ids.add(found)

    def notes(self) -> list[str]:
        """Returns log lines about errors and unusual lines so far."""
        notes = []
        if self.errors:
            notes.append(
                "warning: lines with an error instead of a prediction: "
                f"{self.errors:,} of {self.count:,}"
            )

        if self.empty:
            notes.append(
                "note: empty lines, which are predicted like other lines: "
                f"{self.empty:,} of {self.count:,}"
            )

        if self.truncated:
            notes.append(
                "note: lines that were truncated to the model's "
                f"{self._predictor.task.max_length:,} tokens: "
                f"{self.truncated:,} of {self.count:,}"
            )

        if self.repeated:
            notes.append(
                "note: lines with the id of an earlier line: "
                f"{self.repeated:,} of {self.count:,}"
            )

        if self.replaced:
            notes.append(
                "note: values of the input were replaced by values of the "
                f"prediction with the same name: {', '.join(self.replaced)}"
            )

        return notes
