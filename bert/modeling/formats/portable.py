"""ONNX and LiteRT: the network alone, from token ids to outputs.

Keras' own `export` writes both. ONNX needs `requirements/onnx.txt`.
"""

import os

import keras
import numpy as np

from bert.data import features
from bert.modeling import checkpoints, encoder, task_models
from bert.modeling.config import BertConfig

FILES = {"onnx": "model.onnx", "litert": "model.tflite"}


def build(config: BertConfig, values: dict, path: str):
    """Builds the network of the weights: with its head, or the encoder.

    Args:
        config: sizes.
        values: original name -> array.
        path: source of the values, for messages.

    Returns:
        a functional model whose outputs are a flat dict.

    Raises:
        UserError: a variable is missing or has another shape.
    """
    sizes = {
        scope: len(values[f"{scope}output_weights"])
        for scope in ("", "cls/ner/")
        if f"{scope}output_weights" in values
    }

    if "" in sizes:
        model = task_models.build_classifier(config, sizes[""])
    elif "cls/ner/" in sizes:
        model = task_models.build_token_classifier(config, sizes["cls/ner/"])
    elif "cls/squad/output_weights" in values:
        model = task_models.build_span_model(config)
    elif "cls/swag/output_weights" in values:
        model = task_models.build_choice_model(config)
    else:
        model = encoder.build_encoder(config)
        named = checkpoints.encoder_variables(model)
        checkpoints.assign(named, values, path)

        # An untrained pooler would give numbers that mean nothing.
        names = ["sequence_output"]
        if any(name.startswith("bert/pooler/") for name in values):
            names.append("pooled_output")
        outputs = {name: model.output[name] for name in names}
        return keras.Model(model.input, outputs)

    checkpoints.assign(checkpoints.model_variables(model), values, path)
    return model


def write(model, target: str, folder: str, inputs: dict) -> tuple[dict, dict]:
    """Writes the file of a network, and runs it.

    Args:
        model: from `build`.
        target: a key of `FILES`.
        folder: holds no such file.
        inputs: feature name -> int32 array, to compare the outputs with.

    Returns:
        the outputs of the network and of the file, each name -> array.
    """
    path = os.path.join(folder, FILES[target])
    inputs = {name: inputs[name] for name in features.ENCODER_INPUTS}
    if len(model.input[features.INPUT_IDS].shape) == 3:  # of choices
        inputs = {name: x[:, None] for name, x in inputs.items()}

    expected = {name: np.array(x) for name, x in model(inputs).items()}
    if target == "onnx":
        _teach_erfc()
    model.export(path, format=target, verbose=False)
    return expected, _RUNNERS[target](path, inputs)


def _teach_erfc() -> None:
    """Adds the operation of the erf form of GELU, which tf2onnx lacks."""
    from tf2onnx import handler, utils

    @handler.tf_op("Erfc")
    class Erfc:
        """1 - erf(x)."""

        @classmethod
        def version_9(cls, ctx, node, **kwargs):
            """Replaces the node, from version 9 of the operations on."""
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
    import tensorflow as tf

    return tf.lite.Interpreter(path).get_signature_runner()(**inputs)


_RUNNERS = {"onnx": _run_onnx, "litert": _run_litert}
