"""Files of small models: vocabulary, config and weights."""

import pathlib

import keras
import numpy as np

from bert.modeling import checkpoints
from bert.modeling.config import BertConfig
from tests.helpers import perturbation, small, text


def write_sizes(
    folder: pathlib.Path,
    name: str = "bert_config.json",
    tokens: list[str] = text.VOCABULARY,
    **changed,
) -> BertConfig:
    """Writes vocab.txt and a config of its size; returns the config."""
    text.write_vocabulary(folder / "vocab.txt", tokens)
    config = small.config(vocab_size=len(tokens), **changed)
    (folder / name).write_text(config.to_json())
    return config


def values_of(network: keras.Model) -> dict[str, np.ndarray]:
    """Weights of a network, with heads or not, by the original's names."""
    if network.name == "bert":
        named = checkpoints.encoder_variables(network)
    else:
        named = checkpoints.model_variables(network)
    return {name: variable.numpy() for name, variable in named.items()}


def random_values(
    network: keras.Model, scale: float = 0.2, seed: int = 3
) -> dict[str, np.ndarray]:
    """Random weights for a network, by the original's names."""
    rng = np.random.default_rng(seed)
    shapes = {name: x.shape for name, x in values_of(network).items()}
    values = {name: rng.normal(0, scale, x) for name, x in shapes.items()}
    return {
        name: (x * perturbation.factors(x.shape)).astype("f4")
        for name, x in values.items()
    }


def values_with_layer_10(network: keras.Model) -> dict[str, np.ndarray]:
    """Random weights of a network, and a layer whose number has two digits."""
    first, second = (random_values(network, 1.0, seed) for seed in (3, 5))
    return first | {
        name.replace("layer_1/", "layer_10/"): value
        for name, value in second.items()
        if "layer_1/" in name
    }


def biased_values(
    network: keras.Model, **biases: float
) -> dict[str, np.ndarray]:
    """Weights of a masked LM with these biases of words, which it answers."""
    values = values_of(network)
    for word, bias in biases.items():
        position = text.VOCABULARY.index(word)
        values["cls/predictions/output_bias"][position] = bias
    return values
