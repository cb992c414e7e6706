"""Fused operations and rematerialization; TensorFlow only.

    with inside_step(seed, StepOptions(fused=True)):
        outputs = model(inputs, training=True)

They do not change results, except that `vocab_logits` rounds gradients in half
precision. They are off outside of `inside_step`: in `Model.fit`, evaluation
and exports, and with Keras' other backends.
"""

import contextlib
import dataclasses
import functools
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import keras
from keras import ops

from bert.modeling import dropout
from bert.modeling.config import SMALLEST_HIDDEN_SIZE, BertConfig

if dropout.ON_TENSORFLOW:
    import tensorflow as tf
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops  # no public name

# XLA would divide long sums into windows, which takes longer than a single sum
# with vector instructions. XLA reads the variable when it compiles first.
XLA_FLAGS = "XLA_FLAGS"
NO_SUMS_OF_WINDOWS = "--xla_disable_hlo_passes=tree_reduction_rewriter"


@dataclasses.dataclass(frozen=True)
class StepOptions:
    """Optimizations of a training step.

    Attributes:
        fused: bool. Whether elementwise operations are compiled, see
            `elementwise`.
        remat: bool. Whether layers only keep their input, see `remat_layer`.
        compiled: bool. Whether XLA compiles the whole step, see
            `recompute`.
        deterministic: bool. Whether each run gives the same bits, see
            `embedding_lookup`.
    """

    fused: bool = False
    remat: bool = False
    compiled: bool = False
    deterministic: bool = False


_PLAIN = StepOptions()
_scope = threading.local()


def step_scope(
    config: BertConfig,
    remat: bool,
    compiled: bool = False,
    deterministic: bool = False,
    fused: bool = True,
) -> Callable[["tf.Tensor"], AbstractContextManager[None]]:
    """`inside_step` with the options for the available devices.

    For fused steps it adds a flag to the environment variable XLA_FLAGS.

    Args:
        config: BertConfig. Sizes of the network.
        remat: bool. Whether the backward pass recomputes the layers.
        compiled: bool. Whether XLA compiles the whole step. Default: False.
        deterministic: bool. Whether each run gives the same bits.
            Default: False.
        fused: bool. Whether elementwise operations are fused, if they can be.
            Default: True.

    Returns:
        Function: seed -> context manager in which a step runs.
    """
    fused = fused and can_fuse(config, compiled)
    flags = os.environ.get(XLA_FLAGS, "")
    if fused and NO_SUMS_OF_WINDOWS.partition("=")[0] not in flags:
        os.environ[XLA_FLAGS] = f"{flags} {NO_SUMS_OF_WINDOWS}".strip()
    options = StepOptions(fused, remat, compiled, deterministic)
    return functools.partial(inside_step, options=options)


def can_fuse(config: BertConfig, compiled: bool) -> bool:
    """Whether elementwise operations can be fused: large networks on CPUs.

    Args:
        config, compiled: see `step_scope`.
    """
    kinds = {device.device_type for device in tf.config.list_logical_devices()}
    large = config.hidden_size >= SMALLEST_HIDDEN_SIZE
    return large and kinds == {"CPU"} and not compiled


@contextlib.contextmanager
def inside_step(seed: "tf.Tensor", options: StepOptions = _PLAIN):
    """Context that passes a seed and options to all layers called inside.

    Args:
        seed: int32 [N]. Seed of the dropout masks.
        options: StepOptions. Options of this step. Default: all off.
    """
    with _using(options), dropout.dropout_seed(seed):
        yield


@contextlib.contextmanager
def _using(options: StepOptions):
    outer = _options()
    _scope.options = options
    try:
        yield
    finally:
        _scope.options = outer


def elementwise(function: Callable) -> Callable:
    """Decorator of functions between two matrix products.

        @fused_ops.elementwise
        def activate(product, bias, *, name): ...

    A call `activate(product, bias, name="gelu")` is compiled if the step is
    fused. Matrix products are fastest as single calls of oneDNN, which XLA on
    CPU does not use. The operations between two products are fastest as one XLA
    program, which reads and writes memory once. The backward pass is also one
    program. It recomputes the forward pass, so only the inputs are kept.

    Args:
        function: function. Module-level, without side effects. Its positional
            arguments are tensors: integer ones get no gradient; float32
            vectors belong to the last axis of the first one. Its keywords are
            hashable values; each combination compiles a program.
    """

    @functools.wraps(function)
    def call(*tensors, **settings):
        if _options().compiled:
            return recompute(functools.partial(function, **settings), *tensors)
        if not _options().fused:
            return function(*tensors, **settings)
        return _fused(function, **settings)(*map(tf.convert_to_tensor, tensors))

    return call


def recompute(function: Callable, *tensors):
    """`function(*tensors)`; a compiled step only keeps the inputs for backward.

    XLA would keep activations for the backward pass, often in float32. With
    recomputation, attention stores no [B, A, S, S] tensor, as in
    FlashAttention (Dao et al. 2022, arXiv:2205.14135).

    Args:
        function: function. Has no side effects and no variables.
        *tensors: tensors. Inputs of the function. Integer inputs get no
            gradient.
    """
    if not _options().compiled:
        return function(*tensors)

    def plain(*tensors):  # nested calls do not recompute once more
        with _using(_PLAIN):
            return function(*(_rounded(x, tensors[0]) for x in tensors))

    return _recomputing(plain)(*map(tf.convert_to_tensor, tensors))


def embedding_lookup(table, ids, dtype=None):
    """Embedding lookup: float [V, H], int32 [...] -> dtype [..., H].

    An id below 0 is an error on CPUs, where `ops.take` counts from the end.
    The gradient adds up the rows of each id. On GPUs, XLA's scatter adds them
    in any order. A deterministic scatter adds one row after the other, which
    takes about 0.1 ms per row. So a compiled, deterministic step sorts the
    rows by id, and adds them up without a scatter.

    Args:
        table: float [V, H]. Embeddings.
        ids: int32 [...]. Rows of the table.
        dtype: str or None. Type of the result. Default: None, the table's. An
            uncompiled step converts only the rows that it reads.
    """
    options = _options()
    if not dropout.ON_TENSORFLOW:
        return ops.cast(ops.take(table, ids, axis=0), dtype or table.dtype)
    table = ops.convert_to_tensor(table)
    if not options.compiled:
        return ops.cast(tf.gather(table, ids), dtype or table.dtype)

    table = ops.cast(table, dtype or table.dtype)
    if not options.deterministic:
        return tf.gather(table, ids)

    @tf.custom_gradient
    def take(table):
        def gradient(upstream):
            return _segment_sum(upstream, ids, table.shape[0])

        return tf.gather(table, ids), gradient

    return take(table)


def broadcast_add(x, y):
    """Broadcast addition: float [B, ...] and [...] -> float [B, ...].

    In a compiled step the gradient of y is a matrix product. For a sum over B,
    XLA's compiler for GPUs would lay out all hidden states with that axis last,
    and transpose them before each product.
    """
    return x + (_repeated(y, x) if _options().compiled else y)


def vocab_logits(x, table):
    """x T^T in float32: float [N, H], float32 [V, H] -> float32 [N, V].

    In a half-precision step the gradients are computed in the precision of x,
    as in all other products. They take two thirds of the time. If the step is
    compiled or fused, the forward product also has half-precision inputs and
    float32 sums, which only XLA's products have.
    """
    dtype = keras.backend.standardize_dtype(x.dtype)
    if dtype == "float32" or dropout.current_seed() is None:
        return _full_product(x, table)
    options = _options()
    sums = {"output_type": tf.float32} if options.compiled else {}

    @tf.custom_gradient
    def run(x, table):
        half = tf.cast(table, x.dtype)

        def gradient(upstream):
            upstream = tf.cast(upstream, x.dtype)
            of_x = tf.matmul(upstream, half)
            of_table = tf.matmul(upstream, x, transpose_a=True, **sums)
            return of_x, tf.cast(of_table, table.dtype)

        if options.compiled:
            return _half_product(x, half), gradient
        if options.fused:
            return _compiled(_half_product)(x, half), gradient
        return _full_product(x, table), gradient

    return run(x, ops.convert_to_tensor(table))


def _full_product(x, table):
    """x T^T with float32 inputs."""
    return ops.matmul(ops.cast(x, "float32"), ops.transpose(table))


def _half_product(x, table):
    """x T^T with half-precision inputs and float32 sums."""
    return tf.matmul(x, table, transpose_b=True, output_type=tf.float32)


@functools.cache
def _compiled(function: Callable) -> Callable:
    """Compiles a function as one program."""
    return tf.function(function, jit_compile=True, autograph=False)


def remat_layer(function: Callable, x):
    """Applies `function(x)`, a layer with variables.

    With remat, only x is kept for the backward pass, which recomputes the rest
    with the same dropout masks (Chen et al. 2016, arXiv:1604.06174).
    """
    options, seed = _options(), dropout.current_seed()

    def again(x, seed=seed):
        # The backward pass runs outside of the step's scope.
        with inside_step(seed, options):
            return function(x)

    if options.compiled:
        run = _recomputing(again) if options.remat else again
        return _in_order(run)(x, seed)
    return (tf.recompute_grad(again) if options.remat else function)(x)


def _options() -> StepOptions:
    return getattr(_scope, "options", _PLAIN)


def _recomputing(function: Callable) -> Callable:
    """Wraps a function so that its gradient recomputes it, behind a barrier.

    With `tf.recompute_grad`, XLA would merge the recomputation with the forward
    pass.
    """

    @tf.custom_gradient
    def run(*tensors):
        def gradient(upstream, variables=()):
            *held, upstream = gen_xla_ops.xla_optimization_barrier(
                input=[*tensors, upstream]
            )
            real = [x for x in held if x.dtype.is_floating]
            with tf.GradientTape() as tape:
                tape.watch(real)
                again = function(*held)
            found = tape.gradient(again, [*real, *variables], upstream)
            inputs = iter(found[: len(real)])
            inputs = [
                next(inputs) if x.dtype.is_floating else None for x in tensors
            ]
            return (inputs, found[len(real) :]) if variables else inputs

        return function(*tensors), gradient

    return run


def _rounded(x, like):
    """x; in half precision, a vector in the shape of `like`, float [..., H].

    The vector's gradient sums the already-rounded half-precision gradient of
    `like`. Otherwise XLA would also write that gradient in float32.
    """
    if x.shape.rank != 1 or not x.dtype.is_floating or like.dtype == tf.float32:
        return x

    @tf.custom_gradient
    def spread(x):
        def gradient(upstream):
            (rows,) = gen_xla_ops.xla_optimization_barrier(
                input=[tf.cast(upstream, like.dtype)]
            )
            axes = list(range(like.shape.rank - 1))
            sums = tf.reduce_sum(tf.cast(rows, tf.float32), axes)
            return tf.cast(sums, x.dtype)

        return tf.broadcast_to(x, tf.shape(like)), gradient

    return spread(x)


def _in_order(function: Callable) -> Callable:
    """Wraps a function so that its gradients complete before the layer below.

    Compilers for several devices would compute the gradients of all variables
    last, just before they are summed, and keep all their inputs until then. The
    seed is an argument so that rematerialization puts it behind its barrier.
    Dropout masks depend on nothing else, so XLA would keep them otherwise.
    """

    @tf.custom_gradient
    def run(x, seed):
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs = function(x, seed)

        def gradient(upstream, variables):
            found = tape.gradient(outputs, [x, *variables], upstream)
            # Gradients of matrices are products in the type of x. They stay in
            # it, and are cast where they are used.
            found = [
                tf.cast(y, x.dtype) if y.shape.rank > 1 else y for y in found
            ]
            below, *found = gen_xla_ops.xla_optimization_barrier(input=found)
            found = [tf.cast(y, v.dtype) for y, v in zip(found, variables)]
            return (below, None), found

        return outputs, gradient

    return run


def _segment_sum(values, ids, count: int):
    """Sums of the values of each id: float [..., H] -> float [count, H]."""
    ids = tf.reshape(ids, [-1])
    size = ids.shape[0]

    # Sorted by id, each row is replaced by the sum of its id's rows up to it.
    order = tf.argsort(ids, stable=True)
    ids = tf.gather(ids, order)
    values = tf.reshape(values, [size, -1])
    sums = tf.cast(tf.gather(values, order), "float32")

    distance = 1
    while distance < size:  # a sum has up to 2 x distance values after it
        same = (ids[distance:] == ids[:-distance])[:, None]
        more = sums[distance:] + tf.where(same, sums[:-distance], 0.0)
        sums = tf.concat([sums[:distance], more], 0)
        distance *= 2

    # The last row of an id has the whole sum; some ids have no row.
    rows = tf.range(count)
    last = tf.maximum(tf.searchsorted(ids, rows, side="right") - 1, 0)
    found = tf.gather(ids, last) == rows
    sums = tf.where(found[:, None], tf.gather(sums, last), 0.0)

    return tf.cast(sums, values.dtype)


@functools.cache
def _fused(function: Callable, **settings) -> Callable:
    """Compiles a function and its gradient as two programs."""

    def run(*tensors):
        return function(*tensors, **settings)

    forward = _compiled(run)

    def spread(x, like):
        # On CPUs, XLA's own sum over positions takes up to twice as long as
        # the rest of a layer norm's gradient. For vectors in half precision
        # (the bias of an activation) it is as fast.
        vector = x.shape.rank == 1 and x.dtype == tf.float32
        return _repeated(x, like) if vector else x

    @tf.function(jit_compile=True, autograph=False)
    def backward(tensors, upstream):
        real = [x for x in tensors if x.dtype.is_floating]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(real)
            outputs = run(*(spread(x, tensors[0]) for x in tensors))
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


def _repeated(x, like):
    """Broadcasts x to the shape of `like`: float [...] -> float [N, ...].

    Its gradient is a matrix product with two rows of ones. For a single row XLA
    would not call a library.
    """

    @tf.custom_gradient
    def repeated(x):
        def gradient(upstream):
            rows = tf.reshape(upstream, [-1, tf.size(x)])
            ones = tf.ones([2, tf.shape(rows)[0]], rows.dtype)
            return tf.reshape(tf.matmul(ones, rows)[0], tf.shape(x))

        return tf.broadcast_to(x, tf.shape(like)), gradient

    return repeated(x)
