"""Encoders: built, loaded from any format of ours, and saved."""

import dataclasses
import os
import pathlib

import keras

from bert.common import atomic, forks, outputs
from bert.common.errors import UserError
from bert.common.progress import say
from bert.data.text.tokenizer import Tokenizer
from bert.modeling import checkpoints, precision
from bert.modeling.config import BertConfig
from bert.modeling.encoder import Encoder, build_encoder
from bert.modeling.formats import conversion
from bert.modeling.formats.conversion_settings import TARGETS
from bert.modeling.formats.model_folder import ModelFiles, ModelFolder

_CONFIGS = pathlib.Path(__file__).parents[1] / "configs"


def new_encoder(
    config: BertConfig | str, seed: int = 12345, dtype: str | None = None
) -> Encoder:
    """Builds an encoder with initial weights.

        encoder = bert.new_encoder("tiny")
        encoder.count_params()  # 4,385,920

    Args:
        config: the sizes; a path of a `bert_config.json`; or one of the
            published sizes, such as "tiny", "mini", "small" or "base".
        seed: of the initial weights.
        dtype: policy of the layers, such as "mixed_bfloat16"; None: Keras'
            global one.

    Returns:
        the encoder. It takes input_ids, input_mask and segment_ids, int32
        [B, S], and returns a dict of pooled_output, float [B, H],
        sequence_output and embedding_output, float [B, S, H], and
        encoder_outputs, L times float [B, S, H].

    Raises:
        UserError: the config is invalid.
    """
    if isinstance(config, str | os.PathLike):
        published = _CONFIGS / f"bert_{config}.json"
        path = published if published.is_file() else config
        config = BertConfig.from_json_file(str(path))
    config = BertConfig.from_dict(dataclasses.asdict(config))  # checks it
    forks.check(forks.TENSORFLOW)
    with precision.stored_in(dtype or keras.config.dtype_policy()):
        encoder = build_encoder(config, seed)
    encoder.jit_compile = False  # else `predict` compiles for each length
    return encoder


def load_encoder(
    path: str, vocab_file: str | None = None
) -> tuple[Encoder, Tokenizer | None]:
    """Loads an encoder and its tokenizer.

        encoder, tokenizer = bert.load_encoder("model")
        pooled = encoder(tokenizer("The cat sees."))["pooled_output"]

    Args:
        path: output folder of a run, a folder or a checkpoint of the
            original, a folder of Hugging Face transformers, a TF-Hub encoder,
            or the name of a published one, such as
            "hf://google-bert/bert-base-uncased". No code in it is run.
        vocab_file: path of the vocabulary; default: the one that is there.

    Returns:
        the encoder, and its tokenizer; None if there is no vocabulary.

    Raises:
        UserError: a file is missing, damaged or not supported.
    """
    if not isinstance(path, str | os.PathLike):
        raise UserError(
            f"path={path!r:.60}", expected="a path, or a model's name"
        )
    model = ModelFolder.open(os.fspath(path), ModelFiles(vocab_file=vocab_file))
    bert = conversion.read(model)

    encoder = new_encoder(bert.config)
    missing = checkpoints.assign(
        checkpoints.encoder_variables(encoder), bert.values, bert.path
    )
    if missing:
        say(f"initial weights, not in {bert.path}: {', '.join(missing)}")

    # Heads wait here until a function adds them to the encoder.
    heads = {
        name: value
        for name, value in bert.values.items()
        if not name.startswith(checkpoints.ENCODER)
    }
    encoder.checkpoint = dataclasses.replace(bert, values=heads)
    return encoder, bert.tokenizer


def save(
    model: keras.Model,
    folder: str,
    tokenizer: Tokenizer | None = None,
    to: str = "google",
) -> None:
    """Saves an encoder, or an encoder with heads of BERT, and its tokenizer.

    The labels of a `TextClassifier`, or of the fine-tuned model that a head
    is of, are saved with it.

        bert.save(encoder, "saved", tokenizer)
        encoder, tokenizer = bert.load_encoder("saved")

    The scripts read such a folder: `--init_checkpoint=saved`.

    Args:
        model: an encoder, a model with an encoder named "bert" from the
            functions of this library, or a model of texts, such as a
            `TextClassifier`.
        folder: the folder to write; it must be empty or not exist.
        tokenizer: its tokenizer, or None; default: of a model of texts.
        to: format, "google" or "huggingface".

    Raises:
        UserError: the folder is not empty or cannot be written, or the model
            has weights that the format has no name for.
    """
    if to not in TARGETS:
        formats = ", ".join(TARGETS)
        raise UserError(f"to={to!r}", expected=f"one of {formats}")

    folder = os.fspath(folder) or "."
    outputs.check_new_folder(folder, "pass another folder")

    # A model of texts has a network and a tokenizer.
    if hasattr(model, "network"):
        tokenizer = tokenizer or model.tokenizer
        tokenizer = tokenizer.with_max_length(model.max_length)
        model = model.network

    bert = weights_of(model, tokenizer, folder)
    with atomic.whole_folder(folder) as scratch:
        conversion.write(bert, to, scratch)


def weights_of(
    model: keras.Model, tokenizer: Tokenizer | None, path: str
) -> conversion.Bert:
    """Returns config and weights of a model, by their original names.

    Args:
        model: as for `save`.
        tokenizer: its tokenizer, or None.
        path: for messages.

    Raises:
        UserError: the model has weights without such a name.
    """
    values = {name: x.numpy() for name, x in _variables(model).items()}
    task = getattr(model, "task", None)

    # Of a loaded encoder; a head makes another model of it.
    loaded = getattr(model, "checkpoint", None)
    return conversion.Bert(
        path,
        config_of(model),
        values,
        [],
        tokenizer,
        task,
        loaded.vectors if loaded else None,
    )


def load_pair(
    model: "str | tuple[Encoder, Tokenizer]",
) -> tuple[Encoder, Tokenizer]:
    """Loads an encoder and its tokenizer, if only their path is given.

    Raises:
        UserError: there is no vocabulary, or a larger one than the encoder's,
            or see `forks.check`.
    """
    forks.check(forks.TENSORFLOW)
    encoder, tokenizer = (
        model if isinstance(model, tuple | list) else load_encoder(model)
    )

    if tokenizer is None:
        raise UserError(
            "no vocabulary", fix="pass load_encoder(path, vocab_file)"
        )

    config_of(encoder).check_vocabulary(
        tokenizer.tokens, tokenizer.path, "the encoder"
    )
    return encoder, tokenizer


def config_of(model: keras.Model) -> BertConfig:
    """Returns the sizes of an encoder, or of the one in a model."""
    names = {layer.name for layer in model.layers}
    encoder = model.get_layer("bert") if "bert" in names else model
    return encoder.get_layer("embeddings").config


def _variables(model: keras.Model) -> dict[str, keras.Variable]:
    """Original name -> variable of a model."""
    names = {layer.name for layer in model.layers}
    if "bert" in names:
        named = checkpoints.model_variables(model)
    elif "embeddings" in names:
        named = checkpoints.encoder_variables(model)
    else:
        raise UserError("no encoder in the model", expected='a layer "bert"')

    # The updates of LoRA are part of the named kernel.
    saved = {id(variable) for variable in named.values()}
    for layer in model._flatten_layers():
        if getattr(layer, "lora_enabled", False) and id(layer.bias) in saved:
            saved.update(map(id, layer.weights))

    unnamed = [x.path for x in model.weights if id(x) not in saved]

    # The states of random generators are no weights.
    unnamed = [x for x in unnamed if not x.endswith("seed_generator_state")]
    if unnamed:
        raise UserError(
            f"the checkpoint has no name for {', '.join(unnamed[:3])}",
            expected="weights of BERT",
            fix="save the encoder, or the model with Keras",
        )
    return named
