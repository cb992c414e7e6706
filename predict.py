"""Asks an exported SavedModel: lines of text in, a line of JSON out for each.

    python predict.py --model=export --trust_model < lines.txt

A model of two texts takes a tab between them, one of choices a tab before each:

    text                 text, text_b         of run_classifier.py, run_ner.py
    question, context    context, choices     of run_squad.py, run_swag.py

The model is loaded once; an answer comes as soon as its line is there, so a
program can keep this one open and ask it line by line.
"""

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterator

from absl import flags

import common_flags
from errors import UserError
from progress import say

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
    """Yields lines as soon as they are there, many if there are many."""
    rest, number = b"", 0
    while some := stream.read1(_CHUNK):
        *lines, rest = (rest + some).split(b"\n")
        number += len(lines)
        if len(rest) > _LONGEST:
            raise UserError(
                f"more than {_LONGEST:,} bytes without a newline",
                path=_STDIN,
                line=number + 1,
                expected="a text a line",
            )
        if lines:
            yield lines
    if rest:
        yield [rest]


def fields_of(line: bytes, number: int, model: Model, is_json: bool) -> list:
    """The texts of a line, one for each input of the model; choices a list."""

    def wrong(found: str, expected: str) -> UserError:
        return UserError(found, path=_STDIN, line=number, expected=expected)

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


def main(argv: list[str]) -> None:
    """Runs the script."""
    values = read_flags(argv)
    model = load(values)
    count = 0
    if sys.stdin.isatty():
        say(f"reading {', '.join(model.inputs)}, with tabs between; ^D ends")
    try:
        for lines in arriving(sys.stdin.buffer):
            rows, wrong = [], None
            for number, line in enumerate(lines, count + 1):
                try:
                    rows.append(fields_of(line, number, model, values.json))
                except UserError as error:  # those before it are answered
                    wrong = error
                    break
            count += len(lines)
            for found in answer(model, rows, values.batch_size):
                print(json.dumps(found, ensure_ascii=False))
            sys.stdout.flush()
            if wrong:
                raise wrong
    except BrokenPipeError:  # whoever reads has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(common_flags.run(main, sys.argv))
