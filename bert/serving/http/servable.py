"""A loaded version of a model, which batches requests that arrive together."""

import contextlib
import threading
import time
import uuid
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from google.protobuf import json_format

from bert.common import tensorflow_log
from bert.common.errors import UserError
from bert.modeling import hub
from bert.modeling.formats import saved_models
from bert.serving.http import rest
from bert.serving.http.settings import Settings

# Starts of the lines of a graph's error that do not name its cause.
_FRAMES = (
    "Graph execution",
    "Detected at node",
    "<stack",
    "[[",
    "File",
    "Hint",
)


class Servable:
    """A SavedModel whose signatures many threads may call.

    One bad example fails its whole batch. Then each request of the batch is
    computed alone, so that only the request at fault gets the error.

    Args:
        folder: the SavedModel.
        settings: the sizes of batches and queue; `find` has checked that
            the folder is trusted.
        on_batch: called before each batch, with the time.perf_counter() at
            which each example came, float64 [b].

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
        on_batch: Callable[[np.ndarray], None],
    ):
        self._loaded = hub.load(folder, trust_model=True)  # variables
        self._functions = dict(self._loaded.signatures)
        (meta,) = saved_models.read_proto(folder).meta_graphs
        self.signatures = _signatures_of(meta)
        self.metadata = {
            name: json_format.MessageToDict(
                meta.signature_def[name], preserving_proto_field_name=True
            )
            for name in self.signatures
        }

        # Not of `_call_once`. TensorFlow keeps the function for ever, so it
        # must not keep the model.
        is_ready = threading.Event()

        def begin(came):
            if is_ready.is_set():
                on_batch(came)

        self._batched = {
            name: _batched(
                self._functions[name],
                specs,
                list(self._loaded.signatures[name].structured_outputs),
                settings,
                begin,
            )
            for name, specs in self.signatures.items()
        }
        self._one_at_a_time = threading.Lock()
        self._call_once()
        is_ready.set()

    def _call_once(self) -> None:
        """Calls the default signature with zeros or "".

        TensorFlow then optimizes the graph, and logs messages about it, before
        the first request.
        """
        # To hold the log back would lose the lines of other threads.
        is_start = threading.current_thread() is threading.main_thread()
        silence = (
            tensorflow_log.held_back if is_start else contextlib.nullcontext
        )
        specs = self.signatures.get(rest.DEFAULT)
        if specs is None:
            return

        # A model may reject them; then the first request does all this.
        with (
            silence(),
            contextlib.suppress(tf.errors.OpError, ValueError),
        ):
            zeros = {
                name: tf.zeros([n or 1 for n in spec.shape], _dtype_of(spec))
                for name, spec in specs.items()
            }
            came = tf.zeros([1], tf.float64)
            self._batched[rest.DEFAULT](came, zeros)

    def call(
        self, signature: str, arrays: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Calls a signature with a request, in a batch with others.

        Args:
            signature: its name.
            arrays: name -> array [b, ...], with b <= max_batch_size.

        Returns:
            name -> array [b, ...]; lists are padded to the longest of the
            batch.

        Raises:
            rest.Busy: the queue is full.
            UserError: the model rejects the request.
        """
        specs = self.signatures[signature]
        tensors = {
            name: tf.constant(array, _dtype_of(specs[name]))
            for name, array in arrays.items()
        }
        size = next(len(x) for x in arrays.values() if x.ndim)
        came = tf.fill([size], tf.constant(time.perf_counter(), tf.float64))
        try:
            outputs = self._batched[signature](came, tensors)
        except tf.errors.UnavailableError:
            # To compute it alone would add to the load.
            raise rest.Busy from None
        except tf.errors.OpError:
            outputs = self._alone(signature, tensors)

        return {name: value.numpy() for name, value in outputs.items()}

    def _alone(self, signature: str, tensors: dict) -> dict:
        """Computes a request whose batch has failed."""
        try:
            with self._one_at_a_time:
                return self._functions[signature](**tensors)
        except tf.errors.InvalidArgumentError as error:
            # Of the graph's error, the line that names the cause.
            lines = (line.strip() for line in error.message.split("\n"))
            causes = (x for x in lines if x and not x.startswith(_FRAMES))
            raise UserError(next(causes, "the model rejects it")) from None


def _signatures_of(meta) -> dict[str, dict[str, rest.Spec]]:
    """The signatures of a MetaGraphDef: name -> specs of the inputs."""
    return {
        name: {
            key: _spec_of(tf.TensorShape(x.tensor_shape), x.dtype)
            for key, x in signature.inputs.items()
        }
        for name, signature in meta.signature_def.items()
        if signature.inputs
    }


def _spec_of(shape: tf.TensorShape, dtype: int) -> rest.Spec:
    sizes = None if shape.rank is None else tuple(shape)
    return rest.Spec(np.dtype(tf.as_dtype(dtype).as_numpy_dtype), sizes)


def _dtype_of(spec: rest.Spec) -> tf.DType:
    return tf.string if spec.dtype == object else tf.as_dtype(spec.dtype)


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
    def of_batch(came, *tensors):
        tf.numpy_function(on_batch, [came], [])
        outputs = function(**dict(zip(specs, tensors, strict=True)))
        return [outputs[name] for name in names]

    queue = f"queue_{uuid.uuid4().hex}"  # equal names would share a queue

    def call(came, tensors):
        with tf.name_scope(queue):
            outputs = of_batch(came, *(tensors[name] for name in specs))
        return dict(zip(names, outputs, strict=True))

    named = {
        name: tf.TensorSpec(spec.shape, _dtype_of(spec), name)
        for name, spec in specs.items()
    }
    traced = tf.function(call, autograph=False)
    return traced.get_concrete_function(
        tf.TensorSpec([None], tf.float64), named
    )
