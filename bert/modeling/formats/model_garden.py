"""Weights of TensorFlow Model Garden and of TF-Hub models made with it.

Its checkpoints are object graphs. Each variable has a path of edges from the
root, which TensorFlow restores by, and a full name. The full name is the same
in every model with this encoder, so variables are read by full name.

    encoder/layer_with_weights-4/_attention_layer/_query_dense/kernel
    transformer/layer_0/self_attention/query/kernel            [H, A, D]
    bert/encoder/layer_0/attention/self/query/kernel           [H, H]
"""

import re

import numpy as np
import tensorflow as tf
from google.protobuf import message
from tensorflow.core.protobuf import trackable_object_graph_pb2

from bert.common.errors import UserError
from bert.common.formats import tensor_files
from bert.modeling import checkpoints
from bert.modeling.config import BertConfig

_NOT_WEIGHTS = (
    "optimizer",
    "save_counter",
    "global_step",
    "do_lower_case",
    "strip_accents",
)
_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
KEY_END = "/.ATTRIBUTES/VARIABLE_VALUE"

# The original's name, ends of full names, and names from an older exporter.
# `#` is the number of a layer, and `*` a part of it, such as `kernel`.
_NAMES = (
    ("bert/embeddings/word_embeddings", "word_embeddings/embeddings"),
    (
        "bert/embeddings/position_embeddings",
        "position_embedding/embeddings",
        "embedding_postprocessor/position_embeddings",
    ),
    (
        "bert/embeddings/token_type_embeddings",
        "type_embeddings/embeddings",
        "embedding_postprocessor/type_embeddings",
    ),
    (
        "bert/embeddings/LayerNorm/*",
        "embeddings/layer_norm/*",
        "embedding_postprocessor/layer_norm/*",
    ),
    *(
        (f"bert/encoder/layer_#/{ours}/*", *(f"layer_#/{x}/*" for x in theirs))
        for ours, *theirs in (
            ("attention/self/query", "self_attention/query"),
            ("attention/self/key", "self_attention/key"),
            ("attention/self/value", "self_attention/value"),
            (
                "attention/output/dense",
                "self_attention/attention_output",
                "self_attention_output",
            ),
            ("attention/output/LayerNorm", "self_attention_layer_norm"),
            ("intermediate/dense", "intermediate"),
            ("output/dense", "output"),
            ("output/LayerNorm", "output_layer_norm"),
        )
    ),
    ("bert/pooler/dense/*", "pooler_transform/*"),
    ("cls/predictions/transform/dense/*",) * 2,
    ("cls/predictions/transform/LayerNorm/*",) * 2,
    ("cls/predictions/output_bias", "cls/predictions/output_bias/bias"),
    ("cls/seq_relationship/output_weights", "next_sentence/logits/kernel"),
    ("cls/seq_relationship/output_bias", "next_sentence/logits/bias"),
    ("output_weights", "sentence_prediction/logits/kernel"),
    ("output_bias", "sentence_prediction/logits/bias"),
    ("cls/squad/output_weights", "predictions/transform/logits/kernel"),
    ("cls/squad/output_bias", "predictions/transform/logits/bias"),
    ("cls/ner/output_weights", "predictions/transform/logits/kernel"),
    ("cls/ner/output_bias", "predictions/transform/logits/bias"),
)
# A head with its own pooler was trained with that, not with the encoder's.
_HEAD_POOLER = re.compile(r"(?:^|/)pooler_dense/(kernel|bias)$")
# The token classifier and the span labeler share variable names.
_LOGITS = re.compile(r"predictions/transform/logits/(kernel|bias)$")
_SPAN_KEY = "model/layer_with_weights-1/layer_with_weights-0/"


def read(path: str) -> tuple[dict[str, np.ndarray], list[str]]:
    """Reads an object-based checkpoint, or one with names below `module/`.

    Args:
        path: str. Prefix of the checkpoint.

    Returns:
        Original name -> float32 array, and the names of unknown variables.

    Raises:
        UserError: the checkpoint is damaged.
    """
    with checkpoints.reported(path):
        reader = tensor_files.open_reader(path)
        named = _names_of(reader)
        arrays = {key: reader.get_tensor(key) for key in named}

    values, poolers, skipped = {}, {}, []
    for key, array in arrays.items():
        if array.dtype.kind in "OSU":
            skipped.append(named[key])
            continue
        if not np.issubdtype(array.dtype, np.integer):
            array = np.asarray(array, np.float32)  # may be half precision

        pooler = _HEAD_POOLER.search(named[key])
        if pooler:
            poolers[f"bert/pooler/dense/{pooler.group(1)}"] = array
            continue

        name = _original_name(named[key], key)
        if name is None:
            skipped.append(named[key])
        # Variables of a TF1 hub module have the original's shapes.
        elif key == named[key]:
            values[name] = array
        else:
            try:
                values[name] = _original_shape(name, array)
            except (IndexError, ValueError) as error:
                raise UserError(f"{name}: {error}", path=path) from None

    # A head's own pooler replaces the untrained pooler of the encoder.
    return {**values, **poolers}, sorted(skipped)


def shapes_of(path: str) -> dict[str, list[int]]:
    """Reads the shapes of the variables, as they are in the checkpoint.

    Args:
        path: str. Prefix of the checkpoint.

    Returns:
        Dict: original name -> shape, such as [H, A, D] for queries.

    Raises:
        UserError: the checkpoint is damaged.
    """
    with checkpoints.reported(path):
        reader = tensor_files.open_reader(path)
        shapes = reader.get_variable_to_shape_map()
        named = _names_of(reader)
    originals = {key: _original_name(name, key) for key, name in named.items()}
    return {name: shapes[key] for key, name in originals.items() if name}


def _names_of(reader) -> dict[str, str]:
    """Key in the checkpoint -> full name of all variables but optimizers'."""
    keys = reader.get_variable_to_shape_map()
    if _GRAPH not in keys:  # a TF1 hub module
        return {name: name for name in keys}
    named = _full_names(reader.get_tensor(_GRAPH))
    return {key: name for key, name in named.items() if key in keys}


def named_variables(
    config: BertConfig, values: dict[str, np.ndarray]
) -> dict[str, tf.Variable]:
    """Creates variables with the names and shapes of published models.

    Args:
        config: BertConfig. Sizes of the network.
        values: dict. Original name -> array; only float32 is trainable.

    Returns:
        Dict: original name -> variable.
    """
    return {
        name: tf.Variable(
            _their_shape(name, value, config),
            name=_full_name(name),
            trainable=value.dtype == np.float32,
        )
        for name, value in values.items()
    }


def _full_names(serialized: bytes) -> dict[str, str]:
    """Key in the checkpoint -> full name, without optimizers.

    Optimizers of Keras 2.11 or later may be anywhere; they have `_iterations`.
    """
    try:
        graph = trackable_object_graph_pb2.TrackableObjectGraph.FromString(
            serialized
        )
    except (message.DecodeError, TypeError) as error:
        raise ValueError(f"{_GRAPH}: {error}") from None

    named = {
        attribute.checkpoint_key: attribute.full_name
        for node in graph.nodes
        for attribute in node.attributes
        if attribute.checkpoint_key.endswith(KEY_END)
    }

    steps = f"/_iterations{KEY_END}"
    optimizers = (f"{x[: -len(steps)]}/" for x in named if x.endswith(steps))
    dropped = (*_NOT_WEIGHTS, *optimizers)
    return {
        key: name
        for key, name in named.items()
        if not key.startswith(dropped) and "/.OPTIMIZER_SLOT/" not in key
    }


def _original_name(full_name: str, key: str) -> str | None:
    original = re.search(r"(?:^|/)((?:bert|cls)/.*)", full_name)
    if original and key == full_name:  # a TF1 hub module
        return original.group(1)

    logits = _LOGITS.search(full_name)
    if logits:
        scope = "cls/squad/" if key.startswith(_SPAN_KEY) else "cls/ner/"
        part = {"kernel": "weights", "bias": "bias"}[logits.group(1)]
        return f"{scope}output_{part}"

    for ours, *theirs in _NAMES:
        for template in theirs:
            match = re.search(rf"(?:^|/){_pattern(template)}$", full_name)
            if match:
                return _fill(ours, match)
    return None


def _full_name(name: str) -> str:
    """Full name in Model Garden of an original variable."""
    for ours, theirs, *_ in _NAMES:
        match = re.fullmatch(_pattern(ours), name)
        if match:
            scope = "transformer/" if "/layer_" in name else ""
            return scope + _fill(theirs, match)
    return name


def _pattern(template: str) -> str:
    """Regular expression for a name in `_NAMES`."""
    pattern = template.replace("#", r"(\d+)")
    return pattern.replace("*", "(kernel|bias|gamma|beta)")


def _fill(template: str, match: re.Match) -> str:
    """Fills a name in `_NAMES` with the layer and the part of a match."""
    for group in match.groups():
        template = re.sub("[#*]", group, template, count=1)
    return template


def _original_shape(name: str, array: np.ndarray) -> np.ndarray:
    if name.endswith("output_weights"):
        return np.ascontiguousarray(array.T)  # [H, C] -> [C, H]
    if "/attention/output/dense/kernel" in name:
        return array.reshape(-1, array.shape[-1])  # [A, D, H] -> [H, H]
    if "/attention/self/" in name:
        rows = array.shape[:1] if name.endswith("/kernel") else ()
        return array.reshape(*rows, -1)  # [H, A, D] -> [H, H], [A, D] -> [H]
    return array


def _their_shape(name: str, array: np.ndarray, config: BertConfig):
    heads = config.num_attention_heads
    if name.endswith("output_weights"):
        return array.T
    if "/attention/output/dense/kernel" in name:
        return array.reshape(heads, -1, array.shape[-1])
    if "/attention/self/" in name:
        return array.reshape(*array.shape[:-1], heads, -1)
    return array
