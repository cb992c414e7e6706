"""The precision of a network for serving: of weights and computation."""

import contextlib
from collections.abc import Iterator

import keras


@contextlib.contextmanager
def stored_in(precision: str) -> Iterator[None]:
    """Layers that are made inside store their weights in this precision.

    They compute in it too, but for sums, norms and softmax; it stays theirs
    when the context is left.

    Args:
        precision: a dtype's name.
    """
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
