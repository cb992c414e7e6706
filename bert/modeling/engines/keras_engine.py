"""The Keras engine: computes the outputs of packed batches on any device.

An engine is a function of the inputs of a packed encoder, int32 [R, W] and
[R, K]. It returns float32 [R, K, ...] for a head on `[CLS]` or on a mask, and
float32 [R, W, ...] for a head on tokens or without a head; an engine may add
rows and columns of padding. The other engine is
`openvino_engine.OpenVINOEngine`.
"""

import bisect
import collections
import threading
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert.common import processes
from bert.data import feature_names, sequence_packing
from bert.modeling import checkpoints, encoder, networks
from bert.modeling.formats.model import Model
from bert.modeling.formats.model_folder import ModelFolder
from bert.training import distribution

_INPUTS = (*feature_names.ENCODER_INPUTS, *feature_names.PACKED_INPUTS)
_LEAST_WIDTH, _LEAST_SEQUENCES = 128, 8  # of a row with a static shape

# Widths of single rows that XLA compiles, after this number of batches.
_WIDTHS = (8, 12, 16, 24, 32, 48, 64, 96, 128)
_BATCHES = 16


class KerasEngine:
    """Engine that computes outputs with a Keras network.

    Args:
        network: Encoder. The encoder. The engine uses its current weights.
        head: keras.layers.Layer or None. Its head, named as in `HEADS`. None:
            the output is a layer of the encoder. Default: None.
        layer: int. See `networks.packed_outputs`. Default: -1.
        strategy: tf.distribute.Strategy or None. Devices that share the rows
            of each batch; several workers must compute the same batches
            together. Default: None, TensorFlow's default device.

    Attributes:
        description: str. Device and number of threads; "" unless the engine
            was loaded.
    """

    description = ""

    def __init__(
        self,
        network: encoder.Encoder,
        head: keras.layers.Layer | None = None,
        layer: int | tuple[int, ...] = -1,
        strategy: tf.distribute.Strategy | None = None,
    ):
        def run(**inputs):
            outputs = networks.packed_outputs(network, head, inputs, layer)
            return tf.cast(outputs, tf.float32)

        # A TPU compiles a program for each shape.
        self._is_static = bool(strategy) and distribution.is_tpu(strategy)
        self._strategy = None
        if strategy and (strategy.num_replicas_in_sync > 1 or self._is_static):
            self._strategy = strategy

            def run_on_replicas(inputs):
                outputs = strategy.run(run, kwargs=inputs)
                return strategy.gather(outputs, axis=0)

            self._run_on_replicas = tf.function(
                run_on_replicas,
                autograph=False,
                reduce_retracing=not self._is_static,
            )

        # Eagerly where `tf.config.run_functions_eagerly` asks for it.
        self._run: Callable = run
        self._programs: _Programs | None = None
        if not self._strategy and not tf.config.functions_run_eagerly():
            spec = tf.TensorSpec([None, None], tf.int32)
            traced = tf.function(run, autograph=False)
            specs = dict.fromkeys(_INPUTS, spec)
            self._run = traced.get_concrete_function(**specs)
            on_cpu = not tf.config.list_logical_devices("GPU")
            if on_cpu and network.compute_dtype == "float32":
                self._programs = _Programs(self._run)

    @classmethod
    def of(
        cls,
        network: encoder.Encoder,
        head: keras.layers.Layer | None = None,
        layer: int = -1,
    ) -> "KerasEngine":
        """Returns the cached engine of a network; see the class.

        Args:
            network, head, layer: see the class.
        """
        # LoRA and quantization replace variables, which needs a new graph.
        kept = network.__dict__.setdefault("_engines", {})
        variables = [*map(id, network.variables)]
        found = kept.get((head, layer))
        if found is None or found[0] != variables:
            found = kept[head, layer] = variables, cls(network, head, layer)
        return found[1]

    @classmethod
    def load(
        cls,
        model: Model | ModelFolder,
        head: str | None = None,
        layer: int | tuple[int, ...] = -1,
        devices: dict[str, Any] | None = None,
    ) -> "KerasEngine":
        """Builds the network of a model's folder, with its weights.

        Args:
            model: ModelFolder. The folder.
            head: str or None. Key of `HEADS`, or None for no head. Default:
                None.
            layer: see the class.
            devices: dict or None. Arguments of `distribution.make_strategy`.
                Default: one device.

        Raises:
            UserError: The weights are damaged, not finite or do not fit the
                config.
        """
        model.check_finite()
        one = {"distribution": "one_device"}
        strategy = distribution.make_strategy(**devices or one)
        with strategy.scope():
            network = model.network(head)
        engine = cls(
            checkpoints.encoder_of(network),
            None if head is None else network.get_layer(head),
            layer,
            strategy,
        )
        engine.description = distribution.describe(strategy)
        return engine

    def __call__(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        """Computes the outputs of a packed batch; see the module.

        Args:
            inputs: dict. Name -> int32 array.

        Raises:
            UserError: See `processes.check_not_forked`.
        """
        processes.check_not_forked(processes.TENSORFLOW)
        if not self._strategy:
            run = self._run
            if self._programs:
                run, inputs = self._programs.find(inputs)
            return run(**_tensors(inputs)).numpy()

        # Each replica gets an equal number of rows.
        replicas = self._strategy.num_replicas_in_sync
        padded = _padded(inputs, replicas, self._is_static)
        size = len(padded[feature_names.INPUT_IDS]) // replicas

        def part(context):
            start = context.replica_id_in_sync_group * size
            rows = slice(start, start + size)
            return {k: tf.constant(x[rows]) for k, x in padded.items()}

        parts = self._strategy.experimental_distribute_values_from_function(
            part
        )
        return self._run_on_replicas(parts).numpy()


class _Programs:
    """Programs of a graph for single rows of few tokens, compiled by XLA.

    For few tokens a graph takes most of its time between its operations. A
    program takes a third to nine tenths of the graph's time. Compiling takes a
    second, so the 16th batch of a shape starts it in another thread.

    Args:
        graph: function. Computes the output of inputs of any shapes.
    """

    def __init__(self, graph: Callable):
        self._graph = graph
        self._batches: collections.Counter = collections.Counter()
        self._lock = threading.Lock()
        self._programs: dict[tuple[int, int], Callable] = {}

    def find(
        self, inputs: dict[str, np.ndarray]
    ) -> tuple[Callable, dict[str, np.ndarray]]:
        """Returns the fastest function for a batch, and its padded inputs."""
        rows, width = inputs[feature_names.INPUT_IDS].shape
        if rows > 1 or width > _WIDTHS[-1]:
            return self._graph, inputs

        sequences = inputs[feature_names.NEXT_SENTENCE_POSITIONS].shape[1]
        shape = (
            _WIDTHS[bisect.bisect_left(_WIDTHS, width)],
            _power_of_two(sequences),
        )
        if shape in self._programs:
            return self._programs[shape], _with_sizes(inputs, 1, *shape)
        with self._lock:  # or two threads would both skip a number
            self._batches[shape] += 1
            is_due = self._batches[shape] == _BATCHES
        if is_due:
            # Also from a daemon: XLA crashes if the process ends meanwhile.
            threading.Thread(
                target=self._compile, args=shape, daemon=False
            ).start()
        return self._graph, inputs

    def _compile(self, width: int, sequences: int) -> None:
        compiled = tf.function(self._graph, jit_compile=True, autograph=False)
        nothing = np.zeros([1, 1], np.int32)
        inputs = dict.fromkeys(_INPUTS, nothing)
        tensors = _tensors(_with_sizes(inputs, 1, width, sequences))
        program = compiled.get_concrete_function(**tensors)
        program(**tensors)  # compiles it
        self._programs[width, sequences] = program


def _tensors(inputs: dict[str, np.ndarray]) -> dict[str, tf.Tensor]:
    return {name: tf.constant(inputs[name]) for name in _INPUTS}


def _padded(
    inputs: dict[str, np.ndarray], replicas: int, is_static: bool
) -> dict[str, np.ndarray]:
    """Adds empty rows and columns, for even parts and for static shapes.

    Args:
        inputs: dict. Inputs of a packed encoder, int32 [R, W] and [R, K].
        replicas: int. The number of rows becomes a multiple of it.
        is_static: bool. Whether to use few shapes, each a compiled program:
            widths and numbers of sequences are powers of two, and the rows of
            a batch have `sequence_packing.MAX_TOKENS` tokens or more.
    """
    rows, width = inputs[feature_names.INPUT_IDS].shape
    sequences = inputs[feature_names.NEXT_SENTENCE_POSITIONS].shape[1]
    multiple = replicas
    if is_static:
        width = max(_LEAST_WIDTH, _power_of_two(width))
        sequences = max(_LEAST_SEQUENCES, _power_of_two(sequences))
        parts = sequence_packing.MAX_TOKENS // width
        multiple *= max(1, -(-parts // replicas))
    return _with_sizes(inputs, rows + -rows % multiple, width, sequences)


def _with_sizes(
    inputs: dict[str, np.ndarray], rows: int, width: int, sequences: int
) -> dict[str, np.ndarray]:
    """Adds zeros to the inputs of a packed encoder, up to these sizes."""
    padded = {}
    for name in _INPUTS:
        is_position = name == feature_names.NEXT_SENTENCE_POSITIONS
        size = (rows, sequences if is_position else width)
        padded[name] = np.zeros(size, np.int32)
        count, columns = inputs[name].shape
        padded[name][:count, :columns] = inputs[name]
    return padded


def _power_of_two(number: int) -> int:
    """Returns the lowest power of two that is at least a number."""
    return 1 << (number - 1).bit_length()
