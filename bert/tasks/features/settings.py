"""Settings of extract_features.py, and their checks."""

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from bert.common import outputs, storage
from bert.common.errors import UserError, raised_by
from bert.common.flags import OUTPUT, RARE, flag, group
from bert.common.progress import say
from bert.data.pooling import TextVectors
from bert.data.text.settings import Text
from bert.modeling.formats.model_folder import ModelFiles, ModelFolder
from bert.training.settings import Devices, Model


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of extract_features.py: the original's 13, and more."""

    input_file: str | None = flag(
        None,
        "One text per line; `first ||| second` for a pair.",
        required=True,
        path=True,
    )
    output_file: str | None = flag(
        None, "The file to write.", required=True, path=True
    )
    model: Model = group(
        Model,
        init_checkpoint={
            "required": True,
            "help": "Prefix, folder or name of the checkpoint.",
        },
        bert_config_file={
            "help": "Default: bert_config.json beside the checkpoint.",
        },
    )
    text: Text = group(
        Text,
        vocab_file={
            "required": False,
            "help": "Default: vocab.txt beside the checkpoint.",
        },
    )
    devices: Devices = group(Devices)
    layers: tuple[str, ...] = flag(
        ("-1", "-2", "-3", "-4"),
        "Indices of the layers; 0 is the first, -1 the last.",
        topic=OUTPUT,
    )
    max_seq_length: int | None = flag(
        None,
        "Maximum number of tokens of a sequence; longer texts are truncated. "
        "Default: with a pooling that of a folder of sentence-transformers, "
        "else 128.",
        at_least=3,
    )
    batch_size: int = flag(
        32, "Sequences of a batch, over all devices.", at_least=1
    )
    output_format: str = flag(
        "jsonl",
        "Format of the output. npz: values [N, K, D] pooled, else [tokens of "
        "all texts, K, D] with input_ids and row_splits [N + 1]; N texts, K "
        "--layers, no K if mixed, D numbers of a vector.",
        choices=("jsonl", "npz"),
        topic=OUTPUT,
    )
    pooling: str | None = flag(
        None,
        "Pooling of the tokens to one vector per text; none: one vector per "
        "token. Default: with npz as a folder of sentence-transformers says, "
        "else none.",
        choices=("none", "cls", "mean", "max"),
        topic=OUTPUT,
    )
    mix_layers: str = flag(
        "none",
        "Combination of --layers to one vector; none: one vector per layer.",
        choices=("none", "sum", "mean", "concat"),
        topic=OUTPUT,
    )
    normalize: bool | None = flag(
        None,
        "Scale each vector to length 1. Default: with a pooling as a folder "
        "of sentence-transformers says, else not.",
        topic=OUTPUT,
    )
    prompt: str | None = flag(
        None,
        "Name of a prompt of a folder of sentence-transformers, which is put "
        "before each text. Default: with a pooling the folder's, else none.",
        topic=OUTPUT,
    )
    use_one_hot_embeddings: bool = flag(
        False, "Accepted; changes nothing.", topic=RARE
    )

    def mistakes(self) -> Iterator[UserError]:
        """Yields flags that are invalid, or not for extraction."""
        yield from raised_by(self.devices.check, False)
        if not self.layers:
            yield UserError("--layers is empty", expected="such as -1,-2")


@dataclasses.dataclass(frozen=True)
class Extraction:
    """Checked settings, with the model.

    Attributes:
        settings: settings of the script.
        model: the checkpoint, with its config and tokenizer.
        layers: indices of the layers to write.
        how: pooling, size and normalization.
        prompt: text that is put before each text.
    """

    settings: Settings
    model: ModelFolder
    layers: list[int]
    how: TextVectors
    prompt: str


def check(settings: Settings) -> Extraction:
    """Checks the settings and the files that they name.

    Raises:
        UserError: if a file is missing or contradicts the others, or a flag
            is invalid.
    """
    model = ModelFolder.open(
        settings.model.init_checkpoint,
        ModelFiles(
            settings.model.bert_config_file,
            settings.text.vocab_file,
            settings.text.casing,
        ),
    )

    # Wrong paths are told before any weights are read.
    outputs.check_file(settings.output_file, "output_file")
    storage.list_files(settings.input_file, "input_file")
    model.check()
    settings, how = _with_defaults(settings, model)
    prompt = how.prompt(settings.prompt)
    config = model.config
    config.check_length(
        settings.max_seq_length, "max_seq_length", model.config_file
    )
    count = config.num_hidden_layers
    layers = [read_layer(x, count) for x in settings.layers]
    if model.format == "openvino" and any(-x % count != 1 for x in layers):
        raise UserError(
            f"--layers={','.join(settings.layers)}",
            path=model.path,
            expected="-1: a network of OpenVINO has the last layer alone",
        )
    return Extraction(settings, model, layers, how, prompt)


def _with_defaults(
    settings: Settings, model: ModelFolder
) -> tuple[Settings, TextVectors]:
    """Returns the settings with a length, and how vectors are made.

    The folder's settings describe vectors of texts. Vectors of tokens, which
    the original's flags ask for, are the same in any folder.
    """
    of_tokens = settings.pooling == "none" or (
        settings.pooling is None and settings.output_format == "jsonl"
    )
    how, length = model.vectors or TextVectors("none"), 128
    if of_tokens:
        how = TextVectors("none", prompts=how.prompts)
    elif model.vectors:
        length = model.max_length
    if settings.pooling is None:
        how.check()
    if settings.mix_layers == "concat":  # not of one layer
        how = dataclasses.replace(how, truncate_dim=None)

    defaults: dict[str, Any] = {
        "pooling": how.pooling,
        "normalize": how.normalize,
        "max_seq_length": length,
    }
    untold = {x: defaults[x] for x in defaults if getattr(settings, x) is None}
    settings = dataclasses.replace(settings, **untold)
    if model.vectors and not of_tokens:
        listed = [f"--{name}={value}" for name, value in untold.items()]
        if how.truncate_dim:
            listed.append(f"the first {how.truncate_dim} numbers")
        if listed:
            say(f"as {model.path} says: {', '.join(listed)}")
    how = dataclasses.replace(
        how, pooling=settings.pooling, normalize=settings.normalize
    )
    return settings, how


def read_layer(text: str, num_layers: int) -> int:
    """Parses an index of --layers: 0 is the first, -1 the last."""
    layer = int(text) if re.fullmatch(r"-?\d{1,9}", text) else num_layers
    if not -num_layers <= layer < num_layers:
        raise UserError(
            f"--layers: {text!r}",
            expected=f"numbers from {-num_layers} to {num_layers - 1}",
        )
    return layer
