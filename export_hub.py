r"""Checkpoint -> SavedModels that TF-Hub's users know: encoder, preprocessor.

    python export_hub.py --export_type=model --bert_config_file=config.json \
        --model_checkpoint_path=bert_model.ckpt --vocab_file=vocab.txt \
        --export_path=encoder
    python export_hub.py --export_type=preprocessing \
        --vocab_file=vocab.txt --export_path=preprocessor

What was written is loaded again and compared before it gets its name.
"""

import os
import shutil
import sys
import tempfile

from absl import flags

import convert_checkpoint
from common.errors import UserError
from common.progress import say
from data import features
from data.text import tokenization, vocabulary, vocabulary_checks
from modeling.config import BertConfig
from modeling.formats import model_folder
from serving import export_folder
from tasks import common_flags, output_dir, text_flags

# Of outputs, from those of the same weights outside of the SavedModel.
TOLERANCE = {"float32": 1e-4, "float16": 0.02, "bfloat16": 0.2}
_IGNORED = (
    "copy_pooler_dense_to_encoder",
    "experimental_disable_assert_in_preprocessing",
)
# What tokenizers are known to differ on, a long word and a cut row.
_TEXTS = (
    *("", "The cat sees a dog.", "UNaffable!", "caf\u00e9 Stra\u00dfe x\u00b2"),
    *("\u039f\u0394\u039f\u03a3 \u0130i", "\u63a8\u6587 \ud55c\uad6d\uc5b4"),
    *("a\u00adb\u200bc\u0000d\ufffd", "\ue000 [MASK] ##a", "a" * 201),
    "one two, three; " * 300,
)


def define_flags(values: flags.FlagValues) -> None:
    """Defines this script's flags."""
    for name, choices, meaning in (
        (
            "export_type",
            ["model", "model_with_mlm", "preprocessing"],
            "Encoder, encoder with masked-LM head, or preprocessor.",
        ),
        (
            "precision",
            list(TOLERANCE),
            "Of weights and computation; for serving alone if not float32.",
        ),
    ):
        flags.DEFINE_enum(
            name, choices[0], choices, meaning, flag_values=values
        )
    for name, meaning in (
        ("bert_config_file", "Default: beside the checkpoint."),
        ("model_checkpoint_path", "A checkpoint's prefix, or its folder."),
        ("vocab_file", "Default: beside the checkpoint."),
    ):
        flags.DEFINE_string(name, None, meaning, flag_values=values)
    flags.DEFINE_string(
        "export_path",
        None,
        "Folder to write, empty or not there yet.",
        flag_values=values,
        required=True,
    )
    text_flags.define_case(
        values,
        None,
        "Default: as the checkpoint says, or as its vocabulary looks.",
    )
    for name, meaning in (
        ("tokenize_with_offsets", "The preprocessor tells where pieces are."),
        *((name, "Accepted; changes nothing.") for name in _IGNORED),
    ):
        flags.DEFINE_bool(name, False, meaning, flag_values=values)
    for name, default, lowest, meaning in (
        ("default_seq_length", 128, 3, "Pieces in a row of a preprocessor."),
        ("static_seq_length", 0, 0, "Pieces in each row of a model; 0: any."),
    ):
        flags.DEFINE_integer(
            name, default, meaning, flag_values=values, lower_bound=lowest
        )


def read_flags(argv: list[str]) -> flags.FlagValues:
    """Reads and checks the command line, and the files that it names."""
    values = common_flags.parse(argv, define_flags, __doc__)
    export_folder.check(values.export_path, "export_path")
    checkpoint = values.model_checkpoint_path
    if values.export_type == "preprocessing":
        if values.precision != "float32" or values.static_seq_length:
            raise UserError(
                "--precision and --static_seq_length are for models"
            )
        if not (values.vocab_file or checkpoint):
            raise UserError("no --vocab_file")
    elif not checkpoint:
        raise UserError(
            "no --model_checkpoint_path", fix="pass the checkpoint's prefix"
        )
    values.vocab_file = model_folder.find(
        checkpoint or "", "vocab.txt", values.vocab_file, "vocab_file"
    )
    if checkpoint:
        output_dir.check_beside(checkpoint, values.vocab_file)
    return values


def read_config(values: flags.FlagValues, tokens: list[str]) -> BertConfig:
    """Reads the sizes and compares them with flags and vocabulary."""
    path = model_folder.find(
        values.model_checkpoint_path,
        "bert_config.json",
        values.bert_config_file,
        "bert_config_file",
    )
    config = BertConfig.from_json_file(path)
    config.check_vocabulary(tokens, values.vocab_file, path)
    config.check_length(values.static_seq_length, "static_seq_length", path)
    return config


def find_casing(
    values: flags.FlagValues, tokens: list[str], prefix: str | None
) -> tuple[bool, bool]:
    """Finds the casing.

    Returns:
        do_lower_case, of the flag, or of the checkpoint, or of the
        vocabulary; strip_accents, of the flag, or of the checkpoint.
    """
    lower, strip = values.do_lower_case, values.strip_accents
    recorded, trained = None, None
    if prefix:
        recorded, trained = model_folder.recorded_casing(prefix)
    if lower is None:
        lower = recorded
    if lower is None:
        lower = model_folder.guess_casing(tokens)
    if strip is None:
        strip = trained
    strips = tokenization.strips_accents(lower, strip)
    if recorded is not None:
        trained = tokenization.strips_accents(recorded, trained)
        for name, given, expected in (
            ("do_lower_case", lower, recorded),
            ("strip_accents", strips, trained),
        ):
            if given != expected:
                raise UserError(
                    f"--{name}={given}",
                    expected=f"{expected}, with which {prefix} was trained",
                )
    return lower, strips


def export_model(values: flags.FlagValues, tokens: list[str]) -> str:
    """Exports an encoder; returns what was done, in a line."""
    config = read_config(values, tokens)

    from modeling import checkpoints
    from serving import hub

    prefix = checkpoints.resolve(values.model_checkpoint_path)
    casing = find_casing(values, tokens, prefix)
    values.do_lower_case, values.strip_accents = casing
    model_folder.warn_vocabulary(values, config)
    read = checkpoints.read(prefix)
    with_mlm = values.export_type == "model_with_mlm"
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
    model = build_model(config, values.precision, read, prefix)
    with tempfile.TemporaryDirectory() as folder:
        asset = os.path.join(folder, "vocab.txt")  # its name in the assets
        shutil.copyfile(values.vocab_file, asset)
        length = values.static_seq_length or None
        module = hub.build_encoder(
            model, config, asset, *casing, with_mlm, length
        )
        compare = Comparison(values, config, model, read)

        def save(path: str) -> None:
            hub.save(module, path)
            compare(path)

        export_folder.write(values.export_path, save)
    if values.precision != "float32":
        exact = build_model(config, "float32", read, prefix)
        rows = compare.rows
        loss = convert_checkpoint.largest_difference(
            outputs_of(exact, rows), outputs_of(model, rows)
        )
        say(f"{values.precision} changes the outputs by up to {loss:.1e}")
    variables = (module.mlm if with_mlm else module).variables
    count = sum(variable.shape.num_elements() for variable in variables)
    what = "encoder with masked-LM head" if with_mlm else "encoder"
    return (
        f"wrote an {what} ({len(variables)} variables, {count:,} numbers) to "
        f"{values.export_path}; loaded again, its outputs differ by at most "
        f"{compare.difference:.1e}"
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


class Comparison:
    """Loads an encoder again and compares it with the Keras model.

    Args:
        values: the flags.
        config: sizes.
        model: the Keras model.
        read: original name -> array of the checkpoint.

    Attributes:
        rows: that are compared.
        difference: the largest of the outputs, float32.
    """

    def __init__(self, values, config: BertConfig, model, read: dict):
        self._values, self._model, self._read = values, model, read
        rows = convert_checkpoint.seeded_rows(config)
        if values.static_seq_length:
            rows = with_length(rows, values.static_seq_length)
        self.rows = rows
        self.difference = 0.0

    def __call__(self, folder: str) -> None:
        """Compares; refuses a difference that is too large."""
        import numpy as np

        from modeling import hub

        values = self._values
        expected = outputs_of(self._model, self.rows)
        loaded = hub.load(folder, trust_model=True)
        inputs = {hub.NAMES.get(n, n): x for n, x in self.rows.items()}
        positions = inputs.pop(features.MASKED_LM_POSITIONS)
        parts = [loaded(inputs)]
        if values.export_type == "model_with_mlm":
            inputs[features.MASKED_LM_POSITIONS] = positions
            parts.append(loaded.mlm(inputs))
        for found in parts:
            for index, layer in enumerate(found.pop("encoder_outputs")):
                found[f"encoder_outputs {index}"] = layer
            np.testing.assert_array_equal(
                found.pop("default"), found["pooled_output"]
            )
            some = {name: expected[name] for name in found}
            worst = convert_checkpoint.largest_difference(
                some, {name: x.numpy() for name, x in found.items()}
            )
            self.difference = max(self.difference, worst)
        self._compare_weights(folder)
        tolerance = TOLERANCE[values.precision]
        if not self.difference <= tolerance:
            raise UserError(
                f"outputs differ by {self.difference:.1e} once it is loaded",
                path=values.model_checkpoint_path,
                expected=f"at most {tolerance:.0e}",
            )

    def _compare_weights(self, folder: str) -> None:
        import numpy as np
        import tensorflow as tf

        kind = tf.as_dtype(self._values.precision).as_numpy_dtype
        written = convert_checkpoint.read_hub(folder, None).values
        for name, value in written.items():
            if name in self._read:  # a pooler may be fresh
                expected = self._read[name].astype(kind).astype(np.float32)
                np.testing.assert_array_equal(value, expected, name)


def with_length(rows: dict, length: int) -> dict:
    """Cuts rows or pads them."""
    import numpy as np

    cut = {name: rows[name][:, :length] for name in features.ENCODER_INPUTS}
    padded = {
        name: np.pad(x, [(0, 0), (0, length - x.shape[1])])
        for name, x in cut.items()
    }
    positions = rows[features.MASKED_LM_POSITIONS] % length
    return {**padded, features.MASKED_LM_POSITIONS: positions}


def export_preprocessor(values: flags.FlagValues, tokens: list[str]) -> str:
    """Exports a preprocessor; returns what was done, in a line."""
    prefix = None
    if values.model_checkpoint_path:
        from modeling import checkpoints

        prefix = checkpoints.resolve(values.model_checkpoint_path)
    casing = find_casing(values, tokens, prefix)
    values.do_lower_case, values.strip_accents = casing
    model_folder.warn_vocabulary(values, None)

    from data.text import text_ops
    from serving import hub

    length = values.default_seq_length
    module = hub.Preprocessor(
        text_ops.GraphTokenizer(tokens, *casing),
        length,
        values.tokenize_with_offsets,
    )
    reference = tokenization.FullTokenizer(values.vocab_file, *casing)

    def save(folder: str) -> None:
        from modeling import hub as loader

        hub.save(module, folder)
        loaded = loader.load(folder, trust_model=True)
        rows = loaded(list(_TEXTS))
        for place, text in enumerate(_TEXTS):
            expected = row_of(reference, text, length)
            for name, row in expected.items():
                found = rows[loader.NAMES[name]][place].numpy().tolist()
                assert found == row, (text, name)

    export_folder.write(values.export_path, save)
    return (
        f"wrote a preprocessor ({len(tokens):,} tokens, rows of {length}, "
        f"do_lower_case={casing[0]}, strip_accents={casing[1]}) to "
        f"{values.export_path}; loaded again, it gives the rows of "
        f"data/text/tokenization.py for {len(_TEXTS)} hard texts"
    )


def row_of(
    tokenizer: tokenization.FullTokenizer, text: str, length: int
) -> dict:
    """The encoder's inputs of a text, made without a graph."""
    pieces = tokenizer.tokenize(text)[: length - 2]
    tokens = [vocabulary.CLS, *pieces, vocabulary.SEP]
    ids = tokenizer.convert_tokens_to_ids(tokens)
    padding = [0] * (length - len(ids))
    pad = tokenizer.vocab[vocabulary.PAD]
    return {
        features.INPUT_IDS: ids + [pad] * len(padding),
        features.INPUT_MASK: [1] * len(ids) + padding,
        features.SEGMENT_IDS: [0] * length,
    }


def main(argv: list[str]) -> None:
    """Runs the script."""
    values = read_flags(argv)
    vocab = vocabulary.read_vocabulary(values.vocab_file)
    tokens = list(vocab)
    preprocessing = values.export_type == "preprocessing"
    if preprocessing:
        vocabulary_checks.check_exportable(values.vocab_file, vocab)
    export = export_preprocessor if preprocessing else export_model
    print(export(values, tokens))


if __name__ == "__main__":
    sys.exit(common_flags.run(main, sys.argv))
