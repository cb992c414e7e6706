"""Readers of model formats; `READERS` has one for each format.

A new format is a module of its own and an entry here. Modules that need
TensorFlow are imported late, so that most mistakes are reported before.
"""

import glob
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bert.common import storage
from bert.common.errors import UserError
from bert.data.text.tokenizer_files import Recorded
from bert.modeling.config import BertConfig
from bert.modeling.engines import openvino_engine
from bert.modeling.formats import (
    checkpoint_files,
    huggingface,
    huggingface_config,
)

_OBJECTS = b"_CHECKPOINTABLE_OBJECT_GRAPH"  # first name in object checkpoints
_START = 1 << 10  # bytes of an index that are searched for it
_PROTO = "saved_model.pb"
Weights = tuple[dict[str, Any], list[str]]


class FormatReader(NamedTuple):
    """Functions that read a format; a path is a folder or checkpoint prefix.

    Attributes:
        sizes: str. Name of the file with the sizes.
        config: function. Path of that file -> sizes of the network.
        tokenizer: function. Path -> casing, and tokens if not in vocab.txt.
        labels: function. Path -> kind and names of the labels, as in
            `task.json`, or None.
        resolve: function. Path -> prefix of the checkpoint, or the folder.
        files: function. Result of `resolve` -> files of the weights.
        shapes: function. Path -> original name -> shape. Empty if shapes are
            unknown, or if the config was inferred from them.
        weights: function. Path, whether to read optimizer slots and the step,
            too -> original name -> array, and names of unknown variables.
    """

    sizes: str
    config: Callable[[str], BertConfig]
    tokenizer: Callable[[str], Recorded]
    labels: Callable[[str], dict | None]
    resolve: Callable[[str], str]
    files: Callable[[str], list[str]]
    shapes: Callable[[str], Mapping[str, Sequence[int]]]
    weights: Callable[[str, bool], Weights]


def format_of(path: str) -> str:
    """Format of a model's folder or checkpoint, a key of `READERS`."""
    folder = checkpoint_files.folder_of(path)
    if openvino_engine.is_network(folder):
        return "openvino"
    if storage.is_file(os.path.join(folder, _PROTO)):
        _check_newest(path, os.path.join(folder, _PROTO))
        has_sizes = storage.is_file(os.path.join(folder, _GOOGLE.sizes))
        return "export" if has_sizes else "tf_hub"

    is_theirs = storage.is_folder(path) and (
        storage.is_file(os.path.join(path, huggingface_config.CONFIG))
        or storage.find(path, "*.safetensors")
    )
    if is_theirs and not storage.find(path, "*.index"):
        return "huggingface"

    # An index is sorted, and the name of the object graph comes first.
    index = f"{checkpoint_files.prefix_of(path)}.index"
    if storage.is_file(index):
        with storage.open_file(index, "rb") as file:
            if _OBJECTS in file.read(_START):
                return "model_garden"
    return "google"


def _check_newest(path: str, graph: str) -> None:
    """Rejects an export that is older than a run in the same folder."""
    newest = f"{checkpoint_files.prefix_of(path)}.index"
    if not storage.is_file(newest):
        return
    times = [storage.version(file)[1] for file in (newest, graph)]
    if times[0] > times[1]:
        raise UserError(
            "holds an export and a later checkpoint of a run",
            path=path,
            expected="one model",
            fix="move the export's files to another folder, or remove them: "
            "saved_model.pb, variables, assets and openvino",
        )


def checkpoints():
    """Returns the module `bert.modeling.checkpoints`; imports TensorFlow."""
    from bert.modeling import checkpoints

    return checkpoints


def _google_files(prefix: str) -> list[str]:
    folder, name = os.path.split(prefix)
    name = glob.escape(name)
    return [
        *storage.find(folder or ".", f"{name}.index"),
        *storage.find(folder or ".", f"{name}.data-*"),
    ]


def _saved_model_files(folder: str) -> list[str]:
    variables = storage.files_below(os.path.join(folder, "variables"))
    return [os.path.join(folder, _PROTO), *variables]


def _openvino_files(folder: str) -> list[str]:
    names = openvino_engine.FILE, openvino_engine.WEIGHTS
    return [os.path.join(folder, name) for name in names]


def _google_shapes(path: str) -> dict[str, list[int]]:
    return checkpoints().shapes_of(checkpoint_files.resolve(path))


def _google_weights(path: str, with_optimizer: bool) -> Weights:
    prefix = checkpoint_files.resolve(path)
    return checkpoints().read(prefix, with_optimizer), []


def _model_garden_weights(path: str, with_optimizer: bool) -> Weights:
    return _model_garden().read(checkpoint_files.resolve(path))


def _model_garden_shapes(path: str) -> dict[str, list[int]]:
    return _model_garden().shapes_of(checkpoint_files.resolve(path))


def _model_garden():
    from bert.modeling.formats import model_garden  # imports TensorFlow

    return model_garden


def _saved_models():
    from bert.modeling.formats import saved_models  # imports TensorFlow

    return saved_models


def _openvino_weights(path: str, with_optimizer: bool) -> Weights:
    raise UserError(
        "a network of OpenVINO",
        path=path,
        expected="weights by name",
        fix="pass the checkpoint that the network was exported from",
    )


_GOOGLE = FormatReader(
    sizes="bert_config.json",
    config=BertConfig.from_json_file,
    tokenizer=lambda path: Recorded(
        None, checkpoint_files.recorded_casing(path)
    ),
    labels=checkpoint_files.task_of,
    resolve=checkpoint_files.resolve,
    files=_google_files,
    shapes=_google_shapes,
    weights=_google_weights,
)
READERS = {
    "google": _GOOGLE,
    "huggingface": FormatReader(
        sizes=huggingface_config.CONFIG,
        config=huggingface_config.read,
        tokenizer=huggingface.read_tokenizer,
        labels=huggingface.read_task,
        resolve=str,
        files=huggingface.weight_files,
        shapes=huggingface.shapes_of,
        weights=lambda path, slots: huggingface.read(path),
    ),
    "model_garden": _GOOGLE._replace(
        shapes=_model_garden_shapes, weights=_model_garden_weights
    ),
    "openvino": _GOOGLE._replace(
        resolve=str,
        files=_openvino_files,
        shapes=lambda path: {},
        weights=_openvino_weights,
    ),
    "export": _GOOGLE._replace(
        resolve=str,
        files=_saved_model_files,
        shapes=lambda path: {},
        weights=lambda path, slots: _saved_models().read_export(path),
    ),
    "tf_hub": FormatReader(
        sizes=_PROTO,
        config=lambda file: _saved_models().read_config(os.path.dirname(file)),
        tokenizer=lambda path: Recorded(
            None, _saved_models().read_casing(path)
        ),
        labels=lambda path: None,
        resolve=str,
        files=_saved_model_files,
        shapes=lambda path: {},
        weights=lambda path, slots: _saved_models().read(path),
    ),
}
