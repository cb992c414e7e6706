"""Exports an encoder or a preprocessor with the API of TF-Hub."""

import copy
import os
import tempfile

import keras
import numpy as np

from bert.common import atomic
from bert.common.errors import UserError
from bert.common.progress import log
from bert.data import feature_names
from bert.data.text import vocabulary_checks
from bert.data.text.tokenizer import Tokenizer
from bert.export import folder as export_folder
from bert.export import tf_hub
from bert.export.tf_hub_settings import WITH_MLM, Settings
from bert.modeling import checkpoints
from bert.modeling import tf_hub as loader
from bert.modeling.formats import conversion, sentence_files
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.precision import stored_in
from bert.modeling.task_heads import MASKED_LM

# Maximum difference between outputs of the SavedModel and the Keras model.
TOLERANCE = {"float32": 1e-4, "float16": 0.02, "bfloat16": 0.2}


def export_model(settings: Settings, folder: ModelFolder) -> str:
    """Exports an encoder.

    Args:
        settings: Settings. Settings of the script.
        folder: ModelFolder. The result of `tf_hub_settings.check`.

    Returns:
        str. A log line about the export.

    Raises:
        UserError: The head is missing, or the reloaded SavedModel computes
            other outputs.
    """
    config, tokenizer = folder.config, folder.tokenizer
    vocabulary_checks.warn(tokenizer, config.vocab_size, folder.config_file)
    prefix = folder.resolve()
    with_mlm = settings.export_type == WITH_MLM
    if with_mlm and "cls/predictions/output_bias" not in folder.values:
        raise UserError(
            "has no masked-LM head",
            path=prefix,
            fix="pass --export_type=model, or the pre-trained checkpoint",
        )

    # Models trained without next-sentence prediction may lack a pooler.
    if "bert/pooler/dense/kernel" not in folder.values:
        log(
            f"warning: {prefix} has no pooler; the weights of pooled_output "
            "are random and need fine-tuning"
        )

    model = build_model(folder, settings.precision)
    with tempfile.TemporaryDirectory() as scratch:
        asset = copy.copy(tokenizer)
        asset.path = os.path.join(scratch, "vocab.txt")  # name of the asset
        atomic.write_whole(asset.path, tokenizer.content)

        length = settings.static_seq_length or None
        module = tf_hub.build_encoder(model, config, asset, with_mlm, length)
        inputs = conversion.seeded_inputs(config, length)
        difference = 0.0

        # Compared before the folder is renamed, so a failure leaves nothing.
        def save(path: str) -> None:
            nonlocal difference
            tf_hub.save(module, path)
            if folder.pooling_config:
                sentence_files.write(
                    path,
                    folder.pooling_config,
                    config.hidden_size,
                    folder.max_length,
                )
            difference = compare(path, settings, model, inputs)

        export_folder.write(settings.export_path, save)

    # Differences because of the lower precision, not of the export.
    if settings.precision != "float32":
        exact = build_model(folder, "float32")
        loss = conversion.largest_difference(
            outputs_of(exact, inputs), outputs_of(model, inputs)
        )
        log(f"{settings.precision} changes the outputs by up to {loss:.1e}")

    variables = (module.mlm if with_mlm else module).variables
    count = sum(variable.shape.num_elements() for variable in variables)
    what = "encoder with masked-LM head" if with_mlm else "encoder"
    return (
        f"wrote an {what} ({len(variables)} variables, {count:,} numbers) to "
        f"{settings.export_path}; reloaded, its outputs differ by at most "
        f"{difference:.1e}"
    )


def build_model(folder: ModelFolder, precision: str) -> keras.Model:
    """Builds the Keras model with the weights of a checkpoint.

    Args:
        folder: ModelFolder. The checkpoint.
        precision: str. One of `PRECISIONS`.
    """
    with stored_in(precision):
        return folder.network(MASKED_LM, required=checkpoints.ENCODER)


def outputs_of(model, inputs: dict) -> dict:
    """Computes the float32 outputs of the Keras model by TF-Hub's names."""
    encoded = model.get_layer("bert")(
        {name: inputs[name] for name in feature_names.ENCODER_INPUTS}
    )
    outputs = {x: encoded[x] for x in ("pooled_output", "sequence_output")}
    for index, layer in enumerate(encoded["encoder_outputs"]):
        outputs[f"encoder_outputs {index}"] = layer
    outputs["mlm_logits"] = model(inputs)["masked_lm_logits"]

    return {
        name: keras.ops.convert_to_numpy(x).astype(np.float32)
        for name, x in outputs.items()
    }


def compare(folder: str, settings: Settings, model, inputs: dict) -> float:
    """Reloads an encoder and compares it with the Keras model.

    Args:
        folder: str. Folder of the SavedModel.
        settings: Settings. Settings of the export.
        model: keras.Model. The Keras model.
        inputs: dict. The result of `conversion.seeded_inputs`.

    Returns:
        float. The largest difference of the outputs.

    Raises:
        UserError: The difference is too large.
    """
    expected = outputs_of(model, inputs)
    loaded = loader.load(folder, trust_model=True)

    inputs = {loader.NAMES.get(n, n): x for n, x in inputs.items()}
    positions = inputs.pop(feature_names.MASKED_LM_POSITIONS)
    parts = [loaded(inputs)]
    if settings.export_type == WITH_MLM:
        inputs[feature_names.MASKED_LM_POSITIONS] = positions
        parts.append(loaded.mlm(inputs))

    before, after = {}, {}
    for index, part in enumerate(parts):
        for layer, x in enumerate(part.pop("encoder_outputs")):
            part[f"encoder_outputs {layer}"] = x

        # Two names of the same tensor, so bit-identical.
        np.testing.assert_array_equal(
            part.pop("default"), part["pooled_output"]
        )
        before |= {(index, name): expected[name] for name in part}
        after |= {(index, name): x.numpy() for name, x in part.items()}

    return conversion.check_outputs(
        before,
        after,
        TOLERANCE[settings.precision],
        settings.model_checkpoint_path,
        "after reloading",
    )


def export_preprocessor(settings: Settings, tokenizer: Tokenizer) -> str:
    """Exports a preprocessor.

    Args:
        settings: Settings. Settings of the script.
        tokenizer: Tokenizer. Its vocabulary and casing are exported.

    Returns:
        str. A log line about the export.
    """
    vocabulary_checks.warn(tokenizer)
    length = settings.default_seq_length
    module = tf_hub.Preprocessor(
        tokenizer, length, settings.tokenize_with_offsets
    )

    export_folder.write(settings.export_path, lambda x: tf_hub.save(module, x))
    return (
        f"wrote a preprocessor ({len(tokenizer.tokens):,} tokens, length "
        f"{length}, do_lower_case={tokenizer.do_lower_case}, "
        f"strip_accents={tokenizer.strips_accents}) to {settings.export_path}"
    )
