"""Answers to one or two texts from the LiteRT file of an export.

    texts -> ids -> LiteRT -> logits -> answers, in the graph

TensorFlow arranges the weights anew for each product, LiteRT once. In larger
batches texts share rows, which pays more: these are left to TensorFlow.
"""

import os
import tempfile
import threading
import warnings
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from bert.common import atomic, storage, tensorflow_log
from bert.common.errors import UserError
from bert.data import features
from bert.data.text.tokenizer import Tokenizer
from bert.serving import known_exports

DEFAULT = "serving_default"
_OPTIONS = {  # of LiteRT's converter, by the precision of the weights
    "float32": {},
    "int8": {"optimizations": [tf.lite.Optimize.DEFAULT]},
}
_MOST_TEXTS, _MOST_THREADS = 2, 4


def write(model: keras.Model, folder: str, precision: str) -> Callable:
    """Writes a network into an export; returns it, as `open_network` does."""
    path = os.path.join(folder, known_exports.LITE)
    storage.make_folder(os.path.dirname(path))
    with tempfile.TemporaryDirectory() as scratch, tensorflow_log.held_back():
        local = os.path.join(scratch, os.path.basename(path))
        options = _OPTIONS[precision]
        model.export(local, format="litert", verbose=False, **options)

        # The folder of the export may be remote, the converter's may not.
        with storage.open_file(local, "rb") as file:
            atomic.write_whole(path, file.read())
    return open_network(path)


def open_network(path: str) -> Callable[..., np.ndarray]:
    """Opens a LiteRT file.

    Returns:
        function from the encoder's inputs, int32 [B, S] each, to logits,
        float32 [B, C]. It computes a sequence at a time, without its padding.

    Raises:
        UserError: the file is damaged.
    """
    with storage.open_file(path, "rb") as file:
        content = file.read()

    threads = min(_MOST_THREADS, len(os.sched_getaffinity(0)))
    quietly = warnings.catch_warnings(action="ignore")  # of its next name
    try:
        with quietly, tensorflow_log.held_back():
            interpreter = tf.lite.Interpreter(
                model_content=content, num_threads=threads
            )
            interpreter.allocate_tensors()
    except (ValueError, RuntimeError) as error:
        raise UserError(f"cannot be loaded: {error}", path=path) from None

    network = interpreter.get_signature_runner()
    lock = threading.Lock()  # it computes one call at a time

    def logits_of(ids, mask, segments):
        inputs = dict(zip(features.ENCODER_INPUTS, (ids, mask, segments)))

        with lock:
            rows = [
                network(**{k: x[i : i + 1, :n] for k, x in inputs.items()})
                for i, n in enumerate(mask.sum(-1))
            ]
        return np.concatenate([row["logits"] for row in rows])

    return logits_of


def serving_default(folder: str, loaded) -> Callable:
    """Returns the default signature, which leaves few texts to LiteRT.

    Args:
        folder: folder of the SavedModel, which may have no such file.
        loaded: its object; it is trusted.
    """
    signature = loaded.signatures[DEFAULT]
    path = os.path.join(folder, known_exports.LITE)
    if not (hasattr(loaded, "answer_logits") and storage.exists(path)):
        return signature

    network, specs = open_network(path), signature.structured_input_signature[1]
    tokenizer = Tokenizer(
        loaded.vocab_file.asset_path.numpy().decode(),
        bool(loaded.do_lower_case.numpy()),
        bool(loaded.strip_accents.numpy()),
    )

    # The count of no texts tells the length of the graph's sequences.
    nothing = dict.fromkeys(specs, tf.constant([], tf.string))
    limit = int(loaded.count_tokens(**nothing)["max_seq_length"])

    def logits_of(*columns):
        columns = [[x.decode(errors="replace") for x in y] for y in columns]
        inputs = tokenizer(*columns, max_length=limit)
        return network(*(inputs[name] for name in features.ENCODER_INPUTS))

    def of_few(texts):
        columns = [texts[name] for name in sorted(specs)]
        logits = tf.numpy_function(logits_of, columns, tf.float32)
        return loaded.answer_logits(logits=logits)

    def answer(**texts):
        return tf.cond(
            tf.size(next(iter(texts.values()))) <= _MOST_TEXTS,
            lambda: of_few(texts),
            lambda: signature(**texts),
        )

    return answer
