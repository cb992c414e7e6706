"""Some layers of a model, as the layers of a smaller one."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert.common.errors import UserError

_SCOPE = "bert/encoder/layer_"
_LAYER = re.compile(_SCOPE + r"(\d+)/")


def read(given: tuple[str, ...], count: int, path: str) -> tuple[int, ...]:
    """Reads --keep_layers.

    The first and the last of evenly spaced layers are kept, as in DistilBERT
    (Sanh et al. 2019, arXiv:1910.01108).

    Args:
        given: tuple of str. Numbers of layers from 0; or a single number, how
            many to keep.
        count: int. Number of layers of the model.
        path: str. Config of the model, for the message.

    Returns:
        tuple of int. Numbers of the kept layers; () for all layers.

    Raises:
        UserError: the model has no such layer.
    """
    valid = range(1, count + 1) if len(given) == 1 else range(count)
    layers = [int(x) for x in given if x.isdecimal()]
    if len({*layers} & {*valid}) < len(given):
        raise UserError(
            f"--keep_layers={','.join(given)}",
            expected=f"different layers from 0 to {count - 1}, or one number "
            f"from 1 to {count} ({path})",
        )
    if len(layers) == 1:
        layers = np.linspace(0, count - 1, layers[0]).round().tolist()
    return tuple(map(int, layers))


def select(named: Mapping[str, Any], layers: tuple[int, ...]) -> dict[str, Any]:
    """Selects the variables of kept layers.

    Args:
        named: dict. Original name -> value.
        layers: tuple of int. Result of `read`.

    Returns:
        dict. The same, with the kept layers numbered from 0.
    """
    found = {}
    for name, value in named.items():
        match = _LAYER.match(name)
        if not match or not layers:
            found[name] = value
        elif int(match[1]) in layers:
            number = layers.index(int(match[1]))
            found[_LAYER.sub(f"{_SCOPE}{number}/", name)] = value
    return found
