"""A network of OpenVINO that answers requests, without TensorFlow."""

import threading
import time
from collections.abc import Callable

import numpy as np

from bert.serving import openvino_model, predict_settings
from bert.serving.http import rest
from bert.serving.http.settings import Settings


class Servable:
    """A network that many threads may call, in turns; a batch is a request.

    Args:
        folder: of the network.
        settings: the sizes of batches and queue.
        on_batch: called before each batch, with the time.perf_counter() at
            which each example came, float64 [b].

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
        on_batch: Callable[[np.ndarray], None],
    ):
        self._model = openvino_model.load(
            predict_settings.Settings(model=folder)
        )
        self._on_batch = on_batch
        inputs = self._model.inputs
        text = rest.Spec(np.dtype(object), (None,))
        self.signatures = {rest.DEFAULT: dict.fromkeys(inputs, text)}

        # A request that waits has a thread of the server, and no batch.
        waiting = settings.max_batch_size * settings.max_queued_batches
        self._places = threading.Semaphore(waiting)
        self._turn = threading.Lock()  # one request takes all cores
        texts = {name: [""] for name in inputs}
        outputs = self._model.call(texts)  # the first is slow
        self.metadata = {rest.DEFAULT: rest.metadata_of(texts, outputs)}

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
        came = time.perf_counter()
        if not self._places.acquire(blocking=False):
            raise rest.Busy
        try:
            texts = {
                name: [x.decode(errors="replace") for x in column]
                for name, column in arrays.items()
            }
            size = len(next(iter(texts.values())))
            with self._turn:
                self._on_batch(np.full(size, came))
                return self._model.call(texts)
        finally:
            self._places.release()
