"""Warm-up requests of a version, for serve.py and for TF Serving.

    python -m serving.warm_up base/1 requests.jsonl

writes the requests, one a line as they are sent to :predict, to the file in
the version's folder from which both send them to the model when they start.
"""

import os
import sys
from collections.abc import Callable

import tensorflow as tf
from google.protobuf import message
from tensorflow_serving.apis import prediction_log_pb2

from common import main as common_main
from common import storage
from common.errors import UserError
from serving import rest

_PATH = os.path.join("assets.extra", "tf_serving_warmup_requests")
_MOST = 1000  # what TF Serving accepts
_UNFIT = (
    *(tf.errors.OpError, message.DecodeError),
    *(LookupError, TypeError, ValueError),
)


def run(folder: str, call: Callable) -> int:
    """Sends its warm-up requests to a model.

    Args:
        folder: folder of the version.
        call: (signature, name -> tensor [b, ...]) -> anything.

    Returns:
        their number.

    Raises:
        UserError: the file is damaged, or a request does not fit the model.
    """
    path = os.path.join(folder, _PATH)
    if not storage.is_file(path):
        return 0
    try:
        records = list(tf.data.TFRecordDataset(path).take(_MOST))
        for record in records:
            log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
            request = log.predict_log.request
            tensors = {
                name: tf.constant(tf.make_ndarray(value))
                for name, value in request.inputs.items()
            }
            call(request.model_spec.signature_name or rest.DEFAULT, tensors)
    except _UNFIT as error:
        raise UserError(
            f"a warm-up request does not fit the model: {error!r:.200}",
            path=path,
            fix="remove the file, or write it again",
        ) from None
    return len(records)


def write(folder: str, lines: list[bytes], signatures: dict) -> None:
    """Writes warm-up requests, after a check of all.

    Args:
        folder: folder of the version.
        lines: bodies of requests.
        signatures: of the model, see `rest.parse`.

    Raises:
        UserError: a request does not fit, or there are too many.
    """
    if not 0 < len(lines) <= _MOST:
        raise UserError(f"{len(lines)} requests", expected=f"1 to {_MOST}")
    path = os.path.join(folder, _PATH)
    parsed = [rest.parse(line, signatures) for line in lines]
    # The name of the model is that of the folder around the versions.
    name = os.path.basename(os.path.dirname(storage.absolute(folder)))
    storage.make_folder(os.path.dirname(path))
    with (
        storage.whole_file(path) as temporary,
        tf.io.TFRecordWriter(temporary) as writer,
    ):
        for one in parsed:
            log = prediction_log_pb2.PredictionLog()
            request = log.predict_log.request
            request.model_spec.name = name
            request.model_spec.signature_name = one.signature
            for key, tensor in one.tensors.items():
                proto = tf.make_tensor_proto(tensor.numpy())
                request.inputs[key].CopyFrom(proto)
            writer.write(log.SerializeToString())


def main(argv: list[str]) -> None:
    """Writes the requests of a file to a folder."""
    if len(argv) != 3:
        raise UserError("unexpected arguments", expected="FOLDER REQUESTS")
    _, folder, path = argv
    with storage.open_file(path, "rb") as file:
        lines = file.read().splitlines()
    write(folder, lines, rest.read_signatures(folder))


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
