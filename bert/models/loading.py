"""Builds encoders, loads them from any supported format, and saves them."""

import dataclasses
import os
import pathlib

import keras

from bert.common import atomic, outputs, processes
from bert.common.errors import UserError
from bert.common.progress import log
from bert.data.text.tokenizer import Tokenizer
from bert.modeling import checkpoints, precision
from bert.modeling.config import BertConfig
from bert.modeling.encoder import Encoder, build_encoder
from bert.modeling.formats import conversion
from bert.modeling.formats.conversion_settings import TARGETS
from bert.modeling.formats.model import Model
from bert.modeling.formats.model_folder import ModelFiles, ModelFolder

_CONFIGS = pathlib.Path(__file__).parents[1] / "configs"


def new_encoder(
    config: BertConfig | str, seed: int = 12345, dtype: str | None = None
) -> Encoder:
    """Builds an encoder with random weights, for pre-training.

        encoder = bert.new_encoder("tiny")
        encoder.count_params()  # 4,385,920

    For trained weights use `bert.load_encoder`.

    Args:
        config: BertConfig or str. Sizes of the network, a path of a
            `bert_config.json`, or a published size: "tiny", "mini", "small",
            "medium", "base" or "large".
        seed: int. Seed of the initial weights. Default: 12345.
        dtype: str or None. Dtype policy of the layers, such as
            "mixed_bfloat16". Default: the global policy of Keras.

    Returns:
        the Encoder, a `keras.Model`. It takes a dict with input_ids,
        input_mask and segment_ids, int32 [B, S] each. It returns a dict with
        pooled_output, float [B, H], sequence_output and embedding_output,
        float [B, S, H] each, and encoder_outputs, a list of L float
        [B, S, H].

    Raises:
        UserError: The config is invalid.
    """
    if isinstance(config, str | os.PathLike):
        published = _CONFIGS / f"bert_{config}.json"
        path = published if published.is_file() else config
        config = BertConfig.from_json_file(str(path))
    config = BertConfig.from_dict(dataclasses.asdict(config))  # checks it
    processes.check_not_forked(processes.TENSORFLOW)
    with precision.stored_in(dtype or keras.config.dtype_policy()):
        encoder = build_encoder(config, seed)
    encoder.jit_compile = False  # or `predict` compiles for each length
    return encoder


def load_encoder(
    path: str, vocab_file: str | None = None
) -> tuple[Encoder, Tokenizer | None]:
    """Loads an encoder and its tokenizer.

        encoder, tokenizer = bert.load_encoder("model")
        pooled = encoder(tokenizer("The cat sees."))["pooled_output"]

    Heads of the checkpoint are kept: `bert.classifier` and the other builders
    use their weights. For an encoder with random weights use
    `bert.new_encoder`.

    Args:
        path: str. Run folder, checkpoint or folder of the original BERT,
            Hugging Face folder, TF-Hub encoder, or name of a published model,
            such as "hf://google-bert/bert-base-uncased". Code in the folder
            is never executed.
        vocab_file: str or None. Path of the vocabulary. Default: the
            vocabulary beside the model.

    Returns:
        (Encoder, Tokenizer). The tokenizer is None without a vocabulary.

    Raises:
        UserError: A file is missing, damaged or not supported.
    """
    if not isinstance(path, str | os.PathLike):
        raise UserError(
            f"path={path!r:.60}", expected="a path, or a model's name"
        )
    model = ModelFolder.open(os.fspath(path), ModelFiles(vocab_file=vocab_file))
    bert = model.read()

    encoder = new_encoder(bert.config)
    missing = checkpoints.assign(
        checkpoints.encoder_variables(encoder), bert.values, bert.path
    )
    if missing:
        log(f"random weights, not in {bert.path}: {', '.join(missing)}")

    # The builders of models read the heads from here.
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
    """Saves a model and its tokenizer to a folder.

        bert.save(encoder, "saved", tokenizer)
        encoder, tokenizer = bert.load_encoder("saved")

    The scripts read the folder, too: `--init_checkpoint=saved`. The labels of
    a fine-tuned model are saved with it. To save the optimizer, too, use
    `model.save("saved.keras")` of Keras.

    Args:
        model: keras.Model. An encoder, a model of the builders, such as
            `bert.classifier`, or a model that takes text, such as
            `bert.TextClassifier`.
        folder: str. Path of a new or empty folder.
        tokenizer: Tokenizer or None. Tokenizer to save. Default: the
            tokenizer of a model that takes text, else no tokenizer.
        to: str. Format, "google" or "huggingface". Default: "google".

    Raises:
        UserError: The folder is not empty or cannot be written, or the format
            has no name for a weight of the model.
    """
    if to not in TARGETS:
        formats = ", ".join(TARGETS)
        raise UserError(f"to={to!r}", expected=f"one of {formats}")

    folder = os.fspath(folder) or "."
    outputs.check_new_folder(folder, "pass another folder")

    # A model that takes text has a network and a tokenizer.
    if hasattr(model, "network"):
        tokenizer = tokenizer or model.tokenizer
        tokenizer = tokenizer.with_max_length(model.max_length)
        model = model.network

    bert = weights_of(model, tokenizer, folder)
    with atomic.whole_folder(folder) as scratch:
        conversion.write(bert, to, scratch)


def weights_of(
    model: keras.Model, tokenizer: Tokenizer | None, path: str
) -> Model:
    """Returns config and weights of a model, by their original names.

    Args:
        model: keras.Model. See `save`.
        tokenizer: Tokenizer or None. Tokenizer of the model.
        path: str. Path in messages.

    Raises:
        UserError: A weight of the model has no original name.
    """
    values = {name: x.numpy() for name, x in _variables(model).items()}
    task = getattr(model, "task", None)

    # Only a loaded encoder has it, not a model with a head.
    loaded = getattr(model, "checkpoint", None)
    pooling_config = loaded.pooling_config if loaded else None
    config = config_of(model)
    return Model(path, config, values, tokenizer, task, pooling_config)


def load_pair(
    model: "str | tuple[Encoder, Tokenizer]",
) -> tuple[Encoder, Tokenizer]:
    """Loads an encoder and its tokenizer, unless a loaded pair is given.

    Args:
        model: str or (Encoder, Tokenizer). Path or name, see `load_encoder`,
            or the loaded pair.

    Raises:
        UserError: The vocabulary is missing, or larger than the encoder's
            embedding table; or see `processes.check_not_forked`.
    """
    processes.check_not_forked(processes.TENSORFLOW)
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
    """Returns the config of an encoder, or of a model with an encoder."""
    return checkpoints.encoder_of(model).get_layer("embeddings").config


def task_of(model: keras.Model) -> dict:
    """Returns the `task.json` of a loaded encoder's checkpoint, or {}.

    Args:
        model: keras.Model. An encoder, or a model with an encoder, which has
            no checkpoint.
    """
    checkpoint = getattr(model, "checkpoint", None)
    return (checkpoint and checkpoint.task_json) or {}


def length_of(
    network: keras.Model, given: int | None, usual: int, shortest: int = 3
) -> int:
    """Returns the maximum number of tokens of a sequence.

    Args:
        network: keras.Model. An encoder, or a model with an encoder.
        given: int or None. The user's argument.
        usual: int. Default, which the positions of the network may limit.
        shortest: int. Smallest valid length. Default: 3.

    Raises:
        UserError: The length is too small, or larger than the number of
            positions of the network.
    """
    longest = config_of(network).max_position_embeddings
    size = min(usual, longest) if given is None else given
    if size not in range(shortest, longest + 1):
        raise UserError(
            f"max_length={size}", expected=f"{shortest} to {longest}"
        )
    return size


def _variables(model: keras.Model) -> dict[str, keras.Variable]:
    """Returns a dict: original name -> variable of a model."""
    layers = checkpoints.encoder_of(model).layers
    if "embeddings" not in {layer.name for layer in layers}:
        raise UserError("no encoder in the model", expected='a layer "bert"')
    named = checkpoints.model_variables(model)

    # The named kernel includes the update of LoRA.
    saved = {id(variable) for variable in named.values()}
    for layer in model._flatten_layers():
        if getattr(layer, "lora_enabled", False) and id(layer.bias) in saved:
            saved.update(map(id, layer.weights))

    unnamed = [x.path for x in model.weights if id(x) not in saved]

    # The states of random generators are not weights.
    unnamed = [x for x in unnamed if not x.endswith("seed_generator_state")]
    if unnamed:
        raise UserError(
            f"the checkpoint has no name for {', '.join(unnamed[:3])}",
            expected="weights of BERT",
            fix="save the encoder, or the model with Keras",
        )
    return named
