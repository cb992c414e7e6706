"""Exports of the Keras models that take text."""

import contextlib
import dataclasses
import os
import tempfile
from collections.abc import Iterator

from bert.common import atomic, errors, outputs
from bert.data.sequences import TokenSequence
from bert.data.text.tokenizer import Tokenizer
from bert.export import folder as export_folder
from bert.modeling.engines import openvino_engine
from bert.modeling.formats import conversion
from bert.modeling.formats.conversion_settings import NETWORKS
from bert.modeling.formats.model import Model
from bert.models import loading

ONNX = "onnx"


def write_onnx(model, folder: str) -> None:
    """Writes the network of a model as ONNX.

    Args:
        model: TextModel. The model.
        folder: str. Path of a new or empty folder.

    Raises:
        UserError: See `TextModel.export`.
    """
    errors.check_packages(ONNX, *NETWORKS[ONNX], needed_by="format=onnx")
    with source(model, folder) as written:
        conversion.convert(written, ONNX, folder)


def write(
    model,
    folder: str,
    openvino: str | None,
    rows: list[TokenSequence],
    entries: dict,
) -> None:
    """Writes the export of a model.

    Args:
        model: TextModel. The model.
        folder: str. Path of a new or empty folder.
        openvino: str or None. See `TextModel.export`.
        rows: list of TokenSequence. Sequences that calibrate int8.
        entries: dict. Further entries of `task.json`.

    Raises:
        UserError: See `TextModel.export`.
    """
    openvino_engine.check(openvino, "openvino", len(rows))
    with source(model, folder) as written:
        written = dataclasses.replace(
            written, task_json=(written.task_json or {}) | entries
        )
        export_folder.write(
            folder,
            lambda path: export_folder.write_model(
                path, written, openvino_precision=openvino, rows=rows
            ),
        )


@contextlib.contextmanager
def source(model, folder: str) -> Iterator[Model]:
    """Yields weights, config and tokenizer for an export to a new folder.

    Args:
        model: TextModel. The model.
        folder: str. Path of a new or empty folder.

    Raises:
        UserError: The folder is not empty or cannot be written, or the
            weights are quantized.
    """
    outputs.check_new_folder(folder, "pass another folder")
    given = model.tokenizer
    with tempfile.TemporaryDirectory() as scratch:
        # The asset of a SavedModel has the name of this file.
        path = os.path.join(scratch, "vocab.txt")
        atomic.write_whole(path, given.content)
        tokenizer = Tokenizer.of(path, given.casing)
        yield loading.weights_of(
            model.network, tokenizer.with_max_length(model.max_length), folder
        )
