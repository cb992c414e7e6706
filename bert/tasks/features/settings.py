"""Settings of extract_features.py, with checks."""

import dataclasses
import os
import re

from bert.common import errors, outputs, storage
from bert.common.errors import UserError
from bert.common.flags import OUTPUT, RARE, REQUIRED, changed, flag
from bert.common.formats.json_files import Json
from bert.common.jobs.runners import PartSettings
from bert.common.progress import log
from bert.data.pooling import PoolingConfig
from bert.data.row_settings import RowSettings
from bert.modeling.formats.model_folder import ModelFiles, ModelFolder
from bert.training.settings import Devices

FORMATS = ("jsonl", "npz", "npy", "parquet")


def _check_layers(layers: tuple[str, ...]) -> None:
    """Raises a UserError if there is no layer."""
    if not layers:
        raise UserError("--layers is empty", expected="such as -1,-2")


@dataclasses.dataclass(frozen=True)
class Settings(PartSettings, RowSettings, Devices, ModelFiles):
    """Settings of extract_features.py."""

    input_file: str = flag(
        None,
        "Files and globs, separated by commas: one text per line, or "
        "`first ||| second` for a pair; JSON lines (.jsonl) or tables (.csv, "
        ".tsv), also with .gz, or .parquet.",
        required=True,
        path=True,
    )
    output_file: str = changed(
        PartSettings,
        "output_file",
        help="Output file: .jsonl, .npz, .npy or .parquet. A killed run "
        "continues.",
        required=True,
    )
    init_checkpoint: str = flag(
        None,
        "Prefix, folder or name of the checkpoint.",
        required=True,
        path=True,
    )
    bert_config_file: str | None = changed(
        ModelFiles, "bert_config_file", topic=REQUIRED
    )
    layers: tuple[str, ...] = flag(
        ("-1", "-2", "-3", "-4"),
        "Indices of the layers to write; 0 is the first, -1 the last.",
        parse=_check_layers,
        topic=OUTPUT,
    )
    max_seq_length: int | None = flag(
        None,
        "Maximum number of tokens of a sequence; longer texts are truncated. "
        "Default: 128, or with pooling the length recorded in a "
        "sentence-transformers folder.",
        at_least=3,
    )
    batch_size: int = flag(32, "Batch size, over all devices.", at_least=1)
    output_format: str | None = flag(
        None,
        "Output format. npz has values [N, K, D] with pooling, for N texts, K "
        "layers (no K with --layer_pooling) and D dimensions. Without pooling "
        "it has values [tokens, K, D], input_ids, and row_splits [N + 1]. npy "
        "has the values, without K for one layer; parquet has id and "
        "embedding. Default: the ending of --output_file.",
        choices=FORMATS,
        topic=OUTPUT,
    )
    pooling: str | None = flag(
        None,
        "Pooling of the tokens to one vector per text; none: one vector per "
        "token. Default: none, or with npz, npy and parquet the pooling "
        "recorded in a sentence-transformers folder.",
        choices=("none", "cls", "mean", "max"),
        topic=OUTPUT,
    )
    layer_pooling: str = flag(
        "none",
        "How to combine --layers to one vector; none: one vector per layer.",
        choices=("none", "sum", "mean", "concat"),
        topic=OUTPUT,
    )
    normalize: bool | None = flag(
        None,
        "L2-normalize each vector. Default: false, or with pooling as recorded "
        "in a sentence-transformers folder.",
        topic=OUTPUT,
    )
    prompt: str | None = flag(
        None,
        "Name of a prompt in a sentence-transformers folder, to put before "
        "each text. Default: none; with pooling the folder's default prompt.",
        topic=OUTPUT,
    )
    use_one_hot_embeddings: bool = flag(
        False, "Accepted for compatibility; has no effect.", topic=RARE
    )


@dataclasses.dataclass(frozen=True)
class Extraction:
    """Checked settings, with the model.

    Attributes:
        settings: the settings of the script.
        model: the checkpoint, with config and tokenizer.
        layers: indices of the layers to write.
        how: pooling, size and normalization.
        prompt: str to put before each text.
        output_format: one of `FORMATS`.
        max_length: int. Longest sequence in tokens.
    """

    settings: Settings
    model: ModelFolder
    layers: tuple[int, ...]
    how: PoolingConfig
    prompt: str
    output_format: str
    max_length: int

    @property
    def separate_layers(self) -> tuple[int, ...] | None:
        """The layers that are written one by one; None if they are mixed."""
        is_separate = self.settings.layer_pooling == "none"
        return self.layers if is_separate else None

    @property
    def needs_last_layer_only(self) -> bool:
        """Whether no other layer is written."""
        count = self.model.config.num_hidden_layers
        return all(x % count == count - 1 for x in self.layers)


def check(settings: Settings) -> Extraction:
    """Checks the settings and their files.

    Args:
        settings: the settings of the script.

    Raises:
        UserError: if a file is missing or contradicts the others, or a flag
            is invalid.
    """
    output_format = settings.output_format or _format_of(settings.output_file)
    settings = dataclasses.replace(settings, output_format=output_format)
    if output_format == "parquet":
        errors.check_packages("parquet", "pyarrow", needed_by="--output_file")
    model = ModelFolder.open(settings.init_checkpoint, settings)

    # Wrong paths are reported before the weights are read.
    outputs.check_file(settings.output_file, "output_file")
    storage.list_files(settings.input_file, "input_file")
    model.check()

    settings, how, max_length = _with_defaults(settings, model)
    prompt = how.prompt(settings.prompt)
    config = model.config
    config.check_length(max_length, "max_seq_length", model.config_file)
    count = config.num_hidden_layers
    layers = tuple(read_layer(x, count) for x in settings.layers)
    extraction = Extraction(
        settings, model, layers, how, prompt, output_format, max_length
    )
    _check_one_vector(extraction)
    if model.format == "openvino" and not extraction.needs_last_layer_only:
        raise UserError(
            f"--layers={','.join(settings.layers)}",
            path=model.path,
            expected="-1, as an OpenVINO network has only the last layer",
        )
    return extraction


def _format_of(path: str) -> str:
    """Returns the format of --output_file by its ending."""
    ending = os.path.splitext(path)[1].removeprefix(".")
    kind = {x: x for x in FORMATS} | {"json": "jsonl"}
    if ending not in kind:
        raise UserError(
            f"--output_file={path}",
            expected="a name in .jsonl, .npz, .npy or .parquet",
            fix="rename it, or pass --output_format",
        )
    return kind[ending]


def _check_one_vector(extraction: Extraction) -> None:
    """Checks that a row of an array or a table is one text.

    Raises:
        UserError: The format needs pooling, or has one vector per text.
    """
    kind, how = extraction.output_format, extraction.how
    if kind in ("npy", "parquet") and how.pooling == "none":
        raise UserError(
            f"--output_format={kind} without --pooling",
            expected="one vector per text",
            fix="pass --pooling, such as mean, or --output_format=npz",
        )
    if kind == "parquet" and len(extraction.separate_layers or ()) > 1:
        raise UserError(
            f"--output_format=parquet with {len(extraction.layers)} layers",
            expected="one vector per text",
            fix="pass --layers=-1, or --layer_pooling",
        )


def _with_defaults(
    settings: Settings, model: ModelFolder
) -> tuple[Settings, PoolingConfig, int]:
    """Returns the settings with defaults, the pooling and the maximum length.

    The configuration of a sentence-transformers folder applies to pooled
    vectors only, not to token vectors.
    """
    of_tokens = settings.pooling == "none" or (
        settings.pooling is None and settings.output_format == "jsonl"
    )
    how, length = model.pooling_config or PoolingConfig("none"), 128
    if of_tokens:
        how = PoolingConfig("none", prompts=how.prompts)
    elif model.pooling_config:
        length = model.max_length
    if settings.layer_pooling == "concat":  # larger than one layer
        how = dataclasses.replace(how, truncate_dim=None)

    how = how.resolve(settings.pooling, settings.normalize)
    defaults: dict[str, Json] = {
        "pooling": how.pooling,
        "normalize": how.normalize,
        "max_seq_length": length,
    }
    untold = {x: defaults[x] for x in defaults if getattr(settings, x) is None}
    settings = dataclasses.replace(settings, **untold)
    if model.pooling_config and not of_tokens:
        listed = [f"--{name}={value}" for name, value in untold.items()]
        if how.truncate_dim:
            listed.append(f"the first {how.truncate_dim} dimensions")
        if listed:
            log(f"as recorded in {model.path}: {', '.join(listed)}")
    return settings, how, settings.max_seq_length or length


def read_layer(text: str, num_layers: int) -> int:
    """Parses an index of --layers: 0 is the first, -1 the last."""
    layer = int(text) if re.fullmatch(r"-?\d{1,9}", text) else num_layers
    if not -num_layers <= layer < num_layers:
        raise UserError(
            f"--layers: {text!r}",
            expected=f"numbers from {-num_layers} to {num_layers - 1}",
        )
    return layer
