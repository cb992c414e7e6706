"""Answers to lines of text or JSON, as lines of JSON.

read_lines -> lines -> AnswerPrinter.print_answers
"""

import functools
import json
import sys
from collections.abc import Iterator
from typing import Annotated, TypedDict

import msgspec

from bert.common import text_lines
from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.serving import asking

STDIN = "stdin"  # in messages
_CHUNK = 1 << 18  # maximum number of bytes read at once


def read_lines(stream) -> Iterator[list[bytes]]:
    """Yields all available lines, as soon as there are any.

    Of a line that is too long, only a prefix is yielded, which is still too
    long, so that `fields_of` rejects it.
    """
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


def fields_of(
    line: bytes,
    number: int,
    model: asking.ServedModel,
    is_json: bool,
    source: str = STDIN,
) -> list:
    """Parses the texts of a line.

    Args:
        line: without its newline.
        number: line number, for messages.
        model: the model to call.
        is_json: whether the line is a JSON object.
        source: name of the input, for messages.

    Returns:
        a text for each input of the model; a list of texts for choices.

    Raises:
        UserError: if the line is not valid.
    """

    text_lines.check(line, source, number)
    text = text_lines.decode(line, source, number).removesuffix("\r")
    if not is_json:
        count = len(model.inputs)
        fields = [text] if count == 1 else text.split("\t")
        found = len(fields)
        if found < count or (found > count and not model.has_choices):
            raise UserError(
                f"{found} field{'s' * (found != 1)}",
                path=source,
                line=number,
                expected=f"{count} separated by tabs: "
                f"{', '.join(model.inputs)}",
            )
        if model.has_choices:
            fields[count - 1 :] = [fields[count - 1 :]]
        return fields
    expected = f"an object with strings: {', '.join(model.inputs)}"
    if model.has_choices:
        expected += ", the last a list of strings"
    with json_files.reported(source, expected, line=number):
        found = json_files.decode(
            text, _line_type(tuple(model.inputs), model.has_choices)
        )
    return [found[name] for name in model.inputs]


@functools.cache
def _line_type(names: tuple[str, ...], has_choices: bool) -> type:
    """Type of a line of JSON with these inputs."""
    kinds = dict.fromkeys(names, str)
    if has_choices:
        kinds[names[-1]] = Annotated[list[str], msgspec.Meta(min_length=1)]
    return TypedDict("Line", kinds)


def to_json(found: dict, number: int, source: str = STDIN) -> str:
    """Formats an answer, to line `number` of `source`, as JSON.

    Raises:
        UserError: if it contains a number that is not finite.
    """
    try:
        return json.dumps(found, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError):
        raise UserError(
            f"the answer is {json.dumps(found, default=str)[:60]}",
            path=source,
            line=number,
            expected="finite numbers",
            fix="check the training of the model, and the text",
        ) from None


class AnswerPrinter:
    """Prints the answer to each line, or the error in the line.

    Args:
        model: the model to call.
        is_json: whether lines are JSON objects.
        batch_size: maximum number of lines of a batch.
        strict: whether to raise the first error instead of printing it.
        source: name of the input, for messages.

    Attributes:
        count: number of lines so far.
        errors: number of lines with an error instead of an answer.
        empty: number of lines without a text.
        cut: number of lines that are longer than the model's sequences.
        max_seq_length: maximum number of tokens of these; 0 if unknown.
    """

    def __init__(
        self,
        model: asking.ServedModel,
        is_json: bool,
        batch_size: int,
        strict: bool,
        source: str = STDIN,
    ):
        self._model, self._is_json, self._source = model, is_json, source
        self._batch_size, self._strict = batch_size, strict
        self.count = self.errors = self.empty = self.cut = 0
        self.max_seq_length = 0

    def print_answers(self, lines: list[bytes]) -> None:
        """Answers the next lines.

        Raises:
            UserError: with `strict`, after the answers to the lines before.
        """
        found: list = []  # fields or error of each line
        first = self.count + 1
        for number, line in enumerate(lines, first):
            try:
                fields = fields_of(
                    line, number, self._model, self._is_json, self._source
                )
                found.append(fields)
            except UserError as error:
                found.append(error)
                if self._strict:
                    break
        self.count += len(found)
        valid = [x for x in found if not isinstance(x, UserError)]
        self._count_lengths(valid)
        answers = iter(asking.answer(self._model, valid, self._batch_size))
        for number, fields in enumerate(found, first):
            try:
                if isinstance(fields, UserError):
                    raise fields
                print(to_json(next(answers), number, self._source))
            except UserError as error:
                if self._strict:
                    raise
                self.errors += 1
                message = str(error).removeprefix(f"{self._source}:{number}: ")
                failure = {"error": message, "line": number}
                print(json.dumps(failure, ensure_ascii=False))
        sys.stdout.flush()

    def notes(self) -> list[str]:
        """Notes on the lines so far, for the user."""
        found = []
        if self.errors:
            found.append(
                "warning: lines with an error instead of an answer: "
                f"{self.errors:,} of {self.count:,}"
            )
        if self.empty:
            found.append(
                "note: empty lines, which are answered like others: "
                f"{self.empty:,} of {self.count:,}"
            )
        if self.cut:
            found.append(
                f"note: lines longer than the model's {self.max_seq_length:,} "
                f"tokens, which were cut: {self.cut:,} of {self.count:,}"
            )
        return found

    def _count_lengths(self, examples: list[list]) -> None:
        """Counts empty and long examples."""
        model = self._model
        self.empty += sum(not "".join(x[0]).strip() for x in examples)
        for start in range(0, len(examples), self._batch_size):
            if model.count_tokens:
                some = examples[start : start + self._batch_size]
                self.max_seq_length, counts = model.count_tokens(
                    asking.columns_of(model, some)
                )
                self.cut += int((counts > self.max_seq_length).sum())
