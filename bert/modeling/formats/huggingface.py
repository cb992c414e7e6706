"""Hugging Face transformers: weights in safetensors, sizes in JSON.

    bert/encoder/layer_0/attention/self/query/kernel   [in, out]
    bert.encoder.layer.0.attention.self.query.weight   [out, in]

Pickles are never read.
"""

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from typing import Annotated

import msgspec
import numpy as np
import safetensors
import safetensors.numpy

from bert.common import storage
from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.common.formats.json_files import Name
from bert.data.text import tokenizer_files
from bert.modeling.config import BertConfig
from bert.modeling.formats import checkpoint_files, huggingface_config
from bert.modeling.formats.huggingface_config import (
    CLASSIFIERS,
    CONFIG,
    PROBLEMS,
    classifier_scopes,
)
from bert.modeling.task_heads import HEADS

WEIGHTS = "model.safetensors"
TAIL = "tail"  # `truncate` of a task.json that keeps the last tokens
_INDEX = "model.safetensors.index.json"
_LARGEST_HEADER = 100_000_000  # bytes, as in safetensors

_OUTPUTS = {"output_weights": "weight", "output_bias": "bias"}
_THEIR_OUTPUTS = {theirs: ours for ours, theirs in _OUTPUTS.items()}
_PART = re.compile(
    r"bert\.(embeddings|encoder\.layer\.\d+|pooler)\..*\.(weight|bias)"
    r"|bert\.embeddings\.\w+_embeddings\.weight"
    r"|cls\.predictions\.transform\.(dense|LayerNorm)\.(weight|bias)"
)
_TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


class _Tensor(msgspec.Struct):
    shape: list[int]


class _Index(msgspec.Struct):
    weight_map: Annotated[dict[str, Name], msgspec.Meta(min_length=1)]


@contextlib.contextmanager
def _local_copy(path: str) -> Iterator[str]:
    """Context with a local path of a file; a remote file is copied."""
    if not storage.is_remote(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="bert-") as temporary:
        target = os.path.join(temporary, os.path.basename(path))
        storage.copy(path, target)
        yield target


def read(folder: str) -> tuple[dict[str, np.ndarray], list[str]]:
    """Reads the weights of a folder, from one file or several.

    Accepts names with and without `bert.`, and `gamma` and `beta`. Skips
    buffers, and the bias of a multiple-choice head, which does not change the
    softmax over choices. `config.json` decides which head `classifier` is.

    Args:
        folder: str. Contains `model.safetensors`, or its index and shards.

    Returns:
        Original name -> float32 array, and the names of unknown tensors.

    Raises:
        UserError: the safetensors are missing, a file is damaged, or the
            masked-LM output differs from the word embeddings.
    """
    theirs: dict[str, np.ndarray] = {}
    for path in weight_files(folder):
        try:
            with _local_copy(path) as local:
                _check_types(local, path)
                theirs |= safetensors.numpy.load_file(local)
        except UserError:
            raise
        except (
            OSError,
            safetensors.SafetensorError,
            KeyError,
            TypeError,
            ValueError,
        ) as error:
            raise UserError(
                f"cannot be read: {error}",
                path=path,
                fix=None
                if isinstance(error, PermissionError)
                else "the file is damaged: copy it again",
            ) from None

    theirs = {_canonical(name): value for name, value in theirs.items()}
    _check_tied(theirs, folder)
    scope = huggingface_config.classifier_scope(
        huggingface_config.read_values(folder)
    )

    values, skipped = {}, []
    for name, value in theirs.items():
        if name in _TIED or name.endswith((".position_ids", ".token_type_ids")):
            continue
        if scope == "cls/swag/" and name == "classifier.bias":
            continue

        original = _original_name(name, scope)
        if original is None:
            skipped.append(name)
            continue

        if value.dtype.kind not in "fV" and value.dtype.name != "bfloat16":
            raise _quantized(folder, name, value.dtype)

        # Dense layers of PyTorch are [outputs, inputs].
        value = value.T if original.endswith("/kernel") else value
        values[original] = np.ascontiguousarray(value, np.float32)

    return values, sorted(skipped)


def shapes_of(folder: str) -> dict[str, list[int]]:
    """Reads the shapes of the variables, without their values.

    Args:
        folder: str. See `read`.

    Returns:
        Dict: original name -> shape. Empty if `read` would reject the files.
    """
    shapes = {}
    try:
        for path in weight_files(folder):
            for name, shape in _header(path).items():
                name = _canonical(name)
                shapes[_TIED.get(name, name)] = shape
    except (UserError, OSError, msgspec.MsgspecError):
        return {}

    named = {_original_name(name, None): x for name, x in shapes.items()}
    return {
        name: shape[::-1] if name.endswith("/kernel") else shape
        for name, shape in named.items()
        if name
    }


def _header(path: str) -> dict[str, list[int]]:
    """Reads the shapes of a safetensors file, which may be remote.

    The file starts with the size of a JSON object, 8 bytes.

    Raises:
        msgspec.MsgspecError: the object is damaged.
    """
    with storage.open_file(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        content = file.read(min(size, _LARGEST_HEADER))
    entries = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    entries.pop("__metadata__", None)
    return {
        name: msgspec.json.decode(entry, type=_Tensor).shape
        for name, entry in entries.items()
    }


def read_task(folder: str) -> dict | None:
    """Reads the `task.json` that `conversion.write` adds, or `config.json`.

    After more training with transformers, `config.json` may name other labels
    than `task.json`, which is then ignored.

    Args:
        folder: str. Folder of the model.

    Returns:
        Dict with `kind`, `labels` and, if recorded, `max_seq_length` and other
        entries of `task.json`; or None. The kind of a token classifier is
        None without `task.json`, since it follows from the label names.
    """
    values = huggingface_config.read_values(folder)
    task = huggingface_config.named_labels(values)
    named = task["labels"] if task else []
    recorded = checkpoint_files.recorded_task(folder)
    if recorded and recorded["labels"] in (
        named,
        huggingface_config.label_names(values),
    ):
        task = recorded
    if not task:
        return None

    # Of all tasks, only classifiers truncate at the start.
    if task["kind"] in PROBLEMS and tokenizer_files.truncates_start(folder):
        task["truncate"] = TAIL
    if length := tokenizer_files.read_length(folder):
        task["max_seq_length"] = min(length, task.get("max_seq_length", length))
    return task


def read_tokenizer(folder: str) -> tokenizer_files.Recorded:
    """Reads the tokenizer of a model, see `tokenizer_files.read`.

    Args:
        folder: str. Folder of the model.

    Raises:
        UserError: a setting is not supported, such as a truncation at the
            start of texts, except for classifiers with named labels.
    """
    recorded = tokenizer_files.read(folder)
    if tokenizer_files.truncates_start(folder):
        task = read_task(folder)
        if not task or task.get("truncate") != TAIL:
            raise UserError(
                "truncation_side is 'left'",
                path=os.path.join(folder, tokenizer_files.CONFIG),
                expected="'right', or a classifier with names of its labels",
            )
    return recorded


def write(
    folder: str,
    config: BertConfig,
    values: dict[str, np.ndarray],
    task: dict | None = None,
) -> None:
    """Writes `config.json` and `model.safetensors`.

    Args:
        folder: str. Folder without these files.
        config: BertConfig. Sizes of the network.
        values: dict. Original name -> array.
        task: dict or None. Labels of a classifier, see `read_task`.
            Default: None.

    Raises:
        UserError: two heads would have the same name.
    """
    scopes = classifier_scopes(values)
    if len(scopes) > 1:
        names = ", ".join(CLASSIFIERS[scope] for scope in scopes)
        raise UserError(
            f"{len(scopes)} task heads: {names}",
            expected="one: a folder of transformers can only have one",
        )

    with storage.open_text(os.path.join(folder, CONFIG), "w") as file:
        file.write(huggingface_config.to_json(config, values, task))

    theirs = {}
    for name, value in values.items():
        value = value.T if name.endswith("/kernel") else value
        theirs[_their_name(name)] = np.ascontiguousarray(value)

    # transformers requires a bias; a constant does not change the softmax.
    if scopes == ["cls/swag/"]:
        theirs["classifier.bias"] = np.zeros(1, np.float32)

    # The class of a bare encoder has names without `bert.`.
    if huggingface_config.architectures(values) == ["BertModel"]:
        theirs = {k.removeprefix("bert."): v for k, v in theirs.items()}

    with storage.open_file(os.path.join(folder, WEIGHTS), "wb") as file:
        file.write(safetensors.numpy.save(theirs, {"format": "pt"}))


def weight_files(folder: str) -> list[str]:
    """Returns the files of the weights, one or several.

    Args:
        folder: str. See `read`.

    Raises:
        UserError: there is no such file, or one of several is missing.
    """
    single, index = (os.path.join(folder, x) for x in (WEIGHTS, _INDEX))
    if storage.is_file(single):
        return [single]

    if storage.is_file(index):
        parts = json_files.read(index, _Index).weight_map.values()
        paths = [os.path.join(folder, part) for part in sorted(set(parts))]
        for path in paths:
            if not storage.is_file(path):
                raise UserError(f"names {path}, which is missing", path=index)
        return paths

    listed = (
        sorted(storage.list_folder(folder)) if storage.is_folder(folder) else []
    )
    pickles = [x for x in listed if x.endswith((".bin", ".pt", ".pth"))]
    if pickles:
        # Choose a class that keeps the head and its labels.
        named = huggingface_config.read_values(folder).get("architectures")
        architecture = (named or ["AutoModelForPreTraining"])[0]
        raise UserError(
            f"holds {pickles[0]}, a pickle, which could run any code",
            path=folder,
            expected=WEIGHTS,
            fix="if you trust it, convert it with transformers: "
            f"{architecture}.from_pretrained(folder).save_pretrained(folder)",
        )

    raise UserError(f"no {WEIGHTS}", path=folder, expected="a model's folder")


def _check_types(local: str, path: str) -> None:
    """Rejects floats of less than 16 bits, which numpy does not support."""
    with safetensors.safe_open(local, "np") as file:
        for name in file.keys():  # noqa: SIM118
            kind = file.get_slice(name).get_dtype()
            if re.fullmatch("F[468](_.*)?", kind):
                raise _quantized(path, name, kind)


def _quantized(path: str, name: str, kind: object) -> UserError:
    return UserError(
        f"{name} is {kind}",
        path=path,
        expected="weights of float16, bfloat16 or float32",
        fix="convert the weights before quantization",
    )


def _canonical(name: str) -> str:
    """Current name of a tensor in transformers, from any earlier name."""
    if name.startswith(("embeddings.", "encoder.", "pooler.")):
        name = f"bert.{name}"
    name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
    return re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)


def _original_name(name: str, scope: str | None) -> str | None:
    layer, _, part = name.rpartition(".")
    if output := _THEIR_OUTPUTS.get(part):
        if layer == "classifier":
            return (scope or "") + output
        for head in HEADS.values():
            if layer == head.their_layer:
                return head.scope + output

    if not _PART.fullmatch(name):
        return None

    name = re.sub(r"\.layer\.(\d+)\.", r"/layer_\1/", name).replace(".", "/")
    if name.endswith("_embeddings/weight"):
        return name.removesuffix("/weight")
    if "/LayerNorm/" in name:
        name = name.replace("/LayerNorm/weight", "/LayerNorm/gamma")
        return name.replace("/LayerNorm/bias", "/LayerNorm/beta")
    return name.replace("/weight", "/kernel")


def _their_name(name: str) -> str:
    for head in HEADS.values():
        theirs = _OUTPUTS.get(name.removeprefix(head.scope))
        if theirs and name.startswith(head.scope):
            return f"{head.their_layer}.{theirs}"

    name = re.sub(r"/layer_(\d+)/", r".layer.\1.", name).replace("/", ".")
    if name.endswith("_embeddings"):
        return f"{name}.weight"
    name = re.sub(r"\.(kernel|gamma)$", ".weight", name)
    return re.sub(r"\.beta$", ".bias", name)


def _check_tied(theirs: dict[str, np.ndarray], folder: str) -> None:
    # Both names mean the same tensor; a file may have either one, or both.
    for copy, source in _TIED.items():
        if copy not in theirs:
            continue
        if source not in theirs:
            theirs[source] = theirs[copy]
        elif not np.array_equal(theirs[copy], theirs[source]):
            raise UserError(
                f"{copy} differs from {source}",
                path=folder,
                expected="the word embeddings as masked-LM output",
            )
