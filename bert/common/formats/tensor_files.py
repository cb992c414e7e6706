"""Reads and writes TensorFlow's name-based checkpoint files."""

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
        prefix: str. Prefix of the checkpoint's files.
        omit: tuple of str. Tensors whose names end in one of these suffixes
            are skipped.

    Returns:
        dict. Name -> array.

    Raises:
        ValueError: A file is missing or damaged.
    """
    return dict(stream(prefix, omit))


def stream(
    prefix: str, omit: tuple[str, ...] = ()
) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the names and arrays of a checkpoint; see `read`."""
    try:
        reader = open_reader(prefix)
        # In the order of the file, so that remote reads are sequential.
        for name in sorted(reader.get_variable_to_shape_map()):
            if not name.endswith(omit):
                yield name, reader.get_tensor(name)
    except (tf.errors.OpError, IndexError, RuntimeError, TypeError) as error:
        gone = storage.as_storage_error(error)
        raise gone or ValueError(str(error)) from None


def open_reader(prefix: str):
    """Opens a checkpoint after comparing its index with its data files.

    Reading allocates the sizes in the index, which may be damaged.

    Args:
        prefix: str. Prefix of the checkpoint's files.

    Returns:
        The reader of `tf.train.load_checkpoint`.

    Raises:
        UserError: The index is a pipe or device.
        ValueError: The tensors are larger than the data files.
        OSError: The folder cannot be read.
        tf.errors.OpError, IndexError, RuntimeError: The checkpoint cannot be
            read.
    """
    storage.regular(f"{prefix}.index")  # TensorFlow would wait for a pipe
    reader = tf.compat.v1.train.NewCheckpointReader(prefix)
    dtypes = reader.get_variable_to_dtype_map()
    listed = sum(
        math.prod(shape) * max(1, dtypes[name].size)  # a string has size 0
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
