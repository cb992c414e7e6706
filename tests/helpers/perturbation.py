"""Perturbed initial weights, as if the processor rounded differently.

A test that compares well-conditioned values passes with them, too.
"""

import keras
import numpy as np

_amount, _seed = 0.0, 0


def start(amount: float, seed: int) -> None:
    """Multiplies the initial weights of later networks by 1 ± `amount`.

    Args:
        amount: 0.0 ends the perturbation.
        seed: chooses the sign for each weight of a shape.
    """
    global _amount, _seed
    _amount, _seed = amount, seed


def factors(shape: tuple[int, ...]) -> np.ndarray:
    """1 ± `amount`, the same for each tensor of this shape."""
    rng = np.random.default_rng([_seed, *shape])
    return 1 + _amount * rng.choice([-1.0, 1.0], shape)


def patch_keras() -> None:
    """Lets each layer perturb its weights when it makes them."""
    add_weight = keras.layers.Layer.add_weight

    def add_perturbed_weight(layer, *args, initializer=None, **named):
        if initializer is not None:
            initial = keras.initializers.get(initializer)

            def initializer(shape, dtype=None):
                value = initial(shape, dtype=dtype)
                kind = keras.backend.standardize_dtype(value.dtype)
                if not _amount or "float" not in kind:
                    return value
                return value * keras.ops.cast(factors(shape), kind)

        return add_weight(layer, *args, initializer=initializer, **named)

    keras.layers.Layer.add_weight = add_perturbed_weight
