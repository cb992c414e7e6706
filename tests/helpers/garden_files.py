"""Checkpoints as Model Garden writes them."""

import pathlib

import numpy as np
import tensorflow as tf

from bert.modeling.config import BertConfig
from bert.modeling.formats import model_garden


def write(
    folder: pathlib.Path, config: BertConfig, values: dict[str, np.ndarray]
) -> str:
    """Writes a checkpoint of a model; returns its prefix.

    Args:
        folder: to write to.
        config: sizes.
        values: original name -> array.
    """
    named = model_garden.named_variables(config, values)
    spans = {n: v for n, v in named.items() if n.startswith("cls/squad/")}
    others = [v for n, v in named.items() if n not in spans]

    # Names of the heads of spans and of tokens are equal, their paths differ.
    head = node(**{"layer_with_weights-0": node(head=[*spans.values()])})
    model = node(**{"layer_with_weights-1": head})
    root = node(variables=others, model=model)
    return root.save(str(folder / "bert_model.ckpt"))


def write_named(
    path: pathlib.Path, config: BertConfig, values: dict[str, np.ndarray]
) -> pathlib.Path:
    """Writes weights by full name for model_garden_outputs.py.

    Args:
        path: of the `.npz` file, which is returned.
        config: sizes.
        values: original name -> array.
    """
    named = model_garden.named_variables(config, values).values()
    arrays = {x.name.removesuffix(":0"): x.numpy() for x in named}
    np.savez(path, **arrays)
    return path


def node(**children) -> tf.train.Checkpoint:
    """An object with these children."""
    return tf.train.Checkpoint(**children)
