"""The folder `openvino` of an export: a network that needs no TensorFlow."""

import os
import tempfile
from collections.abc import Iterable

import numpy as np

from bert.common import storage, tensorflow_log
from bert.data import features
from bert.modeling.formats import conversion, portable
from bert.modeling.openvino_network import Network

FOLDER = "openvino"
_TEXTS = 300  # to calibrate int8


def sample(texts: list) -> list:
    """A few hundred texts of all parts of a file, which may be sorted."""
    return texts[:: -(-len(texts) // _TEXTS)]


def write(
    export: str,
    bert: conversion.Bert,
    precision: str,
    rows: Iterable[tuple[list[int], list[int]]] = (),
) -> Network:
    """Writes the network, its vocabulary and its labels into an export.

    Args:
        export: folder of the export.
        bert: the weights, with tokenizer and labels.
        precision: of `portable.write_openvino`.
        rows: ids and segment ids of texts of training, for int8.

    Returns:
        the network, read again.
    """
    folder = os.path.join(export, FOLDER)
    texts = []
    for ids, segments in rows:
        row = np.array([ids, [1] * len(ids), segments], np.int32)
        texts.append(dict(zip(features.ENCODER_INPUTS, row[:, np.newaxis])))

    # The export may be remote, the converter's files may not.
    with tempfile.TemporaryDirectory() as scratch, tensorflow_log.held_back():
        conversion.write(bert, FOLDER, scratch)
        model = portable.build(bert.config, bert.values, bert.path)
        portable.write_openvino(model, scratch, precision, texts)

        for path in storage.files_below(scratch):
            target = os.path.join(folder, os.path.relpath(path, scratch))
            storage.make_folder(os.path.dirname(target))
            storage.copy(path, target)
    return Network(folder)
