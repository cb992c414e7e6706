"""Predictions of lines of text or JSON, or rows of a table, as lines of JSON.

read -> examples -> PredictionPrinter.print
"""

import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bert.common import storage, text_lines
from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.data import tables
from bert.inference.predictor import Predictor, json_values
from bert.inference.settings import Settings

STDIN = "stdin"  # in messages
_CHUNK = 1 << 18  # maximum number of bytes read at once
_ROWS = 1024  # of a table, likewise


class Example(NamedTuple):
    """A line, or a row of a table.

    Attributes:
        line: line number, from 1.
        fields: the example for a `Predictor`, or the error in the line.
        kept: name -> value of fields that the output repeats.
    """

    line: int
    fields: dict | UserError
    kept: dict


def read(
    settings: Settings, predictor: Predictor, source: str
) -> Iterator[list[Example]]:
    """Yields the examples of the input file, or of standard input.

    Args:
        settings: settings of the script.
        predictor: the model.
        source: str. Name of the input, for messages.

    Raises:
        UserError: see `read_table`.
    """
    if settings.reads_table:
        yield from read_table(settings, predictor)
        return

    path, inputs = settings.input_file, settings.ordered(predictor.task.inputs)
    is_json = settings.json or json_files.is_json(path or "")
    opened = storage.open_file(path, "rb") if path else sys.stdin.buffer
    with opened as stream:
        yield from read_examples(stream, predictor, is_json, inputs, source)


def read_lines(stream) -> Iterator[list[bytes]]:
    """Yields all available lines, as soon as there are any.

    Of a line that is too long, only a prefix is yielded, which is still too
    long, so that `fields_of` rejects it.
    """
    # What has no newline yet waits in `rest` for the next chunk.
    rest, is_cut = b"", False
    while chunk := stream.read1(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        if is_cut and lines:
            del lines[0]  # the end of the cut line
            is_cut = False

        if is_cut:
            rest = b""
        elif len(rest) > text_lines.LONGEST_LINE:
            lines.append(rest)
            rest, is_cut = b"", True

        if lines:
            yield lines

    if rest:
        yield [rest]


def read_examples(
    stream,
    predictor: Predictor,
    is_json: bool,
    inputs: Sequence[str],
    source: str = STDIN,
) -> Iterator[list[Example]]:
    """Yields all available lines as examples, as soon as there are any.

    Args:
        stream: of bytes.
        predictor, is_json, inputs, source: as for `fields_of`.
    """
    numbers = itertools.count(1)
    for lines in read_lines(stream):
        examples = []
        for line, number in zip(lines, numbers):
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
    """Yields the rows of a table as examples, many at a time.

    Raises:
        UserError: the columns of the texts are unknown, or the file is
            damaged.
    """
    rows = _rows(settings, predictor)
    while examples := [*itertools.islice(rows, _ROWS)]:
        yield examples


def _rows(settings: Settings, predictor: Predictor) -> Iterator[Example]:
    path, inputs = settings.input_file, [*predictor.task.inputs]
    if predictor.has_choices:
        raise UserError(
            "a table cannot hold choices",
            path=path,
            fix="pass lines of JSON, by --json",
        )

    names = settings.text_column, settings.text_b_column
    texts = [tables.column_of(x) for x in names if x is not None]
    if len(texts) > len(inputs):
        inputs += predictor.task.optional_inputs
    if texts and len(texts) != len(inputs):
        raise UserError(
            f"{len(texts)} columns of texts",
            expected=f"{len(inputs)}, for {', '.join(inputs)}",
            fix="pass --text_column, and --text_b_column for the second",
        )
    ids = [tables.column_of(x) for x in [settings.id_column] if x is not None]
    columns = (texts or inputs) + ids

    def choose(names: list[str]) -> list[tables.Column]:
        if not texts and not set(inputs) <= set(names):
            raise UserError(
                f"no columns of these names: {', '.join(inputs)}",
                path=path,
                expected=f"some of {', '.join(names[:20])}",
                fix="pass --text_column, by name or number from 0, or "
                "--delimiter",
            )
        return columns

    # Columns by name need a header; by number, each row is data.
    header = any(isinstance(x, str) for x in columns)
    delimiter, broken = tables.delimiter_of(settings.delimiter), []
    for row in tables.rows(path, choose, header, broken, delimiter):
        yield from _broken(broken, path)
        fields: dict | UserError
        try:
            with json_files.reported(path, line=row.line):
                values = map(tables.text_of, row.values, inputs)
                fields = dict(zip(inputs, values))
        except UserError as error:
            fields = error

        # Of a Parquet file, an id may be a date or of another kind.
        kept = {}
        for value in row.values[len(inputs) :]:
            is_plain = value is None or isinstance(value, str | int)
            kept["id"] = value if is_plain else str(value)
        yield Example(row.line, fields, kept)
    yield from _broken(broken, path)


def _broken(lines: list[int], path: str) -> Iterator[Example]:
    """Examples of rows without columns; empties the list of them."""
    while lines:
        line = lines.pop(0)
        error = UserError("too few or too many columns", path=path, line=line)
        yield Example(line, error, {})


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
        line: bytes, without its newline.
        number: int. Line number, for messages.
        predictor: the model.
        is_json: bool. Whether the line is a JSON object.
        inputs: names of the fields of other lines, in order.
        source: str. Name of the input, for messages.

    Returns:
        the example, and the other values of a JSON object.

    Raises:
        UserError: the line is not valid.
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
    """The fields of a line of text; tabs separate them."""
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

    # All that are left are the choices.
    if has_choices:
        fields[most - 1 :] = [fields[most - 1 :]]
    return dict(zip(inputs, fields))


def to_json(
    prediction: dict, line: int, source: str = STDIN, kept: dict | None = None
) -> str:
    """Formats a prediction as JSON, after the values that are `kept`.

    Args:
        prediction: dict of JSON values.
        line: int. Number of the line in `source`, for messages.
        source: str. Name of the input.
        kept: values of the line to repeat.

    Raises:
        UserError: a number is not finite.
    """
    try:
        values = (kept or {}) | json_values(prediction)
        return json.dumps(values, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError):
        raise UserError(
            f"the prediction is {json.dumps(prediction, default=str)[:60]}",
            path=source,
            line=line,
            expected="finite numbers",
            fix="check the training of the model, and the text",
        ) from None


class PredictionPrinter:
    """Prints the prediction of each example, or the error in its line.

    Args:
        predictor: the model.
        batch_size: int. Maximum number of lines that are computed at once.
        strict: bool. Whether to raise the first error instead of printing it.
        source: str. Name of the input, for messages.
        signature: str. One of `task.signatures`; "": the first.

    Attributes:
        count: number of lines so far.
        errors: number of lines with an error.
        empty: number of lines without a text.
        truncated: number of lines that were truncated.
        replaced: names that both a line and its prediction have, in order.
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
        self.count = self.errors = self.empty = self.truncated = 0
        self.replaced: dict[str, None] = {}

    def print(self, examples: list[Example]) -> None:
        """Predicts and prints the next examples.

        Raises:
            UserError: with `strict`, after the predictions of the lines
                before.
        """
        for start in range(0, len(examples), self._batch_size):
            self._print(examples[start : start + self._batch_size])
            # The reader may be a program that waits for them.
            sys.stdout.flush()

    def _print(self, examples: list[Example]) -> None:
        self.count += len(examples)
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
                print(json.dumps(failure, ensure_ascii=False))

    def notes(self) -> list[str]:
        """Notes on the lines so far, for the user."""
        notes = []
        if self.errors:
            notes.append(
                "warning: lines with an error instead of a prediction: "
                f"{self.errors:,} of {self.count:,}"
            )

        if self.empty:
            notes.append(
                "note: empty lines, which are predicted like others: "
                f"{self.empty:,} of {self.count:,}"
            )

        if self.truncated:
            notes.append(
                "note: lines longer than the model's "
                f"{self._predictor.task.max_length:,} tokens, which were "
                f"truncated: {self.truncated:,} of {self.count:,}"
            )

        if self.replaced:
            notes.append(
                "note: values of the input are replaced by values of the "
                f"prediction with the same name: {', '.join(self.replaced)}"
            )

        return notes
