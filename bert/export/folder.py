"""The folder of an export: a SavedModel, its files, a network of OpenVINO.

saved_model.pb, variables/, assets/   for TF Serving
bert_config.json, vocab.txt, ...      for `Predictor`
openvino/                             the network, with the same files
assets.extra/                         metrics and an example, for pages
"""

import importlib.util
import os
import tempfile
from collections.abc import Callable, Iterable
from typing import Any

from bert.common import atomic, storage, tensorflow_log
from bert.common.formats import json_files
from bert.common.progress import say
from bert.data import shared_rows
from bert.data.sequences import Row
from bert.export import saved_model
from bert.modeling import openvino_network
from bert.modeling.formats import conversion, openvino
from bert.modeling.formats.conversion import Bert

METRICS = "assets.extra/metrics.json"  # name -> value
EXAMPLE = "assets.extra/example.json"  # input -> text
_GRAPH = "saved_model.pb"
_SAMPLE = 300  # texts that calibrate int8


def write(folder: str, save: Callable[[str], None]) -> str:
    """Writes an export to a temporary folder and renames it.

    On shared storage the graph, which makes it an export, is written last; so
    it is in a folder that exists, which may be a mount or a link.

    Args:
        folder: path of a new or empty folder.
        save: writes the files to the folder of its argument; it may also
            check them and raise errors.

    Returns:
        the path of the folder.

    Raises:
        UserError: the disk is full, or the folder cannot be written.
    """
    folder = folder.rstrip("/")
    say(f"exporting to {folder} ...")
    with atomic.whole_folder(folder, _GRAPH) as partial:
        save(partial)
    return folder


def write_model(
    folder: str,
    bert: Bert,
    precision: str = "float32",
    openvino_precision: str | None = None,
    rows: Iterable[Row] = (),
) -> None:
    """Writes all files of a fine-tuned model into a folder.

    Args:
        folder: an empty folder.
        bert: weights, tokenizer and task.
        precision: str. Precision in which the SavedModel stores the weights.
        openvino_precision: str or None. Precision of the network of OpenVINO:
            float32, bfloat16 or int8, or none; None: float32 if OpenVINO is
            installed.
        rows: sequences of training texts, for int8.
    """
    root = saved_model.FineTunedModel(bert, precision)
    saved_model.save(root, folder, *root.names[1:])
    conversion.write_files(bert, folder)

    if openvino_precision is None and importlib.util.find_spec("openvino"):
        openvino_precision = "float32"
    if openvino_precision in (None, openvino_network.NONE):
        return
    sample = [*rows]
    sample = sample[:: -(-len(sample) // _SAMPLE) or 1]
    batches = [shared_rows.pack([row]).inputs for row in sample]

    # The export may be remote, the network's files may not.
    with tempfile.TemporaryDirectory() as scratch, tensorflow_log.held_back():
        conversion.write_files(bert, scratch)
        openvino.write(
            scratch, bert.config, bert.values, openvino_precision, batches
        )
        for path in storage.files_below(scratch):
            name = os.path.relpath(path, scratch)
            target = os.path.join(folder, openvino_network.FOLDER, name)
            storage.make_folder(os.path.dirname(target))
            storage.copy(path, target)


def write_extra(folder: str, name: str, values: dict) -> None:
    """Writes values of an export for pages, which TensorFlow does not read.

    Args:
        folder: path of the export.
        name: METRICS or EXAMPLE.
        values: the values.
    """
    path = os.path.join(folder, name)
    storage.make_folder(os.path.dirname(path))
    text = json_files.to_json(values, indent=1, ensure_ascii=False)
    atomic.write_whole(path, text + "\n")


def read_extra(folder: str, name: str, kind: Any) -> dict:
    """Reads the values of `write_extra`; {} if there is no file.

    Args:
        folder: path of the export.
        name: METRICS or EXAMPLE.
        kind: type of the values.

    Raises:
        UserError: it is damaged.
    """
    path = os.path.join(folder, name)
    return json_files.read(path, kind) if storage.exists(path) else {}
