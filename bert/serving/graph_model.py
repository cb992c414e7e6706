"""Text signatures of a SavedModel, as a model that answers."""

import contextlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert.common import tensorflow_log
from bert.common.errors import UserError
from bert.modeling import hub
from bert.serving import asking
from bert.serving.predict_settings import Settings

_RECORDS = "examples"  # an input of serialized records, not of text
_ORDER = ("text", "text_b", "question", "context")  # of the fields in a line


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


def load(settings: Settings) -> asking.ServedModel:
    """Loads the model.

    Args:
        settings: checked, so that the model is trusted.

    Raises:
        UserError: if it is damaged, or has no such signature.
    """
    loaded = hub.load(settings.model, trust_model=True)
    signatures = _text_signatures(loaded)
    if settings.signature not in signatures:
        raise UserError(
            f"no signature {settings.signature!r} with text inputs",
            path=settings.model,
            expected=f"one of {', '.join(signatures) or 'none'}",
        )

    function, names, has_choices = signatures[settings.signature]

    inputs = asking.in_order(settings, names, has_choices)
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

    return asking.ServedModel(
        call, inputs, has_choices, _counter(loaded, inputs)
    )


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
