"""A loaded version of a model, which batches requests that arrive together."""

import contextlib
import threading
import uuid
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from google.protobuf import json_format

from bert.common import tensorflow_log
from bert.modeling import hub
from bert.modeling.formats import saved_models
from bert.serving import lite
from bert.serving.http import rest
from bert.serving.http.settings import Settings


class Servable:
    """A SavedModel whose signatures many threads may call.

    One bad example fails its whole batch. Then each request of the batch is
    computed alone, so that only the request at fault gets the error.

    Args:
        folder: the SavedModel.
        settings: the sizes of batches and queue; `find` has checked that
            the folder is trusted.
        on_batch: called with the number of examples of each batch.

    Attributes:
        signatures: name -> specs of the inputs by name.
        metadata: name -> the signature, as a proto in JSON.

    Raises:
        UserError: see `hub.load`.
    """

    def __init__(
        self,
        folder: str,
        settings: Settings,
        on_batch: Callable[[int], None],
    ):
        self._loaded = hub.load(folder, trust_model=True)  # variables
        self._functions = dict(self._loaded.signatures)
        if rest.DEFAULT in self._functions:
            self._functions[rest.DEFAULT] = lite.serving_default(
                folder, self._loaded
            )

        (meta,) = saved_models.read_proto(folder).meta_graphs
        self.signatures = rest.signatures_of(meta)
        self.metadata = {
            name: json_format.MessageToDict(
                meta.signature_def[name], preserving_proto_field_name=True
            )
            for name in self.signatures
        }

        self._batched = {
            name: _batched(
                self._functions[name],
                specs,
                list(self._loaded.signatures[name].structured_outputs),
                settings,
                on_batch,
            )
            for name, specs in self.signatures.items()
        }
        self._one_at_a_time = threading.Lock()
        self._call_once()

    def _call_once(self) -> None:
        """Calls the default signature with zeros or "".

        TensorFlow then optimizes the graph, and logs messages about it, before
        the first request.
        """
        specs = self.signatures.get(rest.DEFAULT)
        if specs is None:
            return

        # A model may reject them; then the first request does all this.
        with (
            tensorflow_log.held_back(),
            contextlib.suppress(tf.errors.OpError, ValueError),
        ):
            zeros = {
                name: tf.zeros([n or 1 for n in spec.shape], spec.dtype)
                for name, spec in specs.items()
            }
            self._functions[rest.DEFAULT](**zeros)

    def call(
        self, signature: str, tensors: dict[str, tf.Tensor]
    ) -> dict[str, np.ndarray]:
        """Calls a signature with a request, in a batch with others.

        Args:
            signature: its name.
            tensors: name -> tensor [b, ...], with b <= max_batch_size.

        Returns:
            name -> array [b, ...]; lists are padded to the longest of the
            batch.

        Raises:
            tf.errors.UnavailableError: the queue is full.
            tf.errors.OpError: the request cannot be computed.
        """
        try:
            outputs = self._batched[signature](**tensors)
        except tf.errors.UnavailableError:
            # The queue is full: to compute it alone would add to the load.
            raise
        except tf.errors.OpError:
            with self._one_at_a_time:
                outputs = self._functions[signature](**tensors)

        return {name: value.numpy() for name, value in outputs.items()}


def _batched(
    function,
    specs: dict,
    names: list[str],
    settings: Settings,
    on_batch: Callable,
):
    """The function of a signature, behind a queue of TensorFlow's own."""

    @tf.nondifferentiable_batch_function(
        num_batch_threads=1,
        max_batch_size=settings.max_batch_size,
        batch_timeout_micros=round(1000 * settings.max_delay_ms),
        max_enqueued_batches=settings.max_queued_batches,
        enable_large_batch_splitting=False,
        autograph=False,
    )
    def of_batch(*tensors):
        size = tf.shape(tensors[0], tf.int64)[0]
        tf.numpy_function(on_batch, [size], [])
        outputs = function(**dict(zip(specs, tensors, strict=True)))
        return [outputs[name] for name in names]

    queue = f"queue_{uuid.uuid4().hex}"  # equal names would share a queue

    def call(**tensors):
        with tf.name_scope(queue):
            outputs = of_batch(*(tensors[name] for name in specs))
        return dict(zip(names, outputs, strict=True))

    named = {k: tf.TensorSpec(x.shape, x.dtype, k) for k, x in specs.items()}
    traced = tf.function(call, autograph=False)
    return traced.get_concrete_function(**named)
