"""TFRecord shards: encoded in batches, written whole or not at all."""

import hashlib
import os
import shutil

import numpy as np
import tensorflow as tf

from durable import sync_and_hash
from errors import UserError


def encode_examples(arrays: dict[str, np.ndarray]) -> list[bytes]:
    """Serializes rows as `tf.train.Example`, features in the order given.

    Encodes whole batches, several times as fast as one example at a time.

    Args:
        arrays: name -> `int64 [N, length]` or `float32 [N, length]`.

    Returns:
        N serialized examples.
    """
    entries = []
    for name, array in arrays.items():
        rows = len(array)
        is_int = array.dtype == np.int64
        kind, field = (
            ("Int64List", "int64_list")
            if is_int
            else ("FloatList", "float_list")
        )
        values = _message(f"tensorflow.{kind}", {"value": array})
        feature = _message("tensorflow.Feature", {field: values[:, None]})
        entries.append(
            _message(
                "tensorflow.Features.FeatureEntry",
                {"key": tf.fill([rows, 1], name), "value": feature[:, None]},
            )
        )
    features = _message(
        "tensorflow.Features", {"feature": tf.stack(entries, axis=1)}
    )
    examples = _message("tensorflow.Example", {"features": features[:, None]})
    return examples.numpy().tolist()


class ShardWriter:
    """Writes records to shards that get their names when all is written.

    Until `finish` the shards stand in a hidden folder beside their final
    place (`scratch`, free for other temporary files). As a context manager
    it removes that folder; what a killed run left there, the next run for
    the same paths sweeps.

    Args:
        paths: final paths, all in one folder.

    Raises:
        UserError: the folder cannot be made or written.
    """

    def __init__(self, paths: list[str]):
        digest = hashlib.sha256("\n".join(paths).encode()).hexdigest()
        self.folder = os.path.dirname(os.path.abspath(paths[0]))
        self.scratch = os.path.join(self.folder, f".partial-{digest[:8]}")
        self._paths = paths
        try:
            os.makedirs(self.folder, exist_ok=True)
            if os.path.isdir(self.scratch):
                shutil.rmtree(self.scratch)
            os.mkdir(self.scratch)
        except OSError as error:
            raise _cannot_write(self.folder, error.strerror) from None
        self._partial = [
            os.path.join(self.scratch, str(i)) for i in range(len(paths))
        ]
        self._writers = [tf.io.TFRecordWriter(path) for path in self._partial]
        self._counts = [0] * len(paths)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def write(self, shard: int, record: bytes) -> None:
        """Appends a record to a shard, given by its number."""
        try:
            self._writers[shard].write(record)
        except tf.errors.OpError as error:
            raise _cannot_write(self._paths[shard], error.message) from None
        self._counts[shard] += 1

    def finish(self) -> dict[str, dict]:
        """Gives the shards their names.

        Returns:
            file name -> `{"records", "bytes", "sha256"}`.
        """
        shards = {}
        for writer, partial, path, count in zip(
            self._writers, self._partial, self._paths, self._counts, strict=True
        ):
            try:
                writer.close()
            except tf.errors.OpError as error:
                raise _cannot_write(path, error.message) from None
            shards[os.path.basename(path)] = {
                "records": count,
                "bytes": os.path.getsize(partial),
                "sha256": sync_and_hash(partial),
            }
        for partial, path in zip(self._partial, self._paths, strict=True):
            os.replace(partial, path)
        shutil.rmtree(self.scratch)
        return shards


def _message(message_type: str, fields: dict) -> tf.Tensor:
    """Serializes one message a row; each field is `[N, how often]`."""
    rows = len(next(iter(fields.values())))
    sizes = [values.shape[1] for values in fields.values()]
    return tf.io.encode_proto(
        sizes=np.tile(np.array(sizes, np.int32), (rows, 1)),
        values=list(fields.values()),
        field_names=list(fields),
        message_type=message_type,
    )


def _cannot_write(path: str, cause: str) -> UserError:
    return UserError(
        f"cannot be written: {cause}",
        path=path,
        fix="check the path, its permissions and the free space",
    )
