"""Asks an exported SavedModel: lines of text in, a line of JSON out for each.

    python predict.py --model=export --trust_model < lines.txt

A model of two texts takes a tab between them, one of choices a tab before each:

    text                 text, text_b         of run_classifier.py, run_ner.py
    question, context    context, choices     of run_squad.py, run_swag.py

A line that cannot be answered is {"error": "...", "line": 3}, and the rest go
on; with --strict it ends the run with exit code 2.

The model is loaded once; an answer comes as soon as its line is there, so a
program can keep this one open and ask it line by line.
"""

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterator

from absl import flags

from common.errors import UserError
from common.progress import say
from data.text import surrogates
from tasks import common_flags

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


def define_flags(values: flags.FlagValues) -> None:
    """Defines this script's flags."""
    flags.DEFINE_string(
        "model",
        None,
        "Folder of the SavedModel.",
        flag_values=values,
        required=True,
    )
    flags.DEFINE_bool(
        "trust_model",
        False,
        "Needed: a SavedModel runs as a program does.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "signature",
        "serving_default",
        "What is asked; its inputs are text.",
        flag_values=values,
    )
    flags.DEFINE_list(
        "inputs",
        None,
        "Names of the inputs, in the order of the fields of a line.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "json",
        False,
        'Lines are objects, such as {"text": "..."}.',
        flag_values=values,
    )
    flags.DEFINE_integer(
        "batch_size",
        32,
        "Lines that are answered together, if so many are there.",
        flag_values=values,
        lower_bound=1,
    )
    flags.DEFINE_bool(
        "strict",
        False,
        "End with exit code 2 at the first line that cannot be answered.",
        flag_values=values,
    )


def read_flags(argv: list[str]) -> flags.FlagValues:
    """Reads and checks the command line."""
    values = common_flags.parse(argv, define_flags, __doc__)
    if not os.path.isfile(os.path.join(values.model, "saved_model.pb")):
        raise UserError(
            "no saved_model.pb",
            path=values.model,
            expected="a SavedModel's folder",
        )
    return values


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


def load(values: flags.FlagValues) -> Model:
    """Loads the model after a look at what its graph could do."""
    import tensorflow as tf

    from modeling import hub

    loaded = hub.load(values.model, values.trust_model)
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
            order = sorted(specs, key=lambda x: (ranks[x], _place(x), x))
            texts[name] = (function, order, bool(lists))
    if values.signature not in texts:
        raise UserError(
            f"no signature {values.signature!r} that takes text",
            path=values.model,
            expected=f"one of {', '.join(texts) or 'none that do'}",
        )
    function, names, has_choices = texts[values.signature]
    inputs = values.inputs or names
    if sorted(inputs) != sorted(names) or (
        has_choices and inputs[-1] != names[-1]
    ):
        raise UserError(
            f"--inputs={','.join(inputs)}",
            path=values.model,
            expected=", ".join(names),
        )

    def ask(strings):
        outputs = function(
            **{name: tf.constant(x, tf.string) for name, x in strings.items()}
        )
        return {name: value.numpy() for name, value in outputs.items()}

    return Model(ask, inputs, has_choices)


def _place(name: str) -> int:
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
        for place, index in enumerate(chosen):
            row = {name: value[place] for name, value in outputs.items()}
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
        UserError: it holds a number that JSON has not.
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
                told = str(error).removeprefix(f"{_STDIN}:{number}: ")
                told = {"error": told, "line": number}
                print(json.dumps(told, ensure_ascii=False))
        sys.stdout.flush()


def main(argv: list[str]) -> None:
    """Runs the script."""
    values = read_flags(argv)
    model = load(values)
    asking = Asking(model, values.json, values.batch_size, values.strict)
    if sys.stdin.isatty():
        say(f"reading {', '.join(model.inputs)}, with tabs between; ^D ends")
    try:
        for lines in arriving(sys.stdin.buffer):
            asking.print_answers(lines)
    except BrokenPipeError:  # whoever reads has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if asking.wrong:
        say(
            f"warning: {asking.wrong:,} of {asking.count:,} lines have an "
            "error instead of an answer"
        )


if __name__ == "__main__":
    sys.exit(common_flags.run(main, sys.argv))
