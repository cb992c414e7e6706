"""Answers to lines of text or JSON, or rows of a table, as lines of JSON.

read_examples or read_table -> examples -> AnswerPrinter.print_answers
"""

import functools
import itertools
import json
import sys
from collections.abc import Iterator
from typing import Annotated, NamedTuple, TypedDict

import msgspec

from bert.common import storage, text_lines
from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.data import tables
from bert.serving import asking, ranking
from bert.serving.predict_settings import Settings

STDIN = "stdin"  # in messages
_CHUNK = 1 << 18  # maximum number of bytes read at once
_ROWS = 1024  # of a table, likewise


class Example(NamedTuple):
    """A line, or a row, to answer.

    Attributes:
        line: line number, from 1.
        fields: a text for each input of the model, a list of texts for
            choices; or a query; or the error in the line.
        kept: name -> value of what its answer repeats.
    """

    line: int
    fields: list | ranking.Query | UserError
    kept: dict


def read(
    settings: Settings, model: asking.ServedModel, source: str
) -> Iterator[list[Example]]:
    """Yields the examples of the input file, or of standard input.

    Args:
        settings: of the script.
        model: the model to call.
        source: name of the input, for messages.

    Raises:
        UserError: see `read_table`.
    """
    if settings.reads_table:
        yield from read_table(settings, model)
        return

    path = settings.input_file
    is_json = settings.json or json_files.is_json(path or "")
    opened = storage.open_file(path, "rb") if path else sys.stdin.buffer
    with opened as stream:
        yield from read_examples(stream, model, is_json, source)


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
    stream, model: asking.ServedModel, is_json: bool, source: str = STDIN
) -> Iterator[list[Example]]:
    """Yields all available lines as examples, as soon as there are any.

    Args:
        stream: of bytes.
        model, is_json, source: as for `fields_of`.
    """
    numbers = itertools.count(1)
    for lines in read_lines(stream):
        examples = []
        for line, number in zip(lines, numbers):
            try:
                parsed = fields_of(line, number, model, is_json, source)
                examples.append(Example(number, *parsed))
            except UserError as error:
                examples.append(Example(number, error, {}))

        yield examples


def read_table(
    settings: Settings, model: asking.ServedModel
) -> Iterator[list[Example]]:
    """Yields the rows of a table as examples, many at a time.

    Raises:
        UserError: the columns of the texts are unknown, or the file is
            damaged.
    """
    rows = _rows(settings, model)
    while examples := [*itertools.islice(rows, _ROWS)]:
        yield examples


def _rows(settings: Settings, model: asking.ServedModel) -> Iterator[Example]:
    path, inputs = settings.input_file, model.inputs
    if model.has_choices:
        raise UserError(
            "a table cannot hold choices",
            path=path,
            fix="pass lines of JSON, by --json",
        )

    names = settings.text_column, settings.text_b_column
    texts = [tables.column_of(x) for x in names if x is not None]
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
        try:
            with json_files.reported(path, line=row.line):
                fields = [*map(tables.text_of, row.values, inputs)]
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
    model: asking.ServedModel,
    is_json: bool,
    source: str = STDIN,
) -> tuple[list | ranking.Query, dict]:
    """Parses the texts of a line.

    Args:
        line: without its newline.
        number: line number, for messages.
        model: the model to call.
        is_json: whether the line is a JSON object.
        source: name of the input, for messages.

    Returns:
        a text for each input of the model, a list of texts for choices, or
        a query; and what a JSON object has besides.

    Raises:
        UserError: if the line is not valid.
    """
    text_lines.check(line, source, number)
    text = text_lines.decode(line, source, number).removesuffix("\r")
    if not is_json:
        return _fields_of_text(text, number, model, source), {}

    expected = f"an object with strings: {', '.join(model.inputs)}"
    if model.has_choices:
        expected += ", the last a list of strings"
    with json_files.reported(source, expected, line=number):
        values = json_files.decode(text, dict)
    kind = _line_type(tuple(model.inputs), model.has_choices)
    is_query = ranking.is_query(values, model.inputs)
    if is_query:
        kind, expected = ranking.Query, ranking.EXPECTED

    with json_files.reported(source, expected, line=number):
        texts = msgspec.convert(values, kind)
    kept = {name: x for name, x in values.items() if name not in texts}
    return texts if is_query else [texts[x] for x in model.inputs], kept


def _fields_of_text(
    text: str, number: int, model: asking.ServedModel, source: str
) -> list:
    """The texts of a line that is no JSON; tabs separate them."""
    most = len(model.inputs)
    fields: list = [text] if most == 1 else text.split("\t")
    count = len(fields)
    if count < most or (count > most and not model.has_choices):
        raise UserError(
            "1 field" if count == 1 else f"{count} fields",
            path=source,
            line=number,
            expected=f"{most} separated by tabs: {', '.join(model.inputs)}",
        )

    # All that are left are the choices.
    if model.has_choices:
        fields[most - 1 :] = [fields[most - 1 :]]
    return fields


@functools.cache
def _line_type(names: tuple[str, ...], has_choices: bool) -> type:
    """Type of a line of JSON with these inputs."""
    kinds = dict.fromkeys(names, str)
    if has_choices:
        kinds[names[-1]] = Annotated[list[str], msgspec.Meta(min_length=1)]
    return TypedDict("Line", kinds)


def to_json(
    answer: dict, number: int, source: str = STDIN, kept: dict | None = None
) -> str:
    """Formats an answer, to line `number` of `source`, as JSON.

    What is `kept` of the line stands before it.

    Raises:
        UserError: if it contains a number that is not finite.
    """
    try:
        whole = (kept or {}) | answer
        return json.dumps(whole, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError):
        raise UserError(
            f"the answer is {json.dumps(answer, default=str)[:60]}",
            path=source,
            line=number,
            expected="finite numbers",
            fix="check the training of the model, and the text",
        ) from None


class AnswerPrinter:
    """Prints the answer to each example, or the error in its line.

    Args:
        model: the model to call.
        batch_size: maximum number of lines of a batch.
        strict: whether to raise the first error instead of printing it.
        source: name of the input, for messages.

    Attributes:
        count: number of lines so far.
        errors: number of lines with an error instead of an answer.
        empty: number of lines without a text.
        cut: number of lines that are longer than the model's sequences.
        max_seq_length: maximum number of tokens of these; 0 if unknown.
        replaced: names of what lines and their answers have, in order.
    """

    def __init__(
        self,
        model: asking.ServedModel,
        batch_size: int,
        strict: bool,
        source: str = STDIN,
    ):
        self._model, self._source = model, source
        self._batch_size, self._strict = batch_size, strict
        self.count = self.errors = self.empty = self.cut = 0
        self.max_seq_length = 0
        self.replaced: dict[str, None] = {}

    def print_answers(self, examples: list[Example]) -> None:
        """Answers the next examples.

        Raises:
            UserError: with `strict`, after the answers to the lines before.
        """
        self.count += len(examples)
        is_error = [isinstance(x.fields, UserError) for x in examples]
        if self._strict and any(is_error):
            examples = examples[: is_error.index(True) + 1]

        # Lines with an error take no place in a batch.
        rows = [*itertools.chain(*(self._rows(x.fields) for x in examples))]
        self._count_lengths(rows)
        answers = iter(asking.answer(self._model, rows, self._batch_size))

        for number, fields, kept in examples:
            try:
                if isinstance(fields, UserError):
                    raise fields
                if isinstance(fields, list):
                    answer = next(answers)
                else:
                    inputs = self._model.inputs
                    ranked = ranking.order(fields, inputs, answers)
                    answer = {"ranking": ranked}
                self.replaced |= dict.fromkeys(x for x in kept if x in answer)
                print(to_json(answer, number, self._source, kept))
            except UserError as error:
                if self._strict:
                    raise
                self.errors += 1
                message = str(error).removeprefix(f"{self._source}:{number}: ")
                failure = kept | {"error": message, "line": number}
                print(json.dumps(failure, ensure_ascii=False))

        # The reader may be a program that waits for them.
        sys.stdout.flush()

    def notes(self) -> list[str]:
        """Notes on the lines so far, for the user."""
        notes = []
        if self.errors:
            notes.append(
                "warning: lines with an error instead of an answer: "
                f"{self.errors:,} of {self.count:,}"
            )

        if self.empty:
            notes.append(
                "note: empty lines, which are answered like others: "
                f"{self.empty:,} of {self.count:,}"
            )

        if self.cut:
            notes.append(
                f"note: lines longer than the model's {self.max_seq_length:,} "
                f"tokens, which were cut: {self.cut:,} of {self.count:,}"
            )

        if self.replaced:
            notes.append(
                "note: of the lines, what the answers have by the same name "
                f"is not repeated: {', '.join(self.replaced)}"
            )

        return notes

    def _rows(self, fields: list | ranking.Query | UserError) -> list[list]:
        """The fields of all rows of the model that answer an example."""
        if isinstance(fields, UserError):
            return []
        if isinstance(fields, list):
            return [fields]
        inputs = self._model.inputs
        rows = ranking.rows_of(fields, inputs)
        return [[row[name] for name in inputs] for row in rows]

    def _count_lengths(self, examples: list[list]) -> None:
        """Counts empty and long examples."""
        model = self._model
        self.empty += sum(not "".join(x[0]).strip() for x in examples)
        if not model.count_tokens:
            return

        for start in range(0, len(examples), self._batch_size):
            batch = examples[start : start + self._batch_size]
            columns = asking.columns_of(model, batch)
            self.max_seq_length, counts = model.count_tokens(columns)
            self.cut += int((counts > self.max_seq_length).sum())
