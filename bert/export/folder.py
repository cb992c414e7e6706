"""The folder of an export: a SavedModel, its files, and an OpenVINO network.

saved_model.pb, variables/, assets/   for TF Serving
bert_config.json, vocab.txt, ...      for `Predictor`
openvino/                             the OpenVINO network, with these files
assets.extra/                         metrics and an example, for model cards
"""

import importlib.util
import os
import tempfile
from collections.abc import Callable, Iterable

from bert.common import atomic, storage, tensorflow_log
from bert.common.formats import json_files
from bert.common.progress import log
from bert.data import sequence_packing
from bert.data.sequences import TokenSequence
from bert.export import saved_model
from bert.modeling.engines import openvino_engine
from bert.modeling.formats import conversion, openvino
from bert.modeling.formats.model import Model

METRICS = "assets.extra/metrics.json"  # name -> value
EXAMPLE = "assets.extra/example.json"  # input -> text
_GRAPH = "saved_model.pb"
_SAMPLE = 300  # number of texts that calibrate int8


def write(folder: str, save: Callable[[str], None]) -> str:
    """Writes an export to a temporary folder and renames it.

    If the folder exists, as a mount or a link does, or is remote, the files are
    moved one by one. saved_model.pb is moved last; without it the folder is not
    a valid export.

    Args:
        folder: str. Path of a new or empty folder.
        save: callable. Writes the files to the folder of its argument. It may
            also check them and raise errors.

    Returns:
        str. The path of the folder.

    Raises:
        UserError: The disk is full, or the folder cannot be written.
    """
    folder = folder.rstrip("/")
    log(f"exporting to {folder} ...")
    with atomic.whole_folder(folder, _GRAPH) as partial:
        save(partial)
    return folder


def write_model(
    folder: str,
    model: Model,
    precision: str = "float32",
    openvino_precision: str | None = None,
    rows: Iterable[TokenSequence] = (),
) -> None:
    """Writes all files of a fine-tuned model into a folder.

    Args:
        folder: str. Path of an empty folder.
        model: Model. Weights, tokenizer and task.
        precision: str. Precision in which the SavedModel stores the weights.
            Default: "float32".
        openvino_precision: str or None. Precision of the OpenVINO network:
            "float32", "bfloat16", "int8" or "none". Default: "float32" if
            OpenVINO is installed, else "none".
        rows: iterable of TokenSequence. Training texts, which calibrate int8.
    """
    root = saved_model.FineTunedModel(model, precision)
    saved_model.save(root, folder, *root.names[1:])
    conversion.write_files(model, folder)

    if openvino_precision is None and importlib.util.find_spec("openvino"):
        openvino_precision = "float32"
    if openvino_precision in (None, openvino_engine.NONE):
        return
    sample = [*rows]
    sample = sample[:: -(-len(sample) // _SAMPLE) or 1]
    batches = [sequence_packing.pack([row]).inputs for row in sample]

    # OpenVINO writes only local files, but the export may be remote.
    with tempfile.TemporaryDirectory() as scratch, tensorflow_log.held_back():
        conversion.write_files(model, scratch)
        openvino.write(
            scratch, model.config, model.values, openvino_precision, batches
        )
        for path in storage.files_below(scratch):
            name = os.path.relpath(path, scratch)
            target = os.path.join(folder, openvino_engine.FOLDER, name)
            storage.make_folder(os.path.dirname(target))
            storage.copy(path, target)


def write_extra(folder: str, name: str, values: dict) -> None:
    """Writes values for the model card of an export.

    Args:
        folder: str. Path of the export.
        name: str. METRICS or EXAMPLE.
        values: dict. The values.
    """
    path = os.path.join(folder, name)
    storage.make_folder(os.path.dirname(path))
    text = json_files.to_json(values, indent=1, ensure_ascii=False)
    atomic.write_whole(path, text + "\n")


def read_extra(folder: str, name: str, kind: type) -> dict:
    """Reads the values of `write_extra`; {} if the file does not exist.

    Args:
        folder: str. Path of the export.
        name: str. METRICS or EXAMPLE.
        kind: type. Type of the values.

    Raises:
        UserError: The file is damaged.
    """
    path = os.path.join(folder, name)
    return json_files.read(path, kind) if storage.exists(path) else {}
