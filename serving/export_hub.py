"""Export of an encoder or a preprocessor with TF-Hub's API, and its checks."""

import dataclasses
import os
import tempfile

from common import flags, storage, tensorflow_log
from common.errors import UserError
from common.flags import flag, group
from common.progress import say
from data import features
from data.text import tokenization, vocabulary
from modeling.config import BertConfig
from modeling.formats import conversion, model_folder
from modeling.formats.model_folder import ModelFiles
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


def check(settings: Settings) -> Settings:
    """Checks the flags against each other, and finds the vocabulary.

    Returns:
        the settings with `vocab_file`.

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
    vocab_file = model_folder.find(
        checkpoint or "", "vocab.txt", settings.files.vocab_file, "vocab_file"
    )
    return flags.replace(settings, vocab_file=vocab_file)


def read_config(settings: Settings, tokens: list[str]) -> BertConfig:
    """Reads the config and checks it against flags and vocabulary."""
    path = model_folder.find(
        settings.model_checkpoint_path,
        "bert_config.json",
        settings.files.bert_config_file,
        "bert_config_file",
    )
    config = BertConfig.from_json_file(path)
    config.check_vocabulary(tokens, settings.files.vocab_file, path)
    config.check_length(settings.static_seq_length, "static_seq_length", path)
    return config


def find_casing(
    settings: Settings, tokens: list[str], prefix: str | None
) -> tuple[bool, bool]:
    """Determines the casing.

    Args:
        settings: settings of the script.
        tokens: tokens of the vocabulary.
        prefix: prefix of the checkpoint; None without one.

    Returns:
        do_lower_case, from the flag, the checkpoint or the vocabulary;
        strip_accents, from the flag, the checkpoint or do_lower_case.
    """
    lower, strip = settings.files.do_lower_case, settings.files.strip_accents
    if prefix:
        lower, strip = model_folder.fill_casing(lower, strip, prefix)
    if lower is None:
        lower = model_folder.guess_casing(tokens)
    if prefix:
        model_folder.check_recorded_casing(lower, strip, prefix)
    return lower, tokenization.strips_accents(lower, strip)


def export_model(
    settings: Settings, config: BertConfig, tokens: list[str]
) -> str:
    """Exports an encoder.

    Args:
        settings: from `check`.
        config: from `read_config`.
        tokens: tokens of the vocabulary.

    Returns:
        a log line about the export.
    """
    from modeling import checkpoints
    from serving import hub

    prefix = checkpoints.resolve(settings.model_checkpoint_path)
    casing = find_casing(settings, tokens, prefix)
    model_folder.warn_vocabulary(
        settings.files.vocab_file,
        *casing,
        config,
        settings.files.bert_config_file,
    )
    read = checkpoints.read(prefix)
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
    with tempfile.TemporaryDirectory() as folder:
        asset = os.path.join(folder, "vocab.txt")  # the name of the asset
        storage.copy(settings.files.vocab_file, asset)
        length = settings.static_seq_length or None
        module = hub.build_encoder(
            model, config, asset, *casing, with_mlm, length
        )
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


def export_preprocessor(settings: Settings, tokens: list[str]) -> str:
    """Exports a preprocessor; see `export_model`, but without a config."""
    prefix = None
    if settings.model_checkpoint_path:
        from modeling import checkpoints

        prefix = checkpoints.resolve(settings.model_checkpoint_path)
    casing = find_casing(settings, tokens, prefix)
    model_folder.warn_vocabulary(settings.files.vocab_file, *casing)

    from data.text import text_ops
    from serving import hub

    length = settings.default_seq_length
    module = hub.Preprocessor(
        text_ops.GraphTokenizer(tokens, *casing),
        length,
        settings.tokenize_with_offsets,
    )
    reference = tokenization.FullTokenizer(settings.files.vocab_file, *casing)

    def save(folder: str) -> None:
        from modeling import hub as loader

        hub.save(module, folder)
        loaded = loader.load(folder, trust_model=True)
        with tensorflow_log.held_back():  # when the graph is optimized
            found = loaded(list(_TEXTS))
        for index, text in enumerate(_TEXTS):
            expected = inputs_of(reference, text, length)
            for name, values in expected.items():
                tensor = found[loader.NAMES[name]][index]
                assert tensor.numpy().tolist() == values, (text, name)

    export_folder.write(settings.export_path, save)
    return (
        f"wrote a preprocessor ({len(tokens):,} tokens, length {length}, "
        f"do_lower_case={casing[0]}, strip_accents={casing[1]}) to "
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
