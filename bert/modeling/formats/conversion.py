"""Conversion of BERT weights between formats, including all heads.

The formats of `NETWORKS` have only the network, with its head. They need the
packages of `requirements/onnx.txt` and `requirements/openvino.txt`.
"""

import os

import keras
import numpy as np

from bert.common import atomic
from bert.common.atomic import write_whole
from bert.common.errors import UserError
from bert.common.formats import tensor_files
from bert.common.progress import log
from bert.data import feature_names, sequence_packing
from bert.data.text import tokenizer_files, vocabulary
from bert.modeling import checkpoints, networks
from bert.modeling.config import BertConfig
from bert.modeling.engines.openvino_engine import OpenVINOEngine
from bert.modeling.formats import (
    checkpoint_files,
    huggingface,
    openvino,
    sentence_files,
)
from bert.modeling.formats.conversion_settings import NETWORKS
from bert.modeling.formats.model import Model
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import (
    HEADS,
    MASKED_LM,
    PRETRAINING,
    head_of,
    heads_of,
)

TOLERANCE = 1e-4  # absolute difference of outputs in float32
_ONNX = "model.onnx"
_UNUSED = {  # entry of task.json -> effect of transformers, which ignores it
    "decision": "thresholds, temperature or --unknown_below: its predictions "
    "only depend on the logits",
    "truncate": "--truncate=head_tail: it keeps the first tokens of longer "
    "texts",
    "windows": "windows: it truncates longer texts",
    "document_context": "--document_context: a sentence has no neighbors",
    "max_answer_length": "the null threshold, --doc_stride and the lengths of "
    "questions and answers: pass them to its pipeline",
}


def outputs_of(model: Model) -> dict:
    """Computes the outputs of the encoder and of each head on seeded inputs.

    Args:
        model: Model. The model.

    Returns:
        Dict: name -> float32 array.

    Raises:
        UserError: a variable of the encoder is missing or has another shape.
    """
    network = model.network(MASKED_LM, required=checkpoints.ENCODER)
    batch = seeded_inputs(model.config)

    encoder = network.get_layer("bert")
    vectors = encoder({name: batch[name] for name in encoder.input})
    outputs = {"sequence_output": vectors["sequence_output"], **network(batch)}

    # The pre-training model has no task heads: each is called separately.
    for name in heads_of(model.values):
        if name not in PRETRAINING:
            head = model.network(name, encoder=encoder)
            is_pooled = HEADS[name].is_pooled
            x = vectors["pooled_output" if is_pooled else "sequence_output"]
            outputs[name] = head.get_layer(name)(x)

    return {name: np.array(value) for name, value in outputs.items()}


def seeded_inputs(config: BertConfig, length: int | None = None) -> dict:
    """Random batch of 4 sequences with padding and two segments.

    Args:
        config: BertConfig. Sizes of the network.
        length: int or None. S. Default: None, 32, or the maximum length of the
            network if it is lower.

    Returns:
        Dict: feature name -> int32 array, [4, S] or [4, 2].
    """
    rng = np.random.default_rng(0)
    length = length or min(config.max_position_embeddings, 32)

    # From no padding to almost only padding.
    real = np.array([[length], [length - 1], [2], [1]])
    mask = np.arange(length) < real  # [4, length]

    inputs = {
        feature_names.INPUT_IDS: rng.integers(0, config.vocab_size, mask.shape),
        feature_names.INPUT_MASK: mask,
        feature_names.SEGMENT_IDS: (np.arange(length) > length // 2) & mask,
        feature_names.MASKED_LM_POSITIONS: rng.integers(0, length, (4, 2)),
    }

    return {name: value.astype(np.int32) for name, value in inputs.items()}


def write(model: Model, target: str, folder: str) -> None:
    """Writes the files of a model to an empty folder.

    Args:
        model: Model. The model.
        target: str. Format, see `conversion_settings`. Files of a network are
            written by `convert`.
        folder: str. Folder to write to.
    """
    if target == "huggingface":
        huggingface.write(folder, model.config, model.values, model.task_json)
        for entry, unused in _UNUSED.items():
            if (model.task_json or {}).get(entry) not in (
                None,
                False,
                huggingface.TAIL,
            ):
                log(f"warning: transformers does not use {unused}")
    elif target == "google":
        tensor_files.write(
            os.path.join(folder, "bert_model.ckpt"), model.values
        )

    write_files(model, folder, target == "huggingface")


def write_files(model: Model, folder: str, is_theirs: bool = False) -> None:
    """Writes all files of a model except its weights.

    Args:
        model: Model. The model.
        folder: str. Folder to write to.
        is_theirs: bool. Whether to write the files of transformers, whose
            config.json contains the sizes and labels. Default: False.
    """
    if not is_theirs:
        write_whole(
            os.path.join(folder, "bert_config.json"), model.config.to_json()
        )
    if model.task_json is not None and head_of(model.values):
        checkpoint_files.write_task(folder, model.task_json)

    if model.pooling_config and model.tokenizer:
        sentence_files.write(
            folder,
            model.pooling_config,
            model.config.hidden_size,
            model.tokenizer.max_length,
        )

    if model.tokenizer is not None:
        tokens = model.tokenizer.tokens
        vocabulary.write_vocabulary(os.path.join(folder, "vocab.txt"), tokens)
        casing = model.tokenizer.casing

        # Transformers needs a length; otherwise only a shorter one is written.
        positions = model.config.max_position_embeddings
        longest = min(
            model.tokenizer.max_length,
            (model.task_json or {}).get("max_seq_length", positions),
            positions,
        )
        is_recorded = is_theirs or longest < positions
        tokenizer_files.write_config(
            folder,
            casing,
            longest if is_recorded else None,
            is_theirs
            and (model.task_json or {}).get("truncate") == huggingface.TAIL,
        )
        if is_theirs:
            tokenizer_files.write_pipeline(folder, tokens, casing)


def largest_difference(before: dict, after: dict) -> float:
    """Largest absolute difference of any output; NaN if an output is NaN."""
    differences = [
        abs(np.asarray(before[name]) - after[name]).max() for name in before
    ]
    return float(np.max(differences))  # Python's max may lose a NaN


def check_outputs(
    before: dict, after: dict, tolerance: float, path: str | None, when: str
) -> float:
    """Compares the outputs of a model and of its written files.

    Args:
        before, after: dict. Name -> array.
        tolerance: float. Maximum difference.
        path: str or None. The model, for the message.
        when: str. End of the message, such as "after conversion".

    Returns:
        The largest difference.

    Raises:
        UserError: the difference is too large, or an output is NaN.
    """
    difference = largest_difference(before, after)

    # Written so that NaN also fails.
    if not difference <= tolerance:
        raise UserError(
            f"outputs differ by {difference:.1e} {when}",
            path=path,
            expected=f"at most {tolerance:.0e}",
        )
    return difference


def convert(model: Model, target: str, output: str) -> float:
    """Writes a model, and compares its outputs before renaming the files.

    Args:
        model: Model. The model.
        target: str. Format, see `conversion_settings`.
        output: str. Folder to write to.

    Returns:
        The largest difference between the outputs of both models.

    Raises:
        UserError: a weight is not finite, the difference exceeds `TOLERANCE`,
            or the disk is full.
    """
    model.check_finite()
    if model.pooling_config:
        model.pooling_config.check()
    before = {} if target in NETWORKS else outputs_of(model)
    with atomic.whole_folder(output) as scratch:
        write(model, target, scratch)
        if target in NETWORKS:
            before, after = _write_network(model, target, scratch)
        else:
            after = outputs_of(ModelFolder.open(scratch).read())
        return check_outputs(
            before, after, TOLERANCE, model.path, "after conversion"
        )


def parts_of(values: dict, target: str) -> list[str]:
    """Names of the written parts; networks have no heads of pre-training."""
    parts = ["encoder"] + ["pooler"] * ("bert/pooler/dense/kernel" in values)
    return parts + [
        HEADS[name].title
        for name in heads_of(values)
        if target not in NETWORKS or name not in PRETRAINING
    ]


def network_of(model: Model) -> keras.Model:
    """Network of a model, with its head; the outputs are a flat dict."""
    head = head_of(model.values)
    network = model.network(head)
    if head is not None:
        return network

    # The outputs of an untrained pooler are meaningless.
    names = ["sequence_output"]
    if any(name.startswith("bert/pooler/") for name in model.values):
        names.append("pooled_output")
    outputs = {name: network.output[name] for name in names}
    return keras.Model(network.input, outputs)


def _write_network(model: Model, target: str, folder: str) -> list[dict]:
    """Writes the file of a network: by Keras' own `export`, or for OpenVINO.

    Returns:
        Outputs of Keras and outputs of the file: dicts of name -> array.
    """
    seeded = seeded_inputs(model.config)
    inputs = {name: seeded[name] for name in feature_names.ENCODER_INPUTS}
    if target == "openvino":
        openvino.write(folder, model.config, model.values)
        return _outputs_of_rows(model, OpenVINOEngine(folder), inputs)

    network = network_of(model)
    if (
        len(network.input[feature_names.INPUT_IDS].shape) == 3
    ):  # multiple choice
        inputs = {name: x[:, None] for name, x in inputs.items()}
    before = network(inputs)  # `export` needs a model that was called
    path = os.path.join(folder, _ONNX)
    _teach_erfc()
    network.export(path, format=target, verbose=False)
    return [before, _run_onnx(path, inputs)]


def _outputs_of_rows(
    model: Model, engine: OpenVINOEngine, inputs: dict
) -> list[dict]:
    """Outputs of packed rows, of Keras and of an OpenVINO network."""
    head = head_of(model.values)
    network = model.network(head)
    encoder = checkpoints.encoder_of(network)
    layer = network.get_layer(head) if head else None

    def run(packed: dict) -> np.ndarray:
        return np.array(networks.packed_outputs(encoder, layer, packed))

    real = inputs[feature_names.INPUT_MASK].astype(bool)
    rows = [
        (ids[mask].tolist(), segments[mask].tolist())
        for ids, segments, mask in zip(
            inputs[feature_names.INPUT_IDS],
            inputs[feature_names.SEGMENT_IDS],
            real,
        )
    ]
    is_pooled = head is not None and HEADS[head].is_pooled
    return [
        {
            "output": np.concatenate(
                sequence_packing.map_packed(x, rows, is_pooled)
            )
        }
        for x in (run, engine)
    ]


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
