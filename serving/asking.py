"""Lines of text -> answers of an exported SavedModel, as lines of JSON.

load -> Model
arriving -> lines -> Asking.print_answers
"""

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterator

from common.errors import UserError
from common.flags import flag
from data.text import surrogates

_STDIN = "stdin"
_CHUNK = 1 << 18  # bytes that are read at once, if there are so many
_LONGEST = 1 << 24  # bytes of a line
_RECORDS = "examples"  # an input of serialized records, not of text
_ORDER = ("text", "text_b", "question", "context")  # of the fields of a line

# Lists of a row that "" fills up: their outputs -> names of one's parts.
_LISTS = {
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
        False, "Required: loading a SavedModel runs it as a program."
    )
    signature: str = flag(
        "serving_default", "Signature to call; its inputs are text."
    )
    inputs: tuple[str, ...] | None = flag(
        None, "Names of the inputs, in the order of the fields of a line."
    )
    json: bool = flag(False, 'Lines are objects, such as {"text": "..."}.')
    batch_size: int = flag(
        32, "Maximum number of lines of a batch.", at_least=1
    )
    strict: bool = flag(
        False, "End with exit code 2 at the first line without an answer."
    )

    def check(self) -> None:
        """Checks the model's folder.

        Raises:
            UserError: it holds no SavedModel.
        """
        if not os.path.isfile(os.path.join(self.model, "saved_model.pb")):
            raise UserError(
                "no saved_model.pb",
                path=self.model,
                expected="a SavedModel's folder",
            )


@dataclasses.dataclass(frozen=True)
class Model:
    """A loaded signature.

    Attributes:
        ask: name -> string [B] or [B, C] to name -> array [B, ...].
        inputs: its names, in the order of the fields of a line.
        has_choices: the last input is [B, C] and takes all fields that are
            left; "" is none.
    """

    ask: Callable[[dict], dict]
    inputs: list[str]
    has_choices: bool = False


def load(settings: Settings) -> Model:
    """Loads the model, after a scan of its graph.

    Raises:
        UserError: it has no such signature, or is not trusted.
    """
    import tensorflow as tf

    from modeling import hub

    loaded = hub.load(settings.model, settings.trust_model)
    texts = {}
    for name, function in getattr(loaded, "signatures", {}).items():
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
            order = sorted(specs, key=lambda x: (ranks[x], _position(x), x))
            texts[name] = (function, order, bool(lists))
    if settings.signature not in texts:
        raise UserError(
            f"no signature {settings.signature!r} that takes text",
            path=settings.model,
            expected=f"one of {', '.join(texts) or 'none that do'}",
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

    def ask(strings):
        outputs = function(
            **{name: tf.constant(x, tf.string) for name, x in strings.items()}
        )
        return {name: value.numpy() for name, value in outputs.items()}

    return Model(ask, inputs, has_choices)


def _position(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


def arriving(stream) -> Iterator[list[bytes]]:
    """Yields lines as soon as they are there, many if there are many.

    Of a line that is longer than can be answered, only the beginning comes:
    more than _LONGEST bytes, so that `fields_of` refuses it.
    """
    rest, is_cut = b"", False
    while some := stream.read1(_CHUNK):
        *lines, rest = (rest + some).split(b"\n")
        if is_cut and lines:
            del lines[0]  # the end of the line
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


def fields_of(line: bytes, number: int, model: Model, is_json: bool) -> list:
    """The texts of a line, one for each input of the model; choices a list.

    Raises:
        UserError: it has no such texts.
    """

    def wrong(found: str, expected: str) -> UserError:
        return UserError(found, path=_STDIN, line=number, expected=expected)

    if len(line) > _LONGEST:
        raise wrong(
            f"more than {_LONGEST:,} bytes without a newline", "a text a line"
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
                f"{count} with tabs between them: {', '.join(model.inputs)}",
            )
        if model.has_choices:
            fields[count - 1 :] = [fields[count - 1 :]]
        return fields
    try:
        found = json.loads(text)
        fields = [found[name] for name in model.inputs]
        texts = fields
        if model.has_choices:
            texts = [*fields[:-1], *fields[-1]]
            if not (fields[-1] and isinstance(fields[-1], list)):
                raise TypeError
        if not all(isinstance(field, str) for field in texts):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError):
        names = ", ".join(model.inputs)
        expected = f"an object with strings: {names}"
        if model.has_choices:
            expected += ", the last a list of them"
        raise wrong(text[:60], expected) from None
    for name, field in zip(model.inputs, fields, strict=True):
        surrogates.check(field, name, _STDIN, number)
    return fields


def answer(model: Model, rows: list[list], batch_size: int) -> list[dict]:
    """Answers in the order of the rows; like lengths share a batch."""
    order = sorted(range(len(rows)), key=lambda i: len(str(rows[i])))
    answers: list = [None] * len(rows)
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        columns = list(zip(*(rows[i] for i in chosen), strict=True))
        if model.has_choices:
            most = max(map(len, columns[-1]))
            columns[-1] = [x + [""] * (most - len(x)) for x in columns[-1]]
        outputs = model.ask(dict(zip(model.inputs, columns, strict=True)))
        for position, index in enumerate(chosen):
            row = {name: value[position] for name, value in outputs.items()}
            if model.has_choices:  # what filled up has no answer
                count = len(rows[index][-1])
                row = {k: v[:count] if v.ndim else v for k, v in row.items()}
            answers[index] = plain(row)
    return answers


def plain(outputs: dict) -> dict:
    """The outputs of a row as JSON values; what belongs together is paired."""
    values = {}
    for name in sorted(outputs):
        value = outputs[name]
        values[name] = value.tolist() if hasattr(value, "tolist") else value
    values = {name: _decoded(value) for name, value in values.items()}
    names = values.get("label_names")
    if isinstance(names, list) and "probabilities" in values:
        pairs = zip(values.pop("label_names"), values["probabilities"])
        values["probabilities"] = dict(pairs)
    for name, parts in _LISTS.items():
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
    """An answer as JSON.

    Raises:
        UserError: it holds a number that JSON does not have.
    """
    try:
        return json.dumps(found, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise UserError(
            f"the answer is {json.dumps(found)[:60]}",
            path=_STDIN,
            line=number,
            expected="finite numbers",
            fix="has the model learned anything, and is the text ordinary?",
        ) from None


class Asking:
    """Prints an answer for each line, or what is wrong with the line.

    Args:
        model: is asked.
        is_json: lines are objects.
        batch_size: lines that are answered together.
        strict: the first line that cannot be answered raises its error.

    Attributes:
        count: lines so far.
        wrong: those of them that have an error instead of an answer.
    """

    def __init__(
        self, model: Model, is_json: bool, batch_size: int, strict: bool
    ):
        self._model, self._is_json = model, is_json
        self._batch_size, self._strict = batch_size, strict
        self.count = self.wrong = 0

    def print_answers(self, lines: list[bytes]) -> None:
        """Answers the next lines.

        Raises:
            UserError: with `strict`, after the answers of the lines before.
        """
        found: list = []  # the fields of each line, or its error
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
        rows = [x for x in found if not isinstance(x, UserError)]
        answers = iter(answer(self._model, rows, self._batch_size))
        for number, fields in enumerate(found, first):
            try:
                if isinstance(fields, UserError):
                    raise fields
                print(to_json(next(answers), number))
            except UserError as error:
                if self._strict:
                    raise
                self.wrong += 1
                message = str(error).removeprefix(f"{_STDIN}:{number}: ")
                refusal = {"error": message, "line": number}
                print(json.dumps(refusal, ensure_ascii=False))
        sys.stdout.flush()
