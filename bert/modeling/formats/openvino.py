"""OpenVINO network, built from weights without TensorFlow.

    config, weights -> encoder on packed rows -> head -> openvino_model.xml

Its inputs are the inputs of a packed encoder (`data.feature_names`), int32
[R, W] and [R, K]. A row with a single sequence has the positions 0 to W - 1,
sequence id 1 (0 for padding), and K = 1 with the `[CLS]` position 0.
"""

import math
import os
from collections.abc import Iterable

import numpy as np

from bert.data import feature_names
from bert.modeling.config import BertConfig
from bert.modeling.engines import openvino_engine
from bert.modeling.task_heads import HEADS, head_of

OUTPUT = "output"
_EPSILON = 1e-12  # as in `modeling.layers`
_MASKED_SCORE = -10000.0


class _Builder:
    """OpenVINO operations on named weights.

    Args:
        values: dict. Original name -> float32 array.
    """

    def __init__(self, values: dict[str, np.ndarray]):
        openvino_engine.package()
        from openvino import opset15

        self.ops, self._values = opset15, values

    def constant(self, value):
        """A constant; integers become int32."""
        value = np.asarray(value)
        is_integer = np.issubdtype(value.dtype, np.integer)
        return self.ops.constant(
            np.ascontiguousarray(value, np.int32 if is_integer else np.float32)
        )

    def parameter(self, name: str):
        """An input of integers, int32 [R, ...]."""
        x = self.ops.parameter([-1, -1], np.int32, name)
        x.output(0).get_tensor().set_names({name})
        return x

    def weight(self, name: str):
        """A weight by its original name."""
        return self.constant(self._values[name])

    def rows_of(self, table: str, ids):
        """Rows of an embedding table: [V, H], [...] -> [..., H]."""
        return self.ops.gather(self.weight(table), ids, self.constant(0))

    def dense(self, x, scope: str):
        """x W + b, with W of [inputs, units]."""
        product = self.ops.matmul(
            x, self.weight(f"{scope}/kernel"), False, False
        )
        return self.ops.add(product, self.weight(f"{scope}/bias"))

    def norm(self, x, scope: str):
        """Layer normalization over the last axis."""
        x = self.ops.mvn(x, self.constant([-1]), True, _EPSILON, "inside_sqrt")
        x = self.ops.multiply(x, self.weight(f"{scope}/gamma"))
        return self.ops.add(x, self.weight(f"{scope}/beta"))

    def at(self, x, positions):
        """Gathers positions: [R, W, ...], [R, K] -> [R, K, ...]."""
        return self.ops.gather(x, positions, self.constant(1), 1)


def build(config: BertConfig, values: dict[str, np.ndarray]):
    """Builds the network of the weights: with a head, or only the encoder.

    Args:
        config: BertConfig. Sizes of the network.
        values: dict. Original name -> float32 array.

    Returns:
        openvino.Model with one output, float32: logits [R, K, C] for a head on
        `[CLS]`, logits [R, W, C] for a head on tokens, or the last layer
        [R, W, H].
    """
    openvino = openvino_engine.package()
    make = _Builder(values)
    ops, head = make.ops, head_of(values)

    # A mask is not needed: padding has the sequence id 0.
    is_pooled = head is not None and HEADS[head].is_pooled
    names = [feature_names.INPUT_IDS, feature_names.SEGMENT_IDS]
    names += [feature_names.POSITION_IDS, feature_names.SEQUENCE_IDS]
    names += [feature_names.NEXT_SENTENCE_POSITIONS] * is_pooled
    inputs = {name: make.parameter(name) for name in names}

    x = ops.add(
        make.rows_of(
            "bert/embeddings/word_embeddings", inputs[feature_names.INPUT_IDS]
        ),
        make.rows_of(
            "bert/embeddings/token_type_embeddings",
            inputs[feature_names.SEGMENT_IDS],
        ),
    )
    positions = make.rows_of(
        "bert/embeddings/position_embeddings",
        inputs[feature_names.POSITION_IDS],
    )
    x = make.norm(ops.add(x, positions), "bert/embeddings/LayerNorm")
    bias = _attention_bias(make, inputs[feature_names.SEQUENCE_IDS])

    # For a head on `[CLS]`, the last layer is only computed there.
    first = inputs.get(feature_names.NEXT_SENTENCE_POSITIONS)
    for index in range(config.num_hidden_layers):
        is_last = index == config.num_hidden_layers - 1
        queries = first if is_last else None
        x = _layer(make, config, index, x, bias, queries)
    if is_pooled:
        x = ops.tanh(make.dense(x, "bert/pooler/dense"))
    if head is not None:
        x = _head(make, head, x)

    x.set_friendly_name(OUTPUT)
    x.output(0).get_tensor().set_names({OUTPUT})
    return openvino.Model([x], list(inputs.values()), "bert")


def _attention_bias(make: _Builder, sequence_ids):
    """int32 [R, W] -> float32 [R, 1, W, W]; masks other sequences."""
    ops = make.ops
    rows = ops.unsqueeze(sequence_ids, make.constant([1, 3]))  # [R, 1, W, 1]
    columns = ops.unsqueeze(sequence_ids, make.constant([1, 2]))
    other = ops.not_equal(rows, columns)
    return ops.select(
        other, make.constant(np.float32(_MASKED_SCORE)), make.constant(0.0)
    )


def _layer(make: _Builder, config: BertConfig, index: int, x, bias, positions):
    """Transformer layer at some positions, or at all (None)."""
    ops, scope = make.ops, f"bert/encoder/layer_{index}"
    queries = x
    if positions is not None:
        queries = make.at(x, positions)
        # [R, 1, W, W] -> [R, 1, K, W]
        bias = ops.squeeze(bias, make.constant([1]))
        bias = ops.unsqueeze(make.at(bias, positions), make.constant([1]))

    heads = config.num_attention_heads
    size = config.hidden_size // heads

    def split(inputs, name):
        projected = make.dense(inputs, f"{scope}/attention/self/{name}")
        shape = make.constant([0, 0, heads, size])
        return ops.transpose(
            ops.reshape(projected, shape, True), make.constant([0, 2, 1, 3])
        )  # [R, A, W, D]

    q, k, v = split(queries, "query"), split(x, "key"), split(x, "value")
    scores = ops.matmul(q, k, False, True)
    scale = make.constant(np.float32(1.0 / math.sqrt(size)))
    scores = ops.add(ops.multiply(scores, scale), bias)
    context = ops.matmul(ops.softmax(scores, -1), v, False, False)
    context = ops.reshape(
        ops.transpose(context, make.constant([0, 2, 1, 3])),
        make.constant([0, 0, config.hidden_size]),
        True,
    )

    attended = make.dense(context, f"{scope}/attention/output/dense")
    x = make.norm(
        ops.add(attended, queries), f"{scope}/attention/output/LayerNorm"
    )
    hidden = make.dense(x, f"{scope}/intermediate/dense")
    hidden = _activation(ops, config.hidden_act, hidden)
    output = make.dense(hidden, f"{scope}/output/dense")
    return make.norm(ops.add(output, x), f"{scope}/output/LayerNorm")


def _activation(ops, name: str, x):
    """Activation for a config's `hidden_act`, as in `modeling.layers`."""
    return {
        "gelu": lambda: ops.gelu(x, "tanh"),
        "gelu_new": lambda: ops.gelu(x, "tanh"),
        "gelu_erf": lambda: ops.gelu(x, "erf"),
        "relu": lambda: ops.relu(x),
        "tanh": lambda: ops.tanh(x),
        "linear": lambda: x,
    }[name]()


def _head(make: _Builder, name: str, x):
    """Logits: x W^T + b, with W of [C, H]."""
    head = HEADS[name]
    weights = make.weight(f"{head.scope}output_weights")
    x = make.ops.matmul(x, weights, False, True)
    if head.has_bias:
        x = make.ops.add(x, make.weight(f"{head.scope}output_bias"))
    return x


def write(
    folder: str,
    config: BertConfig,
    values: dict[str, np.ndarray],
    precision: str = "float32",
    batches: Iterable[dict] = (),
) -> None:
    """Writes `openvino_model.xml` and `openvino_model.bin`.

    Args:
        folder: str. Local folder with all other files of the model.
        config: BertConfig. Sizes of the network.
        values: dict. Original name -> float32 array.
        precision: str. Precision of the computation: "float32", "bfloat16" or
            "int8". Default: "float32".
        batches: iterable of dict. For int8: packed inputs of a few hundred
            texts, which calibrate the ranges of the activations.
    """
    openvino = openvino_engine.package()
    network = build(config, values)
    if precision == "int8":
        network = _quantize(network, batches)
    network.set_rt_info(precision, openvino_engine.PRECISION)
    openvino_engine.record_files(network, folder)
    openvino.save_model(
        network,
        os.path.join(folder, openvino_engine.FILE),
        compress_to_fp16=precision == "bfloat16",
    )


def _quantize(network, batches: Iterable[dict]):
    import nncf

    names = [port.any_name for port in network.inputs]
    batches = [{name: batch[name] for name in names} for batch in batches]

    # CPUs without VNNI add pairs of 8-bit products in 16 bits, which saturate.
    # The fix quantizes weights to 7 bits, so that the sums fit on all CPUs.
    advanced = nncf.AdvancedQuantizationParameters(
        overflow_fix=nncf.OverflowFix.ENABLE
    )
    return nncf.quantize(
        network,
        nncf.Dataset(batches),
        subset_size=len(batches),
        # Attention activations get separate scales; else labels change.
        model_type=nncf.ModelType.TRANSFORMER,
        advanced_parameters=advanced,
    )
