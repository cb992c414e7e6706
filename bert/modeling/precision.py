"""Precision of training and of exported models."""

import contextlib
from collections.abc import Iterator

import keras


def computing_in(precision: str) -> contextlib.AbstractContextManager[None]:
    """Context in which new layers get a compute precision.

    Their variables stay float32. Existing layers are not affected.

    Args:
        precision: str. "float32", "bfloat16", "float16" or "tf32".
    """
    mixed = precision not in ("float32", "tf32")
    return stored_in(f"mixed_{precision}" if mixed else "float32")


@contextlib.contextmanager
def stored_in(precision: str) -> Iterator[None]:
    """Context in which new layers store their weights in a precision.

    They also compute in it, except for sums, norms and softmax.

    Args:
        precision: str. Name of a dtype.
    """
    # Layers read Keras' global policy only when they are created.
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
