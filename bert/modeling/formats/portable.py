"""ONNX, LiteRT, OpenVINO: the network alone, from token ids to outputs.

Keras' own `export` writes the first two. ONNX and OpenVINO need
`requirements/onnx.txt` and `requirements/openvino.txt`.
"""

import os
from collections.abc import Iterable

import keras
import numpy as np
import tensorflow as tf

from bert.data import features
from bert.modeling import checkpoints, encoder, openvino_network, task_models
from bert.modeling.config import BertConfig

FILES = {
    "onnx": "model.onnx",
    "litert": "model.tflite",
    "openvino": openvino_network.FILE,
}


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
    if target == "openvino":
        write_openvino(model, folder)
    else:
        if target == "onnx":
            _teach_erfc()
        model.export(path, format=target, verbose=False)
    return expected, _RUNNERS[target](path, inputs)


def write_openvino(
    model: keras.Model,
    folder: str,
    precision: str = "float32",
    texts: Iterable[dict] = (),
) -> None:
    """Writes `openvino_model.xml` and `openvino_model.bin`.

    Args:
        model: from `build`.
        folder: holds no such files, but all others of the model; it is local.
        precision: of the computation: float32, bfloat16 or int8.
        texts: for int8, the encoder's inputs of a few hundred texts, int32
            [1, S]: the ranges of the activations are theirs.
    """
    openvino = openvino_network.package()
    specs = {
        name: tf.TensorSpec(x.shape, tf.int32, name)
        for name, x in model.input.items()
    }

    # Keyword arguments keep the names of the inputs.
    function = tf.function(
        lambda **inputs: model(inputs, training=False), autograph=False
    )
    network = openvino.convert_model(function.get_concrete_function(**specs))
    for name, port in zip(sorted(model.output), network.outputs, strict=True):
        port.get_tensor().set_names({name})

    if precision == "int8":
        network = _quantize(network, texts)
    network.set_rt_info(precision, openvino_network.PRECISION)
    openvino_network.record_files(network, folder)
    openvino.save_model(
        network,
        os.path.join(folder, openvino_network.FILE),
        compress_to_fp16=precision == "bfloat16",
    )


def _quantize(network, texts: Iterable[dict]):
    import nncf

    texts = [*texts]
    return nncf.quantize(
        network,
        nncf.Dataset(texts),
        subset_size=len(texts),
        # Else labels change: activations of attention need their own scales.
        model_type=nncf.ModelType.TRANSFORMER,
    )


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
    return tf.lite.Interpreter(path).get_signature_runner()(**inputs)


def _run_openvino(path: str, inputs: dict) -> dict:
    return openvino_network.Network(os.path.dirname(path))(inputs)


_RUNNERS = {
    "onnx": _run_onnx,
    "litert": _run_litert,
    "openvino": _run_openvino,
}
