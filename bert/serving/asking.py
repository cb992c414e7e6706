"""Answers of an exported SavedModel to texts.

load -> ServedModel -> answer
"""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert.common import tensorflow_log
from bert.common.errors import UserError
from bert.common.progress import say
from bert.modeling import hub
from bert.serving import lite
from bert.serving.predict_settings import Settings

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
class ServedModel:
    """A loaded signature.

    Attributes:
        call: name -> string [B] or [B, C] to name -> array [B, ...].
        inputs: names of the inputs, in the order of the fields of a line.
        has_choices: whether the last input is [B, C]; it takes all remaining
            fields of a line, padded with "".
        count_tokens: inputs as of `call` -> the model's maximum number of
            tokens, and that of each text, int32 [B]; None if unknown.
    """

    call: Callable[[dict], dict]
    inputs: list[str]
    has_choices: bool = False
    count_tokens: Callable[[dict], tuple[int, np.ndarray]] | None = None


class _TextSignature(NamedTuple):
    """A signature whose inputs are texts.

    Attributes:
        function: the signature.
        inputs: names of its inputs, in the order of the fields of a line.
        has_choices: whether the last input is [B, C].
    """

    function: Callable
    inputs: list[str]
    has_choices: bool


def load(settings: Settings) -> ServedModel:
    """Loads the model.

    Args:
        settings: checked, so that the model is trusted.

    Raises:
        UserError: if it is damaged, or has no such signature.
    """
    say(f"loading {settings.model} ...")
    loaded = hub.load(settings.model, trust_model=True)
    signatures = _text_signatures(loaded)
    if settings.signature not in signatures:
        raise UserError(
            f"no signature {settings.signature!r} with text inputs",
            path=settings.model,
            expected=f"one of {', '.join(signatures) or 'none'}",
        )

    function, names, has_choices = signatures[settings.signature]
    if settings.signature == lite.DEFAULT:
        function = lite.serving_default(settings.model, loaded)

    # The user may order the texts of a line, but choices stay at its end.
    inputs = list(settings.inputs or names)
    if sorted(inputs) != sorted(names) or (
        has_choices and inputs[-1] != names[-1]
    ):
        raise UserError(
            f"--inputs={','.join(inputs)}",
            path=settings.model,
            expected=", ".join(names),
        )

    is_optimized = False

    def call(strings):
        nonlocal is_optimized
        texts = {name: tf.constant(x, tf.string) for name, x in strings.items()}

        # The first call optimizes the graph, and logs messages about it.
        silence = contextlib.nullcontext
        if not is_optimized:
            silence, is_optimized = tensorflow_log.held_back, True
        try:
            with silence():
                outputs = function(**texts)
        except tf.errors.OpError as error:
            raise UserError(
                f"cannot be run: {error.message}", path=settings.model
            ) from None

        count = len(strings[names[0]])
        return {
            name: _rows(name, value.numpy(), count, settings.model)
            for name, value in outputs.items()
        }

    return ServedModel(call, inputs, has_choices, _counter(loaded, inputs))


def _text_signatures(loaded) -> dict[str, _TextSignature]:
    """Finds the signatures of a model that take only texts."""
    signatures = getattr(loaded, "signatures", None)
    if not isinstance(signatures, Mapping):
        return {}  # an object of the model may have this name

    texts = {}
    for name, function in signatures.items():
        specs = function.structured_input_signature[1]
        ranks = {key: spec.shape.rank for key, spec in specs.items()}
        has_texts = _RECORDS not in specs and all(
            spec.dtype == tf.string and spec.shape.rank in (1, 2)
            for spec in specs.values()
        )
        lists = sum(rank == 2 for rank in ranks.values())
        if has_texts and lists <= 1:
            order = sorted(specs, key=lambda x: (ranks[x], _order_of(x), x))
            texts[name] = _TextSignature(function, order, bool(lists))
    return texts


def _counter(loaded, inputs: list[str]) -> Callable | None:
    """Finds the function of our exports that counts tokens."""
    function = getattr(loaded, "count_tokens", None)
    specs = getattr(function, "structured_input_signature", ((), {}))[1]
    if sorted(specs) != sorted(inputs):
        return None

    def count(strings):
        counts = function(**{k: tf.constant(x) for k, x in strings.items()})
        return int(counts["max_seq_length"]), counts["tokens"].numpy()

    return count


def _rows(name: str, value: np.ndarray, count: int, path: str) -> np.ndarray:
    """Checks that an output has a row for each line."""
    if value.ndim == 0 or len(value) != count:
        raise UserError(
            f"the output {name!r} has the shape {list(value.shape)}",
            path=path,
            expected=f"{count} rows, one for each line",
        )
    return value


def _order_of(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


def answer(
    model: ServedModel, examples: list[list], batch_size: int
) -> list[dict]:
    """Answers examples, in batches of similar lengths.

    Args:
        model: the model to call.
        examples: fields of each line, from `answer_lines.fields_of`.
        batch_size: maximum number of examples of a batch.

    Returns:
        the answer to each example, in order.
    """
    order = sorted(range(len(examples)), key=lambda i: len(str(examples[i])))
    answers: list = [None] * len(examples)
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        outputs = model.call(columns_of(model, [examples[i] for i in batch]))

        for position, index in enumerate(batch):
            row = {name: value[position] for name, value in outputs.items()}
            if model.has_choices:  # drop the padding
                count = len(examples[index][-1])
                row = {k: v[:count] if v.ndim else v for k, v in row.items()}
            answers[index] = to_values(row)
    return answers


def columns_of(model: ServedModel, examples: list[list]) -> dict[str, list]:
    """The inputs of a model, by name; choices are padded with ""."""
    columns = list(zip(*examples, strict=True))
    if model.has_choices:
        count = max(map(len, columns[-1]))
        columns[-1] = [x + [""] * (count - len(x)) for x in columns[-1]]
    return dict(zip(model.inputs, columns, strict=True))


def to_values(outputs: dict) -> dict:
    """Converts outputs of an example to JSON values, grouped by element."""
    values = {}
    for name in sorted(outputs):
        value = outputs[name]
        values[name] = _decoded(
            value.tolist() if hasattr(value, "tolist") else value
        )
    try:
        return _grouped(values)
    except TypeError:  # outputs of these names with other shapes
        return values


def _grouped(values: dict) -> dict:
    values = dict(values)

    # A classifier: its probabilities get the names of their labels.
    names = values.get("label_names")
    if isinstance(names, list) and "probabilities" in values:
        pairs = zip(values.pop("label_names"), values["probabilities"])
        values["probabilities"] = dict(pairs)
        if isinstance(values.get("label"), list):  # of several labels, padded
            values["label"] = [x for x in values["label"] if x]

    # A tagger: lists of the same length become a list of dicts.
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
