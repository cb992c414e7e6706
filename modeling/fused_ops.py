"""What makes a training step fast, or small: TensorFlow only.

    with training_step(seed, Ways(fused=True)):
        outputs = model(inputs, training=True)

No number changes by it. It is off where no step asks for it: under `Model.fit`,
in evaluation, and in what is exported.
"""

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable

import tensorflow as tf

from modeling import dropout
from modeling.config import BertConfig

# Below, compiling takes longer than a short run can win.
SMALLEST_HIDDEN_SIZE = 128


@dataclasses.dataclass(frozen=True)
class Ways:
    """How a training step computes what it computes.

    Attributes:
        fused: elementwise operations are compiled, see `elementwise`.
        remat: a layer keeps its input alone, see `recomputed`.
    """

    fused: bool = False
    remat: bool = False


_PLAIN = Ways()
_scope = threading.local()


def step_scope(config: BertConfig, fused: bool, remat: bool) -> Callable:
    """`training_step` of a run, for the devices that are there.

    Args:
        config: sizes of the network.
        fused: whether elementwise operations are fused where that is of
            use: on CPUs.
            On GPUs and TPUs the whole step is one program (--use_xla).
        remat: whether layers are computed again.

    Returns:
        seed -> the context in which a step runs.
    """
    accelerators = [
        device
        for device in tf.config.list_logical_devices()
        if device.device_type != "CPU"
    ]
    large = config.hidden_size >= SMALLEST_HIDDEN_SIZE
    ways = Ways(fused and large and not accelerators, remat)
    return functools.partial(training_step, ways=ways)


@contextlib.contextmanager
def training_step(seed: tf.Tensor, ways: Ways = _PLAIN):
    """Hands a seed to dropout, and the ways to all layers called inside.

    Args:
        seed: int32 [2].
        ways: of this step.
    """
    outer = _ways()
    _scope.ways = ways
    try:
        with dropout.dropout_seed(seed):
            yield
    finally:
        _scope.ways = outer


def elementwise(function: Callable, *tensors, **settings) -> tf.Tensor:
    """`function(*tensors, **settings)`, compiled if the step is fused.

    Matrix products are fastest in oneDNN, one by one, which XLA on CPU does
    not call; everything between two of them is fastest as one XLA program,
    which reads and writes memory once. The backward pass is one program
    too and computes the forward pass again: only the inputs are kept.

    Args:
        function: of a module; makes a tensor with operations alone.
        tensors: its inputs; those of integers get no gradient.
        settings: hashable; a program is compiled for each.
    """
    if not _ways().fused:
        return function(*tensors, **settings)
    return _fused(function, **settings)(*map(tf.convert_to_tensor, tensors))


def recomputed(function: Callable, x: tf.Tensor) -> tf.Tensor:
    """`function(x)`; with remat, nothing of it is kept but x.

    The backward pass computes it again, with the same dropout (Chen et al.
    2016, arXiv:1604.06174).
    """
    ways, seed = _ways(), dropout.current_seed()
    if not ways.remat:
        return function(x)

    def again(x):
        # The backward pass runs when the step's own scope is left.
        with training_step(seed, ways):
            return function(x)

    return tf.recompute_grad(again)(x)


def _ways() -> Ways:
    return getattr(_scope, "ways", _PLAIN)


@functools.cache
def _fused(function: Callable, **settings) -> Callable:
    """The function and its gradient as two compiled programs."""

    def run(*tensors):
        return function(*tensors, **settings)

    forward = tf.function(run, jit_compile=True, autograph=False)

    @tf.function(jit_compile=True, autograph=False)
    def backward(tensors, upstream):
        real = [x for x in tensors if x.dtype.is_floating]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(real)
            outputs = run(*tensors)
        return tape.gradient(outputs, real, upstream)

    @tf.custom_gradient
    def fused(*tensors):
        def gradient(upstream):
            found = iter(backward(tensors, upstream))
            return [
                next(found) if x.dtype.is_floating else None for x in tensors
            ]

        return forward(*tensors), gradient

    return fused
