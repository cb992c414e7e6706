"""Export of an encoder or a preprocessor with TF-Hub's API, and its checks."""

import copy
import dataclasses
import os
import tempfile

from common import storage, tensorflow_log
from common.errors import UserError
from common.flags import flag, group
from common.progress import say
from data import features
from data.text import tokenization, vocabulary, vocabulary_checks
from data.text.tokenizer import Tokenizer
from modeling.config import BertConfig
from modeling.formats import conversion
from modeling.formats.model_folder import ModelFiles, ModelFolder
from serving import export_folder

# Maximum difference between outputs of the SavedModel and the Keras model.
TOLERANCE = {"float32": 1e-4, "float16": 0.02, "bfloat16": 0.2}
PREPROCESSING, WITH_MLM = "preprocessing", "model_with_mlm"
# Texts that tokenizers are known to differ on, a long word and a long text.
_TEXTS = (
    *("", "The cat sees a dog.", "UNaffable!", "caf\u00e9 Stra\u00dfe x\u00b2"),
    *("\u039f\u0394\u039f\u03a3 \u0130i", "\u63a8\u6587 \ud55c\uad6d\uc5b4"),
    *("a\u00adb\u200bc\u0000d\ufffd", "\ue000 [MASK] ##a", "a" * 201),
    "one two, three; " * 300,
)


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of export_hub.py."""

    export_type: str = flag(
        "model",
        "Encoder, encoder with masked-LM head, or preprocessor.",
        choices=("model", WITH_MLM, PREPROCESSING),
    )
    precision: str = flag(
        "float32",
        "Precision of weights and computation; models in lower precision than "
        "float32 are for serving only.",
        choices=tuple(TOLERANCE),
    )
    files: ModelFiles = group(ModelFiles)
    model_checkpoint_path: str | None = flag(
        None, "Prefix or folder of the checkpoint.", path=True
    )
    export_path: str | None = flag(
        None,
        "Folder to write, new or empty.",
        required=True,
        path=True,
    )
    tokenize_with_offsets: bool = flag(
        False, "Add tokenize_with_offsets to the preprocessor."
    )
    copy_pooler_dense_to_encoder: bool = flag(
        False, "Accepted; changes nothing."
    )
    experimental_disable_assert_in_preprocessing: bool = flag(
        False, "Accepted; changes nothing."
    )
    default_seq_length: int = flag(
        128, "Length of the sequences of a preprocessor.", at_least=3
    )
    static_seq_length: int = flag(
        0, "Length of the sequences of a model; 0: any length.", at_least=0
    )

    @property
    def is_preprocessor(self) -> bool:
        """Whether a preprocessor is exported, not a model."""
        return self.export_type == PREPROCESSING


def check(settings: Settings) -> ModelFolder:
    """Checks the flags against each other and the files.

    Returns:
        the model; for a preprocessor its path may be "".

    Raises:
        UserError: if they contradict each other, or a file is missing.
    """
    export_folder.check(settings.export_path, "export_path")
    checkpoint = settings.model_checkpoint_path
    if settings.is_preprocessor:
        if settings.precision != "float32" or settings.static_seq_length:
            raise UserError(
                "--precision and --static_seq_length apply to models only",
                fix="omit them",
            )
        if not (settings.files.vocab_file or checkpoint):
            raise UserError("no --vocab_file", fix="pass the vocabulary")
    elif not checkpoint:
        raise UserError(
            "no --model_checkpoint_path", fix="pass the checkpoint's prefix"
        )
    model = ModelFolder.open(checkpoint, settings.files)
    if settings.is_preprocessor:
        vocabulary_checks.check_exportable(model.tokenizer)
        model.check_casing(model.tokenizer)
        return model
    model.check()
    model.config.check_length(
        settings.static_seq_length, "static_seq_length", model.config_file
    )
    return model


def export_model(settings: Settings, folder: ModelFolder) -> str:
    """Exports an encoder.

    Args:
        settings: settings of the script.
        folder: from `check`.

    Returns:
        a log line about the export.
    """
    from serving import hub

    config, tokenizer = folder.config, folder.tokenizer
    vocabulary_checks.warn(tokenizer, config.vocab_size, folder.config_file)
    prefix, (read, _) = folder.resolve(), folder.weights()
    with_mlm = settings.export_type == WITH_MLM
    if with_mlm and "cls/predictions/output_bias" not in read:
        raise UserError(
            "has no masked-LM head",
            path=prefix,
            fix="pass --export_type=model, or the pre-trained checkpoint",
        )
    if "bert/pooler/dense/kernel" not in read:
        say(
            f"warning: {prefix} has no pooler: pooled_output has random "
            "weights, and needs fine-tuning"
        )
    model = build_model(config, settings.precision, read, prefix)
    with tempfile.TemporaryDirectory() as scratch:
        asset = copy.copy(tokenizer)
        asset.path = os.path.join(scratch, "vocab.txt")  # the asset's name
        storage.write_whole(asset.path, tokenizer.content)
        length = settings.static_seq_length or None
        module = hub.build_encoder(model, config, asset, with_mlm, length)
        inputs = conversion.seeded_inputs(config, length)
        differences = []

        def save(path: str) -> None:
            hub.save(module, path)
            differences.append(compare(path, settings, model, read, inputs))

        export_folder.write(settings.export_path, save)
    if settings.precision != "float32":
        exact = build_model(config, "float32", read, prefix)
        loss = conversion.largest_difference(
            outputs_of(exact, inputs), outputs_of(model, inputs)
        )
        say(f"{settings.precision} changes the outputs by up to {loss:.1e}")
    variables = (module.mlm if with_mlm else module).variables
    count = sum(variable.shape.num_elements() for variable in variables)
    what = "encoder with masked-LM head" if with_mlm else "encoder"
    return (
        f"wrote an {what} ({len(variables)} variables, {count:,} numbers) to "
        f"{settings.export_path}; reloaded, its outputs differ by at most "
        f"{differences[0]:.1e}"
    )


def build_model(config: BertConfig, precision: str, read: dict, path: str):
    """Builds the Keras model with the weights of a checkpoint."""
    from modeling import checkpoints, models
    from modeling.precision import stored_in

    with stored_in(precision):
        model = models.build_pretraining_model(config)
    checkpoints.assign(checkpoints.model_variables(model), read, path)
    return model


def outputs_of(model, inputs: dict) -> dict:
    """Computes float32 outputs of the Keras model under TF-Hub's names."""
    import keras
    import numpy as np

    found = model.get_layer("bert")(
        {name: inputs[name] for name in features.ENCODER_INPUTS}
    )
    outputs = {x: found[x] for x in ("pooled_output", "sequence_output")}
    for index, layer in enumerate(found["encoder_outputs"]):
        outputs[f"encoder_outputs {index}"] = layer
    outputs["mlm_logits"] = model(inputs)["masked_lm_logits"]
    arrays = {
        name: keras.ops.convert_to_numpy(x) for name, x in outputs.items()
    }
    return {name: x.astype(np.float32) for name, x in arrays.items()}


def compare(
    folder: str, settings: Settings, model, read: dict, inputs: dict
) -> float:
    """Reloads an encoder and compares it with the Keras model.

    Args:
        folder: folder of the SavedModel.
        settings: settings of the export.
        model: the Keras model.
        read: original name -> array, from the checkpoint.
        inputs: from `conversion.seeded_inputs`.

    Returns:
        the largest difference of the outputs.

    Raises:
        UserError: if the difference is too large.
    """
    import numpy as np
    import tensorflow as tf

    from modeling import hub
    from modeling.formats import model_garden, saved_models

    expected = outputs_of(model, inputs)
    loaded = hub.load(folder, trust_model=True)
    inputs = {hub.NAMES.get(n, n): x for n, x in inputs.items()}
    positions = inputs.pop(features.MASKED_LM_POSITIONS)
    parts = [loaded(inputs)]
    if settings.export_type == WITH_MLM:
        inputs[features.MASKED_LM_POSITIONS] = positions
        parts.append(loaded.mlm(inputs))
    difference = 0.0
    for found in parts:
        for index, layer in enumerate(found.pop("encoder_outputs")):
            found[f"encoder_outputs {index}"] = layer
        np.testing.assert_array_equal(
            found.pop("default"), found["pooled_output"]
        )
        some = {name: expected[name] for name in found}
        worst = conversion.largest_difference(
            some, {name: x.numpy() for name, x in found.items()}
        )
        difference = max(difference, worst)
    kind = tf.as_dtype(settings.precision).as_numpy_dtype
    written, _ = model_garden.read(saved_models.variables_of(folder))
    for name, value in written.items():
        if name in read:  # a pooler may be missing
            stored = read[name].astype(kind).astype(np.float32)
            np.testing.assert_array_equal(value, stored, name)
    tolerance = TOLERANCE[settings.precision]
    if not difference <= tolerance:
        raise UserError(
            f"outputs differ by {difference:.1e} after reloading",
            path=settings.model_checkpoint_path,
            expected=f"at most {tolerance:.0e}",
        )
    return difference


def export_preprocessor(settings: Settings, tokenizer: Tokenizer) -> str:
    """Exports a preprocessor; see `export_model`, but without a config."""
    vocabulary_checks.warn(tokenizer)

    from serving import hub

    length = settings.default_seq_length
    module = hub.Preprocessor(tokenizer, length, settings.tokenize_with_offsets)

    def save(folder: str) -> None:
        from modeling import hub as loader

        hub.save(module, folder)
        loaded = loader.load(folder, trust_model=True)
        with tensorflow_log.held_back():  # when the graph is optimized
            found = loaded(list(_TEXTS))
        for index, text in enumerate(_TEXTS):
            expected = inputs_of(tokenizer.exact, text, length)
            for name, values in expected.items():
                tensor = found[loader.NAMES[name]][index]
                assert tensor.numpy().tolist() == values, (text, name)

    export_folder.write(settings.export_path, save)
    return (
        f"wrote a preprocessor ({len(tokenizer.tokens):,} tokens, length "
        f"{length}, do_lower_case={tokenizer.do_lower_case}, "
        f"strip_accents={tokenizer.strips_accents}) to "
        f"{settings.export_path}; reloaded, its output equals that of "
        f"data/text/tokenization.py for {len(_TEXTS)} hard texts"
    )


def inputs_of(
    tokenizer: tokenization.FullTokenizer, text: str, length: int
) -> dict:
    """Computes the encoder's inputs of a text, without a graph."""
    tokens = tokenizer.tokenize(text)[: length - 2]
    tokens = [vocabulary.CLS, *tokens, vocabulary.SEP]
    ids = tokenizer.convert_tokens_to_ids(tokens)
    padding = [0] * (length - len(ids))
    pad = tokenizer.vocab[vocabulary.PAD]
    return {
        features.INPUT_IDS: ids + [pad] * len(padding),
        features.INPUT_MASK: [1] * len(ids) + padding,
        features.SEGMENT_IDS: [0] * length,
    }
