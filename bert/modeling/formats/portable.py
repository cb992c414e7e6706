"""ONNX, LiteRT and OpenVINO files: the network, from token ids to outputs.

Keras' own `export` writes the first two. ONNX and OpenVINO need the packages of
`requirements/onnx.txt` and `requirements/openvino.txt`.
"""

import os

import keras
import numpy as np
import tensorflow as tf

from bert.data import features, shared_rows
from bert.modeling import checkpoints, openvino_network
from bert.modeling.config import BertConfig
from bert.modeling.formats import openvino
from bert.modeling.task_heads import HEADS, SPANS, head_of

FILES = {
    "onnx": "model.onnx",
    "litert": "model.tflite",
    "openvino": openvino_network.FILE,
}


def build(config: BertConfig, values: dict, path: str):
    """Builds the network of the weights: with a head, or only the encoder.

    Args:
        config: BertConfig. Sizes of the network.
        values: dict. Original name -> array.
        path: str. Source of the values, for messages.

    Returns:
        Functional model whose outputs are a flat dict.

    Raises:
        UserError: a variable is missing or has another shape.
    """
    head = head_of(values)
    model = checkpoints.load_network(config, values, path, head)
    if head is not None:
        return model

    # The outputs of an untrained pooler are meaningless.
    names = ["sequence_output"]
    if any(name.startswith("bert/pooler/") for name in values):
        names.append("pooled_output")
    return keras.Model(
        model.input, {name: model.output[name] for name in names}
    )


def write(
    bert, model, target: str, folder: str, inputs: dict
) -> tuple[dict, dict]:
    """Writes the file of a network, and runs it.

    Args:
        bert: conversion.Bert. Config and weights of the network.
        model: keras.Model. Result of `build`.
        target: str. Key of `FILES`.
        folder: str. Folder without such a file.
        inputs: dict. Feature name -> int32 array, to compare the outputs with.

    Returns:
        Outputs of the network and outputs of the file, each name -> array.
    """
    path = os.path.join(folder, FILES[target])
    inputs = {name: inputs[name] for name in features.ENCODER_INPUTS}
    lengths = inputs[features.INPUT_MASK].sum(1)
    if len(model.input[features.INPUT_IDS].shape) == 3:  # multiple choice
        inputs = {name: x[:, None] for name, x in inputs.items()}

    expected = {name: np.array(x) for name, x in model(inputs).items()}
    if target == "openvino":
        openvino.write(folder, bert.config, bert.values)
        return _outputs_of_rows(
            folder, head_of(bert.values), inputs, lengths, expected
        )
    if target == "onnx":
        _teach_erfc()
    model.export(path, format=target, verbose=False)
    return expected, _RUNNERS[target](path, inputs)


def _outputs_of_rows(
    folder: str,
    head: str | None,
    inputs: dict,
    lengths: np.ndarray,
    expected: dict,
) -> tuple[dict, dict]:
    """Outputs of Keras and of an OpenVINO network, in the same shape."""
    is_pooled = head is not None and HEADS[head].is_pooled
    name = "sequence_output" if head is None else "logits"
    if head == SPANS:
        pair = expected["start_logits"], expected["end_logits"]
        expected = {name: np.stack(pair, -1)}
    ids, segments = (
        inputs[x].reshape(len(lengths), -1)
        for x in (features.INPUT_IDS, features.SEGMENT_IDS)
    )
    rows = [
        (a[:n].tolist(), b[:n].tolist())
        for a, b, n in zip(ids, segments, lengths)
    ]
    network = openvino_network.Network(folder)
    found = shared_rows.map_packed(network, rows, is_pooled)
    kept = [x if is_pooled else x[:n] for x, n in zip(expected[name], lengths)]
    return {name: np.concatenate(kept)}, {name: np.concatenate(found)}


def _teach_erfc() -> None:
    """Adds Erfc to tf2onnx, which lacks it; the erf form of GELU needs it."""
    from tf2onnx import handler, utils

    @handler.tf_op("Erfc")
    class Erfc:
        """1 - erf(x)."""

        @classmethod
        def version_9(cls, ctx, node, **kwargs):
            """Replaces the node, from operator set 9 on."""
            shapes, dtypes = node.output_shapes, node.output_dtypes
            erf = ctx.make_node("Erf", node.input)
            one = ctx.make_const(utils.make_name("one"), np.float32(1))
            ctx.remove_node(node.name)
            ctx.make_node(
                "Sub",
                [one.output[0], erf.output[0]],
                outputs=node.output,
                name=node.name,
                shapes=shapes,
                dtypes=dtypes,
            )


def _run_onnx(path: str, inputs: dict) -> dict:
    import onnxruntime

    session = onnxruntime.InferenceSession(
        path, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def _run_litert(path: str, inputs: dict) -> dict:
    return tf.lite.Interpreter(path).get_signature_runner()(**inputs)


_RUNNERS = {"onnx": _run_onnx, "litert": _run_litert}
