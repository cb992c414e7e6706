"""Answers of an exported SavedModel to lines of text, as lines of JSON.

load -> ServedModel
read_lines -> lines -> AnswerPrinter.print_answers
"""

import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping

from common import storage, tensorflow_log
from common.errors import UserError
from common.flags import flag
from common.formats import json_data
from common.formats.json_files import Kind
from serving import bounds, known_exports

_STDIN = "stdin"
_CHUNK = 1 << 18  # maximum number of bytes read at once
_LONGEST = 1 << 24  # maximum number of bytes of a line
_RECORDS = "examples"  # an input of serialized records, not of text
_ORDER = ("text", "text_b", "question", "context")  # of the fields in a line

# Outputs that are lists padded with "": name -> {output: key of an element}.
LISTS = {
    "words": {
        "words": "word",
        "labels": "label",
        "word_starts": "start",
        "word_ends": "end",
        "probabilities": "probability",
    },
    "entities": {
        "entities": "entity",
        "types": "type",
        "starts": "start",
        "ends": "end",
        "scores": "score",
    },
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of predict.py."""

    model: str | None = flag(
        None, "Folder of the SavedModel.", required=True, path=True
    )
    trust_model: bool = flag(
        False,
        "Load a model that you did not export yourself: loading a SavedModel "
        "runs it as a program.",
    )
    signature: str = flag(
        "serving_default", "Signature to call; all its inputs must be text."
    )
    inputs: tuple[str, ...] | None = flag(
        None, "Names of the inputs, in the order of the fields of a line."
    )
    json: bool = flag(
        False, 'Read lines of JSON objects, such as {"text": "..."}.'
    )
    batch_size: int = flag(
        32, "Maximum number of lines of a batch.", at_least=1
    )
    timeout: float = flag(
        600.0,
        "Seconds for loading the model, and for each batch; 0: unlimited.",
        at_least=0.0,
    )
    strict: bool = flag(
        False, "Exit with code 2 at the first line that cannot be answered."
    )

    def check(self) -> None:
        """Checks the folder of the model.

        Raises:
            UserError: if it contains no SavedModel, or one of unknown source.
        """
        if not storage.is_file(os.path.join(self.model, "saved_model.pb")):
            raise UserError(
                "no saved_model.pb",
                path=self.model,
                expected="a folder that was written by --export_dir"
                if storage.is_folder(self.model)
                else "an existing folder",
            )
        if not self.trust_model and not known_exports.is_known(self.model):
            raise UserError(
                "not among the exports of this user",
                path=self.model,
                fix="loading a SavedModel runs it as a program: if you trust "
                "its source, pass --trust_model",
            )


@dataclasses.dataclass(frozen=True)
class ServedModel:
    """A loaded signature.

    Attributes:
        call: name -> string [B] or [B, C] to name -> array [B, ...].
        inputs: names of the inputs, in the order of the fields of a line.
        has_choices: whether the last input is [B, C]; it takes all remaining
            fields of a line, padded with "".
    """

    call: Callable[[dict], dict]
    inputs: list[str]
    has_choices: bool = False


def load(settings: Settings) -> ServedModel:
    """Loads the model, after a scan of its graph.

    Args:
        settings: checked, so that the model is trusted.

    Raises:
        UserError: if the scan rejects it, or it has no such signature.
    """
    import tensorflow as tf

    from modeling import hub

    with bounds.deadline(settings.timeout, settings.model):
        loaded = hub.load(settings.model, trust_model=True)
    texts = {}
    signatures = getattr(loaded, "signatures", None)
    # An object of the model may have this name.
    if not isinstance(signatures, Mapping):
        signatures = {}
    for name, function in signatures.items():
        specs = function.structured_input_signature[1]
        ranks = {name: spec.shape.rank for name, spec in specs.items()}
        lists = sum(rank == 2 for rank in ranks.values())
        if (
            lists <= 1
            and _RECORDS not in specs
            and all(
                spec.dtype == tf.string and spec.shape.rank in (1, 2)
                for spec in specs.values()
            )
        ):
            order = sorted(specs, key=lambda x: (ranks[x], _order_of(x), x))
            texts[name] = (function, order, bool(lists))
    if settings.signature not in texts:
        raise UserError(
            f"no signature {settings.signature!r} with text inputs",
            path=settings.model,
            expected=f"one of {', '.join(texts) or 'none'}",
        )
    function, names, has_choices = texts[settings.signature]
    inputs = list(settings.inputs or names)
    if sorted(inputs) != sorted(names) or (
        has_choices and inputs[-1] != names[-1]
    ):
        raise UserError(
            f"--inputs={','.join(inputs)}",
            path=settings.model,
            expected=", ".join(names),
        )

    first = iter([tensorflow_log.held_back()])  # when the graph is optimized

    def call(strings):
        quietly = next(first, contextlib.nullcontext())
        limit = bounds.deadline(settings.timeout, settings.model)
        texts = {name: tf.constant(x, tf.string) for name, x in strings.items()}
        try:
            with limit, quietly:
                outputs = function(**texts)
        except tf.errors.OpError as error:
            raise UserError(
                f"cannot be run: {error.message}", path=settings.model
            ) from None
        return {
            name: _rows(name, value.numpy(), len(strings[names[0]]), settings)
            for name, value in outputs.items()
        }

    return ServedModel(call, inputs, has_choices)


def _rows(name: str, value, count: int, settings: Settings):
    """Checks that an output has a row for each line."""
    if value.ndim == 0 or len(value) != count:
        raise UserError(
            f"the output {name!r} has the shape {list(value.shape)}",
            path=settings.model,
            expected=f"{count} rows, one for each line",
        )
    return value


def _order_of(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


def read_lines(stream) -> Iterator[list[bytes]]:
    """Yields all available lines, as soon as there are any.

    Of a line of more than _LONGEST bytes, only a prefix is yielded, which is
    still too long, so that `fields_of` rejects it.
    """
    rest, is_cut = b"", False
    while chunk := stream.read1(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        if is_cut and lines:
            del lines[0]  # the end of the cut line
            is_cut = False
        if is_cut:
            rest = b""
        elif len(rest) > _LONGEST:
            lines.append(rest)
            rest, is_cut = b"", True
        if lines:
            yield lines
    if rest:
        yield [rest]


def fields_of(
    line: bytes, number: int, model: ServedModel, is_json: bool
) -> list:
    """Parses the texts of a line.

    Args:
        line: without its newline.
        number: line number, for messages.
        model: the model to call.
        is_json: whether the line is a JSON object.

    Returns:
        a text for each input of the model; a list of texts for choices.

    Raises:
        UserError: if the line is not valid.
    """

    def wrong(found: str, expected: str) -> UserError:
        return UserError(found, path=_STDIN, line=number, expected=expected)

    if len(line) > _LONGEST:
        raise wrong(
            f"more than {_LONGEST:,} bytes without a newline",
            "one text per line",
        )
    try:
        text = line.decode("utf-8").removesuffix("\r")
    except UnicodeDecodeError as error:
        byte = line[error.start]
        raise wrong(f"invalid UTF-8 byte 0x{byte:02x}", "UTF-8") from None
    if not is_json:
        count = len(model.inputs)
        fields = [text] if count == 1 else text.split("\t")
        found = len(fields)
        if found < count or (found > count and not model.has_choices):
            raise wrong(
                f"{found} field{'s' * (found != 1)}",
                f"{count} separated by tabs: {', '.join(model.inputs)}",
            )
        if model.has_choices:
            fields[count - 1 :] = [fields[count - 1 :]]
        return fields
    expected = f"an object with strings: {', '.join(model.inputs)}"
    schema = dict.fromkeys(model.inputs, Kind(str))
    if model.has_choices:
        expected += ", the last a list of strings"
        schema[model.inputs[-1]] = Kind(list, each=Kind(str))
    with json_data.reported(_STDIN, expected, line=number):
        found = json_data.parse_line(text)
        json_data.check(found, schema)
        if model.has_choices and not found[model.inputs[-1]]:
            raise ValueError("no choices")
    return [found[name] for name in model.inputs]


def answer(
    model: ServedModel, examples: list[list], batch_size: int
) -> list[dict]:
    """Answers examples, in batches of similar lengths.

    Args:
        model: the model to call.
        examples: fields of each line, from `fields_of`.
        batch_size: maximum number of examples of a batch.

    Returns:
        the answer to each example, in order.
    """
    order = sorted(range(len(examples)), key=lambda i: len(str(examples[i])))
    answers: list = [None] * len(examples)
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        columns = list(zip(*(examples[i] for i in chosen), strict=True))
        if model.has_choices:
            count = max(map(len, columns[-1]))
            columns[-1] = [x + [""] * (count - len(x)) for x in columns[-1]]
        outputs = model.call(dict(zip(model.inputs, columns, strict=True)))
        for position, index in enumerate(chosen):
            found = {name: value[position] for name, value in outputs.items()}
            if model.has_choices:  # drop the padding
                count = len(examples[index][-1])
                found = {
                    k: v[:count] if v.ndim else v for k, v in found.items()
                }
            answers[index] = to_values(found)
    return answers


def to_values(outputs: dict) -> dict:
    """Converts outputs of an example to JSON values, grouped by element."""
    values = {}
    for name in sorted(outputs):
        value = outputs[name]
        values[name] = value.tolist() if hasattr(value, "tolist") else value
    values = {name: _decoded(value) for name, value in values.items()}
    try:
        return _grouped(values)
    except TypeError:  # outputs of these names with other shapes
        return values


def _grouped(values: dict) -> dict:
    values = dict(values)
    names = values.get("label_names")
    if isinstance(names, list) and "probabilities" in values:
        pairs = zip(values.pop("label_names"), values["probabilities"])
        values["probabilities"] = dict(pairs)
    for name, parts in LISTS.items():
        if parts.keys() <= values.keys():
            entries = zip(*[values.pop(part) for part in parts])
            values[name] = [
                dict(zip(parts.values(), entry))
                for entry in entries
                if entry[0]
            ]
    return values


def _decoded(value):
    if isinstance(value, list):
        return [_decoded(x) for x in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return round(value, 6) if isinstance(value, float) else value


def to_json(found: dict, number: int) -> str:
    """Formats an answer as JSON.

    Raises:
        UserError: if it contains a number that is not finite.
    """
    try:
        return json.dumps(found, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError):
        raise UserError(
            f"the answer is {json.dumps(found, default=str)[:60]}",
            path=_STDIN,
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

    Attributes:
        count: number of lines so far.
        errors: number of lines with an error instead of an answer.
    """

    def __init__(
        self, model: ServedModel, is_json: bool, batch_size: int, strict: bool
    ):
        self._model, self._is_json = model, is_json
        self._batch_size, self._strict = batch_size, strict
        self.count = self.errors = 0

    def print_answers(self, lines: list[bytes]) -> None:
        """Answers the next lines.

        Raises:
            UserError: with `strict`, after the answers to the lines before.
        """
        found: list = []  # fields or error of each line
        first = self.count + 1
        for number, line in enumerate(lines, first):
            try:
                fields = fields_of(line, number, self._model, self._is_json)
                found.append(fields)
            except UserError as error:
                found.append(error)
                if self._strict:
                    break
        self.count += len(found)
        valid = [x for x in found if not isinstance(x, UserError)]
        answers = iter(answer(self._model, valid, self._batch_size))
        for number, fields in enumerate(found, first):
            try:
                if isinstance(fields, UserError):
                    raise fields
                print(to_json(next(answers), number))
            except UserError as error:
                if self._strict:
                    raise
                self.errors += 1
                message = str(error).removeprefix(f"{_STDIN}:{number}: ")
                failure = {"error": message, "line": number}
                print(json.dumps(failure, ensure_ascii=False))
        sys.stdout.flush()
