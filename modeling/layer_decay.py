"""Which layers of a network learn, and how fast, from below to above."""

import keras

from modeling import checkpoints


def freeze(named: dict[str, keras.Variable], layers: int) -> None:
    """Takes the embeddings and the first layers out of training.

    Args:
        named: original name -> variable.
        layers: so many; 0: not even the embeddings are taken out.
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
    """What the learning rate of each variable is multiplied by.

    decay ** (L - l) for the lth of L layers, from 1, as if the embeddings
    were layer 0; 1 for pooler and head (Howard and Ruder 2018,
    arXiv:1801.06146; Clark et al. 2020, arXiv:2003.10555).

    Args:
        named: original name -> variable.
        variables: some of them, those that are trained.
        decay: above 0, up to 1.
        layers: L.
    """
    depths = {id(x): checkpoints.depth(name) for name, x in named.items()}
    found = [depths[id(variable)] for variable in variables]
    return tuple(1.0 if x is None else decay ** (layers - x) for x in found)
