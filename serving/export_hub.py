"""An encoder or a preprocessor by TF-Hub's API, exported and compared."""

import dataclasses
import os
import shutil
import tempfile

from common import flags
from common.errors import UserError
from common.flags import flag
from common.progress import say
from data import features
from data.text import tokenization, vocabulary
from modeling.config import BertConfig
from modeling.formats import conversion, model_folder
from serving import export_folder

# Of outputs, from those of the same weights outside of the SavedModel.
TOLERANCE = {"float32": 1e-4, "float16": 0.02, "bfloat16": 0.2}
PREPROCESSING, WITH_MLM = "preprocessing", "model_with_mlm"
# What tokenizers are known to differ on, a long word and a cut row.
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
        "Precision of weights and computation; a model that is not float32 "
        "is for serving alone.",
        choices=tuple(TOLERANCE),
    )
    bert_config_file: str | None = flag(
        None, "Default: beside the checkpoint.", path=True
    )
    model_checkpoint_path: str | None = flag(
        None, "A checkpoint's prefix, or its folder.", path=True
    )
    vocab_file: str | None = flag(
        None, "Default: beside the checkpoint.", path=True
    )
    export_path: str | None = flag(
        None,
        "Folder to write, empty or not there yet.",
        required=True,
        path=True,
    )
    do_lower_case: bool | None = flag(
        None,
        "Lower-case the text. Default: as the checkpoint records, else "
        "guessed from its vocabulary.",
    )
    strip_accents: bool | None = flag(
        None,
        "Strip accents. Default: as the checkpoint records, else as "
        "--do_lower_case.",
    )
    tokenize_with_offsets: bool = flag(
        False, "The preprocessor has a function for the offsets of tokens."
    )
    copy_pooler_dense_to_encoder: bool = flag(
        False, "Accepted; changes nothing."
    )
    experimental_disable_assert_in_preprocessing: bool = flag(
        False, "Accepted; changes nothing."
    )
    default_seq_length: int = flag(
        128, "Tokens in a row of a preprocessor.", at_least=3
    )
    static_seq_length: int = flag(
        0, "Tokens in each row of a model; 0: any number.", at_least=0
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
        UserError: they contradict each other, or a file is missing.
    """
    export_folder.check(settings.export_path, "export_path")
    checkpoint = settings.model_checkpoint_path
    if settings.is_preprocessor:
        if settings.precision != "float32" or settings.static_seq_length:
            raise UserError(
                "--precision and --static_seq_length are for models"
            )
        if not (settings.vocab_file or checkpoint):
            raise UserError("no --vocab_file")
    elif not checkpoint:
        raise UserError(
            "no --model_checkpoint_path", fix="pass the checkpoint's prefix"
        )
    vocab_file = model_folder.find(
        checkpoint or "", "vocab.txt", settings.vocab_file, "vocab_file"
    )
    return flags.replace(settings, vocab_file=vocab_file)


def read_config(settings: Settings, tokens: list[str]) -> BertConfig:
    """Reads the sizes and compares them with flags and vocabulary."""
    path = model_folder.find(
        settings.model_checkpoint_path,
        "bert_config.json",
        settings.bert_config_file,
        "bert_config_file",
    )
    config = BertConfig.from_json_file(path)
    config.check_vocabulary(tokens, settings.vocab_file, path)
    config.check_length(settings.static_seq_length, "static_seq_length", path)
    return config


def find_casing(
    settings: Settings, tokens: list[str], prefix: str | None
) -> tuple[bool, bool]:
    """Finds the casing.

    Returns:
        do_lower_case, of the flag, or of the checkpoint, or of the
        vocabulary; strip_accents, of the flag, or of the checkpoint.
    """
    lower, strip = settings.do_lower_case, settings.strip_accents
    if prefix:
        lower, strip = model_folder.fill_casing(lower, strip, prefix)
    if lower is None:
        lower = model_folder.guess_casing(tokens)
    if prefix:
        model_folder.check_recorded_casing(lower, strip, prefix)
    return lower, tokenization.strips_accents(lower, strip)


def export_model(settings: Settings, tokens: list[str]) -> str:
    """Exports an encoder.

    Args:
        settings: checked.
        tokens: of the vocabulary.

    Returns:
        a line about the export.
    """
    config = read_config(settings, tokens)

    from modeling import checkpoints
    from serving import hub

    prefix = checkpoints.resolve(settings.model_checkpoint_path)
    casing = find_casing(settings, tokens, prefix)
    model_folder.warn_vocabulary(
        settings.vocab_file, *casing, config, settings.bert_config_file
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
            f"warning: {prefix} has no pooler: pooled_output is made with "
            "fresh weights, of use only after fine-tuning"
        )
    model = build_model(config, settings.precision, read, prefix)
    with tempfile.TemporaryDirectory() as folder:
        asset = os.path.join(folder, "vocab.txt")  # its name in the assets
        shutil.copyfile(settings.vocab_file, asset)
        length = settings.static_seq_length or None
        module = hub.build_encoder(
            model, config, asset, *casing, with_mlm, length
        )
        rows = conversion.seeded_inputs(config, length)
        differences = []

        def save(path: str) -> None:
            hub.save(module, path)
            differences.append(compare(path, settings, model, read, rows))

        export_folder.write(settings.export_path, save)
    if settings.precision != "float32":
        exact = build_model(config, "float32", read, prefix)
        loss = conversion.largest_difference(
            outputs_of(exact, rows), outputs_of(model, rows)
        )
        say(f"{settings.precision} changes the outputs by up to {loss:.1e}")
    variables = (module.mlm if with_mlm else module).variables
    count = sum(variable.shape.num_elements() for variable in variables)
    what = "encoder with masked-LM head" if with_mlm else "encoder"
    return (
        f"wrote an {what} ({len(variables)} variables, {count:,} numbers) to "
        f"{settings.export_path}; loaded again, its outputs differ by at most "
        f"{differences[0]:.1e}"
    )


def build_model(config: BertConfig, precision: str, read: dict, path: str):
    """The Keras model with the weights of a checkpoint."""
    from modeling import checkpoints, models
    from modeling.precision import stored_in

    with stored_in(precision):
        model = models.build_pretraining_model(config)
    checkpoints.assign(checkpoints.model_variables(model), read, path)
    return model


def outputs_of(model, rows: dict) -> dict:
    """Outputs of the Keras model under TF-Hub's names, float32."""
    import keras
    import numpy as np

    found = model.get_layer("bert")(
        {name: rows[name] for name in features.ENCODER_INPUTS}
    )
    outputs = {x: found[x] for x in ("pooled_output", "sequence_output")}
    for index, layer in enumerate(found["encoder_outputs"]):
        outputs[f"encoder_outputs {index}"] = layer
    outputs["mlm_logits"] = model(rows)["masked_lm_logits"]
    arrays = {
        name: keras.ops.convert_to_numpy(x) for name, x in outputs.items()
    }
    return {name: x.astype(np.float32) for name, x in arrays.items()}


def compare(
    folder: str, settings: Settings, model, read: dict, rows: dict
) -> float:
    """Loads an encoder again and compares it with the Keras model.

    Args:
        folder: of the SavedModel.
        settings: of the export.
        model: the Keras model.
        read: original name -> array of the checkpoint.
        rows: inputs, from `conversion.seeded_inputs`.

    Returns:
        the largest difference of the outputs, float32.

    Raises:
        UserError: it is too large.
    """
    import numpy as np
    import tensorflow as tf

    from modeling import hub

    expected = outputs_of(model, rows)
    loaded = hub.load(folder, trust_model=True)
    inputs = {hub.NAMES.get(n, n): x for n, x in rows.items()}
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
    for name, value in conversion.read_hub(folder, None).values.items():
        if name in read:  # a pooler may be fresh
            stored = read[name].astype(kind).astype(np.float32)
            np.testing.assert_array_equal(value, stored, name)
    tolerance = TOLERANCE[settings.precision]
    if not difference <= tolerance:
        raise UserError(
            f"outputs differ by {difference:.1e} once it is loaded",
            path=settings.model_checkpoint_path,
            expected=f"at most {tolerance:.0e}",
        )
    return difference


def export_preprocessor(settings: Settings, tokens: list[str]) -> str:
    """Exports a preprocessor; arguments and result as of `export_model`."""
    prefix = None
    if settings.model_checkpoint_path:
        from modeling import checkpoints

        prefix = checkpoints.resolve(settings.model_checkpoint_path)
    casing = find_casing(settings, tokens, prefix)
    model_folder.warn_vocabulary(settings.vocab_file, *casing)

    from data.text import text_ops
    from serving import hub

    length = settings.default_seq_length
    module = hub.Preprocessor(
        text_ops.GraphTokenizer(tokens, *casing),
        length,
        settings.tokenize_with_offsets,
    )
    reference = tokenization.FullTokenizer(settings.vocab_file, *casing)

    def save(folder: str) -> None:
        from modeling import hub as loader

        hub.save(module, folder)
        loaded = loader.load(folder, trust_model=True)
        rows = loaded(list(_TEXTS))
        for index, text in enumerate(_TEXTS):
            expected = row_of(reference, text, length)
            for name, row in expected.items():
                found = rows[loader.NAMES[name]][index].numpy().tolist()
                assert found == row, (text, name)

    export_folder.write(settings.export_path, save)
    return (
        f"wrote a preprocessor ({len(tokens):,} tokens, rows of {length}, "
        f"do_lower_case={casing[0]}, strip_accents={casing[1]}) to "
        f"{settings.export_path}; loaded again, it gives the rows of "
        f"data/text/tokenization.py for {len(_TEXTS)} hard texts"
    )


def row_of(
    tokenizer: tokenization.FullTokenizer, text: str, length: int
) -> dict:
    """The encoder's inputs of a text, made without a graph."""
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
