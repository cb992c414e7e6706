"""Answers of an exported model to texts; without TensorFlow.

load -> ServedModel -> answer
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from bert.common.errors import UserError
from bert.common.progress import say
from bert.modeling import openvino_network
from bert.serving.predict_settings import Settings

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
    """A loaded model.

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


def load(settings: Settings) -> ServedModel:
    """Loads a network of OpenVINO, or else a SavedModel.

    Args:
        settings: checked, so that a SavedModel is trusted.

    Raises:
        UserError: it is damaged, or has no such signature.
    """
    say(f"loading {settings.model} ...")
    if openvino_network.is_network(settings.model):
        from bert.serving import openvino_model

        return openvino_model.load(settings)

    from bert.serving import graph_model  # imports TensorFlow

    return graph_model.load(settings)


def in_order(
    settings: Settings, names: list[str], has_choices: bool = False
) -> list[str]:
    """The inputs of a model, in the order of the fields of a line.

    Args:
        settings: of the script; --inputs may name another order.
        names: names of the inputs.
        has_choices: whether the last one takes choices.

    Raises:
        UserError: --inputs has other names, or choices before the end.
    """
    inputs = list(settings.inputs or names)
    if sorted(inputs) != sorted(names) or (
        has_choices and inputs[-1] != names[-1]
    ):
        raise UserError(
            f"--inputs={','.join(inputs)}",
            path=settings.model,
            expected=", ".join(names),
        )
    return inputs


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
    columns: list = list(zip(*examples, strict=True))
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
        elif values.get("label") == "":  # too improbable
            values["label"] = None

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
