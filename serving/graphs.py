"""What the SavedModels of the tasks share."""

from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from data import features
from data.text import text_ops, tokenization
from modeling import checkpoints

_GROUPS, _ROWS_OF_A_GROUP = 8, 4  # at most, at least; measured on two cores


class Hidden:
    """Keeps Keras' own functions out of what is saved.

    Args:
        value: the model.
    """

    def __init__(self, value: keras.Model):
        self.value = value


def equip(
    root: tf.train.Checkpoint,
    model: keras.Model,
    weights: dict[str, np.ndarray],
    vocab_file: str,
    do_lower_case: bool,
    strip_accents: bool | None,
) -> tuple[Hidden, text_ops.GraphTokenizer]:
    """Gives a root what all SavedModels of ours have.

    That is `variables`, the asset `vocab_file` and what `record_casing` adds.

    Args:
        root: what will be saved; it must keep what is returned.
        model: the network.
        weights: original name -> array, all of the network's.
        vocab_file: the vocabulary.
        do_lower_case, strip_accents: its casing.

    Returns:
        the network with these weights, and its tokenizer.
    """
    named = checkpoints.model_variables(model)
    checkpoints.assign(named, weights, "the network", tuple(named))
    root.variables = [variable.value for variable in named.values()]
    root.vocab_file = tf.saved_model.Asset(vocab_file)
    record_casing(root, do_lower_case, strip_accents)
    return Hidden(model), text_ops.GraphTokenizer(
        vocab_file, do_lower_case, strip_accents
    )


def record_casing(
    root: tf.train.Checkpoint, do_lower_case: bool, strip_accents: bool | None
) -> None:
    """Gives a root the variables `do_lower_case` and `strip_accents`.

    Args:
        root: what will be saved.
        do_lower_case: whether text is lower-cased.
        strip_accents: whether accents are stripped; None: as do_lower_case.
    """
    strips = tokenization.strips_accents(do_lower_case, strip_accents)
    root.do_lower_case = tf.Variable(
        do_lower_case, trainable=False, name="do_lower_case"
    )
    root.strip_accents = tf.Variable(
        strips, trainable=False, name="strip_accents"
    )


def pack(
    tokenizer: text_ops.GraphTokenizer,
    segments: list[tf.RaggedTensor],
    max_seq_length: int,
) -> dict[str, tf.Tensor]:
    """Packs segments into rows, with the ids of a tokenizer.

    Args:
        tokenizer: knows `[CLS]`, `[SEP]` and `[PAD]`.
        segments: one or two, see `text_ops.pack_inputs`.
        max_seq_length: S.

    Returns:
        the encoder's inputs, int32 [B, S].
    """
    return text_ops.pack_inputs(
        segments,
        max_seq_length,
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
        pad_id=tokenizer.pad_id,
    )


def signature(function: Callable, inputs: dict[str, tf.TensorSpec]):
    """The graph of a function of named tensors.

    Args:
        function: of keyword arguments.
        inputs: their names and shapes.
    """
    named = {
        name: tf.TensorSpec(spec.shape, spec.dtype, name)
        for name, spec in inputs.items()
    }
    return tf.function(function, autograph=False).get_concrete_function(**named)


def trim(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Cuts the columns off that are padding in every row.

    Args:
        inputs: of the encoder, int32 [B, S].
    """
    longest = tf.maximum(1, tf.reduce_max(lengths(inputs)))
    return {name: x[:, :longest] for name, x in inputs.items()}


def by_length(
    logits_of: Callable, inputs: dict[str, tf.Tensor], shape: list
) -> tf.Tensor:
    """Logits of rows, computed in groups of like lengths.

    A row beside a much longer one would be padded to it: of sentences in any
    order, 32 at a time, half of what is computed would be padding.

    Args:
        logits_of: inputs of b rows, as many of the S columns as the longest
            has -> float32 [b, ...].
        inputs: of the encoder, int32 [B, S].
        shape: of a row's logits at S columns; int32 scalars.

    Returns:
        float32 [B, *shape], in the order of the rows, 0 where a row's group
        has no column.
    """
    order = tf.argsort(lengths(inputs))
    count = tf.size(order)
    size = tf.maximum(_ROWS_OF_A_GROUP, -(-count // _GROUPS))

    def fill(start, logits):
        rows = order[start : start + size]
        some = trim({name: tf.gather(x, rows) for name, x in inputs.items()})
        found = logits_of(some)
        missing = tf.concat([[0], shape - tf.shape(found)[1:]], 0)
        found = tf.pad(found, tf.stack([tf.zeros_like(missing), missing], 1))
        logits = tf.tensor_scatter_nd_update(logits, rows[:, tf.newaxis], found)
        return start + size, logits

    _, logits = tf.while_loop(
        lambda start, _: start < count,
        fill,
        (0, tf.zeros([count, *shape])),
    )
    return logits


def lengths(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
    """Places up to the last piece, int32 [B].

    Args:
        inputs: of the encoder, int32 [B, S].
    """
    mask = inputs[features.INPUT_MASK]
    places = tf.range(1, tf.shape(mask)[1] + 1)
    return tf.reduce_max(mask * places, -1)
