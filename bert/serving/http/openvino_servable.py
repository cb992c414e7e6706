"""A network of OpenVINO that answers requests, without TensorFlow."""

import threading
from collections.abc import Callable

import numpy as np

from bert.serving import openvino_model, predict_settings
from bert.serving.http import rest
from bert.serving.http.settings import Settings

_ANY = {"dim": [{"size": "-1"}]}  # of a shape, in TF Serving's JSON


class Servable:
    """A network that many threads may call; one batch is a request.

    Args:
        folder: of the network.
        settings: the sizes of batches and queue.
        on_batch: called with the number of examples of each request.

    Attributes:
        signatures: name -> specs of the inputs by name.
        metadata: name -> the signature, as a proto in JSON.

    Raises:
        UserError: see `openvino_model.load`.
    """

    def __init__(
        self,
        folder: str,
        settings: Settings,
        on_batch: Callable[[int], None],
    ):
        self._model = openvino_model.load(
            predict_settings.Settings(model=folder)
        )
        self._on_batch = on_batch
        inputs = self._model.inputs
        text = rest.Spec(np.dtype(object), (None,))
        self.signatures = {rest.DEFAULT: dict.fromkeys(inputs, text)}
        described = {
            name: {"name": name, "dtype": "DT_STRING", "tensor_shape": _ANY}
            for name in inputs
        }
        self.metadata = {rest.DEFAULT: {"inputs": described}}

        # A request that waits has a thread of the server, and no batch.
        waiting = settings.max_batch_size * settings.max_queued_batches
        self._places = threading.Semaphore(waiting)
        self._model.call({name: [""] for name in inputs})  # the first is slow

    def call(
        self, signature: str, arrays: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Answers a request.

        Args:
            signature: its name.
            arrays: name -> bytes, object [b].

        Returns:
            name -> array [b, ...].

        Raises:
            rest.Busy: too many requests wait.
        """
        if not self._places.acquire(blocking=False):
            raise rest.Busy
        try:
            texts = {
                name: [x.decode(errors="replace") for x in column]
                for name, column in arrays.items()
            }
            self._on_batch(len(next(iter(texts.values()))))
            return self._model.call(texts)
        finally:
            self._places.release()
