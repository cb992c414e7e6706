"""Frozen layers and layer-wise learning-rate decay."""

import keras

from bert.modeling import checkpoints


def freeze(named: dict[str, keras.Variable], layers: int) -> None:
    """Freezes the embeddings and the first layers.

    Args:
        named: dict. Original name -> variable.
        layers: int. Number of layers. 0 freezes nothing, not even the
            embeddings.
    """
    for name, variable in named.items():
        depth = checkpoints.depth(name)
        if layers and depth is not None and depth <= layers:
            variable.trainable = False


def rate_factors(
    named: dict[str, keras.Variable],
    variables: list[keras.Variable],
    decay: float,
    layers: int,
) -> tuple[float, ...]:
    """Factors of the learning rates.

    The factor is decay ** (L - l) for layer l of L, with the embeddings as
    layer 0, and 1 for pooler and heads (Howard and Ruder 2018,
    arXiv:1801.06146; Clark et al. 2020, arXiv:2003.10555).

    Args:
        named: dict. Original name -> variable.
        variables: list. Trained variables of `named`.
        decay: float. Above 0, up to 1.
        layers: int. L.

    Returns:
        Tuple of float: one factor for each of `variables`.
    """
    depths = {id(x): checkpoints.depth(name) for name, x in named.items()}
    numbers = [depths[id(variable)] for variable in variables]
    return tuple(1.0 if x is None else decay ** (layers - x) for x in numbers)
