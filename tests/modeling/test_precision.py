"""Networks in bfloat16 and float16, and the scale of the loss."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert.common import processes
from bert.common.errors import UserError
from bert.modeling import losses, precision
from bert.modeling.networks import build_pretraining_model
from bert.training import distribution
from tests.helpers import small, tiny

AMD, INTEL = "vendor_id\t: AuthenticAMD", "vendor_id\t: GenuineIntel"
ONE = tf.distribute.OneDeviceStrategy("CPU:0")


def test_the_choice_stays_with_the_layers_that_were_made_in_it():
    before = keras.config.dtype_policy().name
    error = pytest.raises(ZeroDivisionError)
    with error, precision.computing_in("bfloat16"):
        inside = keras.layers.Dense(1)
        raise ZeroDivisionError
    outside = keras.layers.Dense(1)
    assert keras.config.dtype_policy().name == before == "float32"
    assert inside.compute_dtype == "bfloat16"
    assert inside.variable_dtype == "float32"
    assert outside.compute_dtype == "float32"


@pytest.mark.parametrize(
    ("line", "chosen"),
    [
        (f"{AMD}\nflags\t\t: sse2 avx512f avx512_bf16 fma", "bfloat16"),
        (f"{INTEL}\nflags\t\t: sse2 amx_bf16 avx512_bf16", "bfloat16"),
        (f"{AMD}\nflags\t\t: sse2 avx512f avx512_bf16x", "float32"),
        # Half the rate of float32: Cooper Lake, or a machine that hides AMX.
        (f"{INTEL}\nflags\t\t: sse2 avx512f avx512_bf16 fma", "float32"),
        # ARM, where TensorFlow does not use the instructions.
        ("Features\t: fp asimd svebf16 i8mm bf16 dgh", "float32"),
    ],
)
def test_auto_asks_the_processor(tmp_path, monkeypatch, capsys, line, chosen):
    path = tmp_path / "cpuinfo"
    path.write_text(f"model name\t: bf16 avx512_bf16\n{line}\n")
    monkeypatch.setattr(processes, "CPU_INFO", str(path))
    assert distribution.choose_precision(ONE, "auto") == chosen
    is_faster = "is" if chosen == "bfloat16" else "is not"
    log = capsys.readouterr().err
    message = f"bfloat16 {is_faster} faster with TensorFlow on this processor"
    assert f"precision {chosen}: {message}\n" in log


@pytest.fixture
def gpus(monkeypatch):
    """Compute capabilities of GPUs: the wiring alone, there is no GPU here."""
    gpus = []
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: gpus)
    monkeypatch.setattr(
        tf.config.experimental,
        "get_device_details",
        lambda gpu: {"compute_capability": gpu},
    )
    return gpus


@pytest.mark.parametrize(
    ("capabilities", "chosen"),
    [([(8, 0)], "bfloat16"), ([(9, 0), (7, 5)], "float32")],
)
def test_auto_asks_the_gpus(gpus, capabilities, chosen):
    gpus += capabilities
    assert distribution.choose_precision(ONE, "auto") == chosen


@pytest.fixture
def tensor_float_32():
    """Reads the setting, which is then as before."""
    setting = tf.config.experimental
    before = setting.tensor_float_32_execution_enabled()
    yield setting.tensor_float_32_execution_enabled
    setting.enable_tensor_float_32_execution(before)


def test_tf32_is_a_decision(gpus, tensor_float_32):
    strategy = distribution.make_strategy()
    for kind in ("float32", "bfloat16", "auto"):
        distribution.choose_precision(strategy, kind)
        assert not tensor_float_32()
    message = "--precision=tf32; expected a GPU of compute capability 8.0"
    for more in ([], [(8, 0), (7, 5)]):
        gpus += more
        with pytest.raises(UserError, match=message):
            distribution.choose_precision(strategy, "tf32")
        assert not tensor_float_32()
    gpus.pop()
    assert distribution.choose_precision(strategy, "tf32") == "tf32"
    assert tensor_float_32()
    with precision.computing_in("tf32"):
        assert keras.layers.Dense(1).compute_dtype == "float32"
    distribution.make_strategy()
    assert not tensor_float_32()


def test_a_tpu_has_bfloat16(monkeypatch):
    monkeypatch.setattr(tf.distribute, "TPUStrategy", type(ONE))
    assert distribution.choose_precision(ONE, "auto") == "bfloat16"


def loss_and_gradients(kind):
    with precision.computing_in(kind):
        model = build_pretraining_model(small.config())
    batch = {n: tf.constant(x) for n, x in small.batch(rows=7).items()}
    with tf.GradientTape() as tape:
        outputs = model({name: batch[name] for name in model.input})
        sums = tiny.sums_of(batch, outputs)
        loss = sum(
            sums[f"{x.name}_loss"] / sums[f"{x.name}_weight"]
            for x in losses.PRETRAINING
        )
    variables = model.trainable_variables
    assert {x.dtype for x in variables} == {"float32"}
    assert {x.dtype for x in outputs.values()} == {tf.float32}
    gradients = tape.gradient(loss, [x.value for x in variables])
    return float(loss), [tf.convert_to_tensor(x).numpy() for x in gradients]


@pytest.mark.slow
def test_losses_and_gradients_are_near_those_of_float32():
    """A number has 8 bits in bfloat16 and 11 in float16."""
    loss, gradients = loss_and_gradients("float32")
    norm = np.sqrt(sum(np.square(x).sum() for x in gradients))
    for kind, bound in (("bfloat16", 0.03), ("float16", 0.004)):
        theirs, others = loss_and_gradients(kind)
        assert theirs == pytest.approx(loss, rel=bound / 3)
        assert theirs != loss
        off = sum(np.square(x - y).sum() for x, y in zip(gradients, others))
        assert np.sqrt(off) < bound * norm


@pytest.mark.parametrize(
    ("kind", "apart"), [("bfloat16", 1e-3), ("float16", 1e-4)]
)
def test_masked_lm_accuracy_compares_in_float32(kind, apart):
    """The label's score is the highest, but not in so few bits."""
    config = small.config()
    with precision.computing_in(kind):
        model = build_pretraining_model(config)
    head = model.get_layer("predictions")
    bias = tf.random.stateless_normal([small.V], [5, 6], stddev=apart)
    head.output_bias.assign(bias)
    table = model.get_layer("bert").get_layer("embeddings").word_embeddings
    rows = np.repeat(table.numpy()[:1], small.V, axis=0)
    noise = np.random.default_rng(7).normal(0, apart, rows.shape)
    table.assign(rows + noise)
    x = tf.random.stateless_normal([7, small.P, small.H], [1, 2])
    found = head(tf.cast(x, kind), table.value)
    hidden = tf.cast(head.layer_norm(head.transform(x)), tf.float32)
    expected = np.einsum("bph,vh->bpv", hidden, table.numpy()) + bias
    rounded = tf.cast(expected, kind).numpy()
    assert (rounded == rounded.max(-1, keepdims=True)).sum() > 3 * 7 * small.P
    sums = losses.weighted_sums(
        found, tf.argmax(expected, -1), tf.ones([7, small.P])
    )
    assert sums["accuracy"] == 7 * small.P


def test_float16_learns_as_float32():
    ends = []
    for kind in ("float32", "float16"):
        made = tiny.make_steps(kind=kind)
        rows = tiny.take(made, *[None] * 11)
        ends.append((rows[:, 0] / rows[:, 2], tiny.tensors(made)))
    np.testing.assert_allclose(ends[0][0], ends[1][0], rtol=0.01)
    for ours, theirs in zip(ends[0][1], ends[1][1], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=0.01)


def test_an_overflow_on_the_last_replica_is_seen():
    """Its loss is finite; its gradient is too large only when scaled up."""
    made = tiny.make_steps(2, kind="float16")
    tiny.take(made, None)
    before = tiny.bits(made)
    rows = tiny.take(made, 300.0)
    *sums, norm, scale = rows[0]
    assert np.isfinite(sums).all()
    assert not np.isfinite(norm)
    assert scale == 2**15
    assert tiny.bits(made) == before
    assert tiny.take(made, None)[0, -1] == 2**14
    assert tiny.bits(made) != before


def test_the_scale_doubles_after_many_good_steps_and_falls_to_one():
    made = tiny.make_steps(kind="float16")
    made.load_state_dict(
        {"bad_steps": 0, "loss_scale": (4.0).hex(), "loss_scale_steps": 1998}
    )
    assert tiny.take(made, None, None, None)[:, -1].tolist() == [4, 4, 8]
    assert made.state_dict() == {
        "bad_steps": 0,
        "loss_scale": (8.0).hex(),
        "loss_scale_steps": 1,
        "skipped": 0,
    }
    scales = tiny.take(made, *[np.nan] * 5)[:, -1]
    assert scales.tolist() == [8, 4, 2, 1, 1]
    assert made.state_dict()["loss_scale_steps"] == 0
