"""Reading and writing TensorFlow's name-based checkpoint files."""

import glob
import math
import os
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from bert.common import storage


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
    """Reads a checkpoint.

    Args:
        prefix: prefix of the checkpoint's files.
        omit: suffixes of the names of tensors to skip.

    Returns:
        name -> array.

    Raises:
        ValueError: a file is missing or damaged.
    """
    return dict(stream(prefix, omit))


def stream(
    prefix: str, omit: tuple[str, ...] = ()
) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the names and arrays of a checkpoint; see `read`."""
    try:
        reader = open_reader(prefix)
        # In the order of the file, which a store reads in large parts.
        for name in sorted(reader.get_variable_to_shape_map()):
            if not name.endswith(omit):
                yield name, reader.get_tensor(name)
    except (tf.errors.OpError, IndexError, RuntimeError, TypeError) as error:
        gone = storage.as_storage_error(error)
        raise gone or ValueError(str(error)) from None


def open_reader(prefix: str):
    """Opens a checkpoint, and compares its index with the size of its data.

    Reading would allocate whatever the index claims.

    Args:
        prefix: prefix of the checkpoint's files.

    Returns:
        the reader of `tf.train.load_checkpoint`.

    Raises:
        ValueError: the tensors are larger than the data files.
        OSError: the folder cannot be read.
        tf.errors.OpError, IndexError, RuntimeError: the checkpoint cannot be
            read.
    """
    reader = tf.compat.v1.train.NewCheckpointReader(prefix)
    dtypes = reader.get_variable_to_dtype_map()
    listed = sum(
        math.prod(shape) * max(1, dtypes[name].size)  # of a string, 0
        for name, shape in reader.get_variable_to_shape_map().items()
    )
    folder, name = os.path.split(prefix)
    files = storage.find(folder or ".", f"{glob.escape(name)}.data-*")
    size = sum(map(storage.size, files))
    if listed > size:
        raise ValueError(
            f"the index lists tensors of {listed:,} bytes; the data files "
            f"have {size:,}"
        )
    return reader
