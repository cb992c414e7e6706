"""Name -> array in TensorFlow's name-based checkpoint files."""

from collections.abc import Iterator

import numpy as np
import tensorflow as tf


def write(prefix: str, values: dict) -> None:
    """Writes name -> tensor to `prefix.index` and `prefix.data-…`."""
    names = sorted(values)
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[tf.convert_to_tensor(values[name]) for name in names],
    )


def read(prefix: str, omit: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """Reads name -> array.

    Args:
        prefix: of the two files.
        omit: tensors whose names end so are not read.

    Raises:
        ValueError: a file is missing or damaged.
    """
    return dict(stream(prefix, omit))


def stream(
    prefix: str, omit: tuple[str, ...] = ()
) -> Iterator[tuple[str, np.ndarray]]:
    """As `read`, one array at a time."""
    try:
        reader = tf.train.load_checkpoint(prefix)
        for name in reader.get_variable_to_shape_map():
            if not name.endswith(omit):
                yield name, reader.get_tensor(name)
    except (tf.errors.OpError, IndexError, RuntimeError) as error:
        raise ValueError(str(error)) from None
