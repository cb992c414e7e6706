"""Every fast way gives the plain way's numbers, dropout included."""

import contextlib
import functools
import os
import re

import numpy as np
import pytest
import tensorflow as tf

from bert.data import feature_names
from bert.data.records import reader
from bert.modeling import (
    dropout,
    fused_ops,
    layers,
    losses,
    networks,
    precision,
    task_heads,
    transformer_block,
)
from bert.modeling.networks import build_pretraining_model
from tests.helpers import small, tiny

FUSED, REMAT = (
    fused_ops.StepOptions(fused=True),
    fused_ops.StepOptions(remat=True),
)
BOTH = fused_ops.StepOptions(fused=True, remat=True)
COMPILED = fused_ops.StepOptions(compiled=True)
ALL_COMPILED = fused_ops.StepOptions(remat=True, compiled=True)
DETERMINISTIC = fused_ops.StepOptions(compiled=True, deterministic=True)
SEED = tf.constant([5, 7])
FUNCTIONS = {
    "attention_probs": (
        transformer_block.attention_probs,
        [(2, 3, 5, 7), (2, 1, 1, 7), None],
        {"rate": 0.3, "scale": 0.5},
    ),
    "add_and_normalize": (
        transformer_block.add_and_normalize,
        [(2, 7, 13), (13,), (2, 7, 13), (13,), (13,), None],
        {"rate": 0.3},
    ),
    "normalize_and_drop": (
        layers.normalize_and_drop,
        [(2, 7, 13), (13,), (13,), None],
        {"rate": 0.3},
    ),
    "activate": (
        transformer_block.activate,
        [(2, 7, 13), (13,)],
        {"name": "gelu"},
    ),
}


def values_and_gradients(function, tensors, settings, options):
    """Output and gradients, computed as in a step."""

    @tf.function(jit_compile=options.compiled)
    def run(*tensors):
        real = [x for x in tensors if x.dtype.is_floating]
        with tf.GradientTape() as tape, fused_ops.inside_step(SEED, options):
            tape.watch(real)
            y = function(*tensors, **settings)
            # So that the gradient is another number everywhere.
            weights = tf.range(tf.size(y, tf.int32)) % 11
            weights = tf.reshape(tf.cast(weights, y.dtype), tf.shape(y))
            loss = tf.reduce_sum(y * weights)
        return [y, *[g for g in tape.gradient(loss, real) if g is not None]]

    return [x.numpy().astype("f4") for x in run(*tensors)]


@pytest.mark.parametrize(
    ("dtype", "atol"), [("float32", 1e-5), ("bfloat16", 0.13)]
)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("options", [FUSED, COMPILED])
def test_a_fused_operation_equals_its_function(options, name, dtype, atol):
    function, shapes, settings = FUNCTIONS[name]
    rng = np.random.default_rng(3)
    tensors = [
        tf.constant([3, 4])
        if shape is None
        else tf.cast(rng.normal(0.5, 1, shape), dtype)
        for shape in shapes
    ]
    plain = values_and_gradients(
        function, tensors, settings, fused_ops.StepOptions()
    )
    fused = values_and_gradients(function, tensors, settings, options)
    assert len(plain) == len(fused) > 1
    for ours, theirs in zip(fused, plain, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=atol, atol=atol)


def test_the_gradient_of_a_compiled_bias_sums_rounded_values_in_float32():
    """In bfloat16 256.5 is 256, and so is 256 + 1."""
    product = tf.zeros([1, 3, 1], tf.bfloat16)

    @fused_ops.elementwise
    def add(x, bias):
        return tf.cast(x, "float32") + bias

    @tf.function(jit_compile=True)
    def gradient(bias):
        with tf.GradientTape() as tape, fused_ops.inside_step(SEED, COMPILED):
            tape.watch(bias)
            y = add(product, bias)
            loss = tf.reduce_sum(y * [[[256.5], [1], [1]]])
        return tape.gradient(loss, bias)

    np.testing.assert_array_equal(gradient(tf.zeros([1])), [258])


def test_the_fused_loss_equals_its_function():
    logits = np.random.default_rng(3).normal(0, 3, (7, 5)).astype("f4")
    logits[0] = 1.5  # of equal scores the first is the highest
    logits[1] = 1.5
    label = np.array([0, 1, 2, 3, 4, 0, 1], "i4")
    label[5] = logits[5].argmax()
    plain, fused = (
        values_and_gradients(
            losses._loss_and_hit,
            [tf.constant(logits), tf.constant(label)],
            {},
            options,
        )
        for options in (fused_ops.StepOptions(), FUSED)
    )
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(label, logits)
    hits = logits.argmax(-1) == label
    assert hits[0] and not hits[1] and hits[5]
    for found in (plain, fused):
        np.testing.assert_allclose(found[0], [loss, hits], atol=1e-5)
    np.testing.assert_allclose(fused[1], plain[1], atol=1e-5)


@pytest.fixture(scope="module")
def model():
    return build_pretraining_model(
        small.config(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.3)
    )


def loss_of(model, options, **compiling):
    """A compiled function: batch -> losses and gradients."""

    @tf.function(**compiling)
    def run(batch):
        with tf.GradientTape() as tape:
            with fused_ops.inside_step(SEED, options):
                inputs = {name: batch[name] for name in model.input}
                outputs = model(inputs, training=True)
                sums = tiny.sums_of(batch, outputs)
            loss = sums["masked_lm_loss"] + sums["next_sentence_loss"]
        gradients = tape.gradient(loss, model.trainable_variables)
        return loss, [tf.convert_to_tensor(g) for g in gradients]

    return run


@pytest.fixture(scope="module")
def step_of(model):
    """Options -> the function of the model, which is traced once."""
    return functools.cache(functools.partial(loss_of, model))


@pytest.fixture(scope="module")
def plain(step_of):
    return step_of(fused_ops.StepOptions())(small.batch())


@pytest.mark.parametrize(
    ("options", "xla"),
    [
        (BOTH, False),
        pytest.param(ALL_COMPILED, True, marks=pytest.mark.long),
        (DETERMINISTIC, True),
    ],
)
def test_all_options_give_the_plain_loss_and_gradients(
    step_of, plain, options, xla
):
    compiling = {"jit_compile": True} if xla else {}
    loss, gradients = step_of(options, **compiling)(small.batch())
    np.testing.assert_allclose(loss, plain[0], rtol=1e-5)
    assert len(gradients) == len(plain[1]) > 30
    for ours, theirs in zip(gradients, plain[1], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "options", "halves", "rounds"),
    [
        ("bfloat16", fused_ops.StepOptions(), 2, False),
        ("bfloat16", COMPILED, 3, True),
        ("bfloat16", FUSED, 2, True),  # the third is in its own program
        ("bfloat16", None, 0, False),
        ("float32", COMPILED, 0, False),
    ],
)
def test_scores_are_float32_and_their_gradients_are_not(
    dtype, options, halves, rounds
):
    rng = np.random.default_rng(3)
    x = tf.cast(rng.normal(0, 1, (7, 5)), dtype)
    table = tf.cast(rng.normal(0, 1, (11, 5)), "float32")
    weights = tf.cast(rng.normal(0, 1, (7, 11)), "float32")

    @tf.function(jit_compile=options == COMPILED)
    def run(x, table):
        with contextlib.ExitStack() as scope, tf.GradientTape() as tape:
            tape.watch([x, table])
            if options:
                scope.enter_context(fused_ops.inside_step(SEED, options))
            scores = fused_ops.vocab_logits(x, table)
            loss = tf.reduce_sum(scores * weights)
        return scores, *tape.gradient(loss, [x, table])

    graph = run.get_concrete_function(x, table).graph
    products = [y for y in graph.get_operations() if "MatMul" in y.type]
    kinds = [y.inputs[0].dtype for y in products]
    assert len(kinds) == (2 if options == FUSED else 3)
    assert kinds.count(tf.bfloat16) == halves
    scores, of_x, of_table = run(x, table)
    exact = tf.cast(x, "float32")
    assert (of_x.dtype, of_table.dtype) == (x.dtype, tf.float32)
    kind = dtype if rounds else "float32"
    factor = tf.cast(tf.cast(table, kind), "float32")
    np.testing.assert_allclose(scores, exact @ tf.transpose(factor), atol=1e-5)
    of_x = tf.cast(of_x, "float32")
    np.testing.assert_allclose(of_x, weights @ table, rtol=0.02, atol=0.02)
    expected = tf.transpose(weights) @ exact
    np.testing.assert_allclose(of_table, expected, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_rows_of_each_id_are_summed(dtype):
    """Ids that occur often, once and never; one of them has NaN."""
    ids = tf.constant([[3, 3, 0, 3, 9], [9, 3, 4, 0, 3], [3, 3, 3, 10, 9]])
    table = tf.cast(tf.random.stateless_normal([11, 7], [1, 2]), dtype)
    weights = tf.cast(tf.random.stateless_normal([3, 5, 7], [3, 4]), dtype)
    weights = tf.tensor_scatter_nd_update(weights, [[1, 2, 6]], [np.nan])

    @tf.function(jit_compile=True)
    def run(table):
        with tf.GradientTape() as tape:
            tape.watch(table)
            with fused_ops.inside_step(SEED, DETERMINISTIC):
                rows = fused_ops.embedding_lookup(table, ids)
            loss = tf.reduce_sum(rows * weights)
        return rows, tape.gradient(loss, table)

    rows, gradient = run(table)
    np.testing.assert_array_equal(rows, tf.gather(table, ids))
    expected = np.zeros((11, 7), "f4")
    np.add.at(expected, ids.numpy(), weights.numpy().astype("f4"))
    assert np.isnan(expected).sum() == 1
    np.testing.assert_allclose(
        gradient.numpy().astype("f4"), expected, rtol=1e-2, atol=1e-5
    )


def test_the_rows_of_an_id_are_summed_in_float32():
    """In bfloat16 256 + 1 is 256."""
    values = tf.constant([[1], [256], [1]], tf.bfloat16)
    sums = fused_ops._segment_sum(values, tf.zeros(3, tf.int32), 2)
    assert sums.dtype == tf.bfloat16
    np.testing.assert_array_equal(tf.cast(sums, "float32"), [[258], [0]])


def test_a_deterministic_step_has_no_scatter():
    """On GPUs one adds up rows in any order, or very slowly."""
    model = build_pretraining_model(
        small.config(num_hidden_layers=1), packed=True
    )
    schema = feature_names.packed_schema(small.S, small.P, 2)
    dataset = reader.training_batches(["none"], 1, schema, 4, 3, 0)
    batch = {
        name: tf.ones(spec.shape, spec.dtype)
        for name, spec in dataset.element_spec.items()
    }

    def program(options):
        step = loss_of(model, options, jit_compile=True)
        return step.experimental_get_compiler_ir(batch)(stage="hlo")

    assert " scatter(" in program(COMPILED)
    assert " scatter(" not in program(DETERMINISTIC)


def test_no_gradient_of_a_compiled_step_is_a_sum_over_the_batch_alone():
    """On GPUs all hidden states would be laid out for it, and transposed."""
    with precision.computing_in("bfloat16"):
        model = build_pretraining_model(small.config(hidden_dropout_prob=0.2))
    step = loss_of(model, COMPILED, jit_compile=True)
    text = step.experimental_get_compiler_ir(small.batch())(stage="hlo")
    pattern = r"= \w+\[(\S*)\]\S* reduce\(.* dimensions=\{(.*?)\}"
    sums = re.findall(pattern, text)
    assert (f"{small.H}", "0,1") in sums  # of biases
    assert not [shape for shape, axes in sums if axes == "0" and "," in shape]


def test_dropout_was_on(model, plain):
    batch = small.batch()
    outputs = model({name: batch[name] for name in model.input})
    sums = tiny.sums_of(batch, outputs)
    loss = sums["masked_lm_loss"] + sums["next_sentence_loss"]
    assert abs(float(loss) - float(plain[0])) > 1e-3


def operations(step):
    graph = step.get_concrete_function(small.batch()).graph
    return graph.get_operations()


def barriers(step):
    return [
        operation.outputs
        for operation in operations(step)
        if operation.type == "XlaOptimizationBarrier"
    ]


def kinds(step):
    return [operation.type for operation in operations(step)]


def test_remat_computes_the_layers_again(step_of):
    count = kinds(step_of(fused_ops.StepOptions())).count("Softmax")
    assert kinds(step_of(REMAT)).count("Softmax") == count + small.L


@pytest.mark.parametrize("options", [COMPILED, ALL_COMPILED])
def test_the_gradients_of_a_compiled_layer_are_complete_together(
    model, step_of, options
):
    """Those of its variables, and that of its input, from one barrier."""
    sizes = [len(outputs) for outputs in barriers(step_of(options))]
    variables = model.get_layer("bert").get_layer("layer_0").trainable_variables
    assert len(variables) == 16
    assert sizes.count(1 + len(variables)) == small.L


def test_the_gradients_of_compiled_matrices_are_kept_in_half_precision():
    """They come from products; those of vectors are sums in float32."""
    with precision.computing_in("bfloat16"):
        model = build_pretraining_model(small.config(num_hidden_layers=1))
    step = loss_of(model, COMPILED)
    (outputs,) = [x for x in barriers(step) if len(x) == 17]
    for x in outputs:
        assert x.dtype == (tf.float32 if x.shape.rank == 1 else tf.bfloat16)


def test_compiled_remat_draws_the_dropout_masks_again(step_of):
    """The seed of a layer's masks is behind the barrier of its input."""
    found = [
        [(x.dtype, x.shape.rank) for x in outputs]
        for outputs in barriers(step_of(ALL_COMPILED))
    ]
    inputs = [(tf.float32, 3), (tf.int32, 1), (tf.float32, 3)]
    assert found.count(inputs) == small.L


def test_without_a_step_there_is_no_fused_operation(step_of):
    """So that an export holds none."""
    assert "PartitionedCall" in kinds(step_of(BOTH))
    assert "PartitionedCall" not in kinds(step_of(fused_ops.StepOptions()))


@pytest.mark.parametrize(
    ("width", "device", "compiled", "fused"),
    [
        (128, "CPU", False, True),
        (127, "CPU", False, False),
        (128, "CPU", True, False),
        (128, "GPU", False, False),
        (128, "TPU", True, False),
    ],
)
def test_fused_operations_are_for_large_networks_on_cpus(
    monkeypatch, width, device, compiled, fused
):
    found = [
        tf.config.LogicalDevice(f"/device:{x}:0", x) for x in ("CPU", device)
    ]
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda: found)
    config = small.config(hidden_size=width, num_attention_heads=1)
    expected = fused_ops.StepOptions(fused, True, compiled, True)
    with fused_ops.step_scope(config, True, compiled, True)(SEED):
        assert fused_ops._options() == expected
        assert dropout.current_seed() is SEED


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", fused_ops.NO_SUMS_OF_WINDOWS),
        ("--a=b", f"--a=b {fused_ops.NO_SUMS_OF_WINDOWS}"),
        ("--xla_disable_hlo_passes=c", "--xla_disable_hlo_passes=c"),
    ],
)
def test_a_fused_step_adds_its_flag_to_those_of_the_user(
    monkeypatch, before, after
):
    monkeypatch.setenv(fused_ops.XLA_FLAGS, before)
    fused_ops.step_scope(
        small.config(hidden_size=127, num_attention_heads=1), False
    )
    assert os.environ[fused_ops.XLA_FLAGS] == before
    fused_ops.step_scope(
        small.config(hidden_size=128, num_attention_heads=1), False
    )
    assert os.environ[fused_ops.XLA_FLAGS] == after


def test_sums_are_not_divided_into_windows():
    norm = tf.function(
        layers.normalize_and_drop, jit_compile=True, autograph=False
    )
    program = norm.experimental_get_compiler_ir(
        tf.ones([64, 512]), tf.ones(512), tf.ones(512), [3, 4], rate=0.1
    )
    assert "reduce-window" not in program("optimized_hlo")


def test_the_scope_ends_with_the_step():
    with fused_ops.inside_step(SEED, BOTH):
        with fused_ops.inside_step(SEED + 1):
            assert fused_ops._options() == fused_ops.StepOptions()
        assert fused_ops._options() == BOTH
    assert fused_ops._options() == fused_ops.StepOptions()
    assert dropout.current_seed() is None


def test_fused_operations_accept_any_length():
    classifier = networks.build(
        small.config(num_hidden_layers=1), task_heads.CLASSIFIER, 2
    )
    spec = {
        name: tf.TensorSpec([None, None], tf.int32) for name in classifier.input
    }

    def scores(options):
        @tf.function(input_signature=[spec])
        def run(inputs):
            with fused_ops.inside_step(SEED, options):
                return classifier(inputs, training=True)["logits"]

        return run

    plain, fused = scores(fused_ops.StepOptions()), scores(FUSED)
    for length in (5, small.S):
        inputs = {
            name: small.batch()[name][:, :length] for name in classifier.input
        }
        np.testing.assert_allclose(fused(inputs), plain(inputs), atol=1e-5)
