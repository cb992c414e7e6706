"""Functions shared by the SavedModels of the tasks."""

from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from bert.data import features, sequences
from bert.data.text import input_ops, text_ops
from bert.data.text.tokenizer import Tokenizer
from bert.modeling import checkpoints

_MAX_GROUPS, _MIN_GROUP_SIZE = 8, 4  # measured on two cores
_MAX_GROUP_SIZE = 32  # as memory is limited


class Untracked:
    """Hides an object from SavedModel, so that its functions are not saved.

    Args:
        value: the model or the tokenizer.
    """

    def __init__(self, value: keras.Model | text_ops.GraphTokenizer):
        self.value = value


class Windows(NamedTuple):
    """The W windows of several texts.

    of: int64 [W], index of the text, ascending.
    numbers: int64 [W], number of the window, from 0 in each text.
    starts, lengths: int64 [W], first token and number of tokens of the text
        in the window.
    """

    of: tf.Tensor
    numbers: tf.Tensor
    starts: tf.Tensor
    lengths: tf.Tensor

    def tokens(self, texts: tf.RaggedTensor) -> tf.RaggedTensor:
        """The tokens of each window, int32 [W, (tokens)]."""
        # All texts are one row; a window is a range of it.
        first = self.starts + tf.gather(texts.row_starts(), self.of)
        indices = tf.ragged.range(first, first + self.lengths)
        return tf.gather(texts.values, indices)


def cut(counts: tf.Tensor, sizes: tf.Tensor, strides: tf.Tensor) -> Windows:
    """Divides texts into windows, as `data.sequences.cut`.

    Args:
        counts: int64 [B], number of tokens of each text; one without tokens
            has one empty window.
        sizes: int64 [B], maximum number of tokens of a window.
        strides: int64 [B], at most the size.
    """
    more = tf.maximum(counts - sizes, 0)
    numbers = tf.ragged.range(1 + -(-more // strides))
    of = numbers.value_rowids()
    starts = numbers.values * tf.gather(strides, of)
    rest = tf.gather(counts, of) - starts
    lengths = tf.minimum(tf.gather(sizes, of), rest)
    return Windows(of, numbers.values, starts, lengths)


def equip(
    root: tf.train.Checkpoint,
    model: keras.Model,
    weights: dict[str, np.ndarray],
    tokenizer: Tokenizer,
) -> tuple[Untracked, text_ops.GraphTokenizer]:
    """Adds `variables`, the asset `vocab_file` and the casing to a root.

    Args:
        root: object to save; it must keep references to the results.
        model: the network.
        weights: original name -> array, for all variables of the network.
        tokenizer: of the texts.

    Returns:
        the network with these weights, and the tokenizer in a graph.
    """
    named = checkpoints.model_variables(model)
    checkpoints.assign(named, weights, "the network", tuple(named))

    # Objects that the root refers to are saved, and only these.
    root.variables = [variable.value for variable in named.values()]
    root.vocab_file = tf.saved_model.Asset(tokenizer.path)
    record_casing(root, tokenizer)
    return Untracked(model), tokenizer.graph


def record_casing(root: tf.train.Checkpoint, tokenizer: Tokenizer) -> None:
    """Adds the variables `do_lower_case` and `strip_accents` to a root."""
    root.do_lower_case = tf.Variable(
        tokenizer.do_lower_case, trainable=False, name="do_lower_case"
    )
    root.strip_accents = tf.Variable(
        tokenizer.strips_accents, trainable=False, name="strip_accents"
    )


def pack(
    tokenizer: text_ops.GraphTokenizer,
    segments: list[tf.RaggedTensor],
    max_seq_length: int,
    truncate: str = sequences.HEAD,
) -> dict[str, tf.Tensor]:
    """Packs segments into sequences, with the special ids of a tokenizer.

    Args:
        tokenizer: has the ids of `[CLS]`, `[SEP]` and `[PAD]`.
        segments: one or two, see `input_ops.pack_inputs`.
        max_seq_length: S of the sequences.
        truncate: what is kept of a segment.

    Returns:
        the encoder's inputs, int32 [B, S].
    """
    return input_ops.pack_inputs(
        segments,
        max_seq_length,
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
        pad_id=tokenizer.pad_id,
        truncate=truncate,
    )


def lengths_before_packing(
    segments: list[tf.RaggedTensor], max_seq_length: int
) -> dict[str, tf.Tensor]:
    """Counts tokens of sequences, with [CLS] and a [SEP] for each segment.

    Args:
        segments: one or two, see `input_ops.pack_inputs`; an empty second one
            has no [SEP].
        max_seq_length: S of the sequences; longer ones are truncated.

    Returns:
        tokens, int32 [B]; max_seq_length, int32 [].
    """
    tokens = 2 + segments[0].row_lengths()
    for x in segments[1:]:
        tokens += x.row_lengths() + tf.cast(x.row_lengths() > 0, tf.int64)
    return {
        "tokens": tf.cast(tokens, tf.int32),
        "max_seq_length": tf.constant(max_seq_length),
    }


def signature(function: Callable, inputs: dict[str, tf.TensorSpec]):
    """Traces a function of named tensors.

    Args:
        function: takes the tensors as keyword arguments.
        inputs: name -> spec of each argument.

    Returns:
        the concrete function.
    """
    named = {
        name: tf.TensorSpec(spec.shape, spec.dtype, name)
        for name, spec in inputs.items()
    }
    return tf.function(function, autograph=False).get_concrete_function(**named)


def save(root: tf.train.Checkpoint, folder: str, *others: str) -> None:
    """Writes a SavedModel with the signature `serving_default`, `root.serve`.

    Args:
        root: the object to save.
        folder: a folder that does not exist yet.
        *others: names of other functions of the root, which are signatures.
    """
    signatures = {name: getattr(root, name) for name in others}
    signatures["serving_default"] = root.serve
    tf.saved_model.save(root, folder, signatures=signatures)


def trim(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Removes the trailing columns that are padding in all sequences.

    Args:
        inputs: inputs of the encoder, int32 [B, S].

    Returns:
        the inputs, int32 [B, s] with s <= S.
    """
    longest = tf.maximum(1, tf.reduce_max(lengths(inputs)))
    return {name: x[:, :longest] for name, x in inputs.items()}


def by_length(
    logits_of: Callable, inputs: dict[str, tf.Tensor], shape: list
) -> tf.Tensor:
    """Computes the logits of sequences in groups of similar lengths.

    A sequence in a batch is padded to the longest one: in batches of 32
    sentences in random order, half of the computation would be padding.

    Args:
        logits_of: inputs, int32 [b, s] with s <= S -> float32 [b, ...].
        inputs: inputs of the encoder, int32 [B, S].
        shape: shape of the logits of a sequence of length S; int32 scalars.

    Returns:
        float32 [B, *shape], in the order of the sequences, padded with 0 where
        a group is shorter than S.
    """
    order = tf.argsort(lengths(inputs))
    count = tf.size(order)
    size = tf.clip_by_value(
        -(-count // _MAX_GROUPS), _MIN_GROUP_SIZE, _MAX_GROUP_SIZE
    )

    def fill(start, logits):
        group = order[start : start + size]
        part = trim({name: tf.gather(x, group) for name, x in inputs.items()})
        values = logits_of(part)

        # A group is as long as its longest sequence.
        missing = tf.concat([[0], shape - tf.shape(values)[1:]], 0)
        values = tf.pad(values, tf.stack([tf.zeros_like(missing), missing], 1))
        logits = tf.tensor_scatter_nd_update(
            logits, group[:, tf.newaxis], values
        )
        return start + size, logits

    _, logits = tf.while_loop(
        lambda start, _: start < count,
        fill,
        (0, tf.zeros([count, *shape])),
    )
    return logits


def lengths(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
    """Lengths of sequences up to their last token, int32 [B].

    Args:
        inputs: inputs of the encoder, int32 [B, S].
    """
    mask = inputs[features.INPUT_MASK]
    positions = tf.range(1, tf.shape(mask)[1] + 1)
    return tf.reduce_max(tf.where(mask > 0, positions, 0), -1)
