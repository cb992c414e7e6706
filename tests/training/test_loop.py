"""The loop on a small BERT: devices, grouping and resuming change nothing."""

import itertools
import threading

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import config

from bert.common.errors import UserError
from bert.modeling import checkpoints
from bert.modeling.networks import build_pretraining_model
from bert.training import training_loop
from tests.helpers import model_files, small, tiny
from tests.helpers.numpy_bert import NumpyAdam
from tests.helpers.training_loop import (
    STEPS,
    batches,
    make_run,
    make_steps,
    phase,
    train,
)

pytestmark = pytest.mark.slow


def plain_loss(model, batch):
    """The sum of both means, written without the project's losses."""
    outputs = model({name: batch[name] for name in model.input})
    log_probs = tf.nn.log_softmax(outputs["masked_lm_logits"])
    picked = tf.gather(log_probs, batch["masked_lm_ids"], batch_dims=2)
    weights = batch["masked_lm_weights"]
    masked_lm = -tf.reduce_sum(picked * weights) / tf.reduce_sum(weights)
    log_probs = tf.nn.log_softmax(outputs["next_sentence_logits"])
    labels = batch["next_sentence_labels"][:, 0]
    return masked_lm - tf.reduce_mean(
        tf.gather(log_probs, labels, batch_dims=1)
    )


def test_seven_steps_equal_numpy(tmp_path):
    """The whole step: loss, clipping, schedule and update."""
    made = make_steps()
    first = model_files.values_of(made.model)
    lines = train(made, tmp_path)
    reference = NumpyAdam({n: v.astype("f8") for n, v in first.items()})
    model = build_pretraining_model(small.config(num_hidden_layers=1))
    theirs = checkpoints.model_variables(model)
    for step, batch in enumerate(batches().take(STEPS)):
        for name, variable in theirs.items():
            variable.assign(reference.values[name])
        with tf.GradientTape() as tape:
            loss = plain_loss(model, batch)
        assert lines[step]["loss"] == pytest.approx(float(loss), abs=1e-4)
        gradients = tape.gradient(loss, [v.value for v in theirs.values()])
        gradients = [tf.convert_to_tensor(g).numpy() for g in gradients]
        rate = 0.01 * (step / 2 if step < 2 else 1 - step / STEPS)
        reference.step(dict(zip(theirs, gradients, strict=True)), rate)
    for name, value in model_files.values_of(made.model).items():
        np.testing.assert_allclose(
            value, reference.values[name], atol=1e-5, err_msg=name
        )


def test_grouping_changes_no_bit(tmp_path):
    """Neither of the weights nor of the reports."""
    made = make_steps(drop=0.1)
    state = [*made.model.variables, *made.optimizer.variables]
    first, ends, reports = [x.numpy() for x in state], [], []
    for size in (1, 3, 100):
        for variable, value in zip(state, first, strict=True):
            variable.assign(value)
        folder = tmp_path / str(size)
        folder.mkdir()
        lines = train(made, folder, log_steps=STEPS, iterations_per_loop=size)
        reports.append(lines[0]["loss"].hex())
        ends.append([x.numpy().tobytes() for x in state])
    assert len(set(reports)) == 1
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.parametrize(
    ("last", "step", "named", "stop"),
    [
        (7, 3, {}, 4),  # a fiftieth of the run, but a step
        (120, 3, {}, 4),
        (9000, 250, {}, 300),  # at most 100
        (9000, 251, {"log_steps": 7}, 252),
        (9000, 7, {"log_steps": 7}, 14),
        (9000, 7, {"save_checkpoints_steps": 9}, 9),
        (9000, 7, {"eval_steps": 5}, 10),
        (9, 7, {"log_steps": 5}, 9),
    ],
)
def test_a_call_stops_at_the_next_multiple_of_an_interval(
    last, step, named, stop
):
    run = make_run(tiny.make_steps(), "", **{"log_steps": None, **named})
    run.train_step.optimizer.iterations.assign(step)
    plan = [phase(batches, last)]
    stops = training_loop._stops(run, plan, run.settings.eval_steps)
    assert next(stops)[2] == stop


def test_the_slowest_worker_decides_on_the_steps_of_a_call(monkeypatch):
    run = make_run(tiny.make_steps(), "", iterations_per_loop=5)
    monkeypatch.setattr(run.log, "steps_per_call", lambda *_: 5)
    monkeypatch.setattr(
        training_loop.collectives,
        "gather",
        lambda _, own: np.array([[own], [2.0]]),
    )
    data = tf.data.Dataset.from_tensors(tiny.batch(1)).repeat()
    training_loop._take_steps(run, iter(data), phase(batches), 7)
    assert run.step == 2


@pytest.mark.parametrize(
    "replicas", [1, pytest.param(2, marks=pytest.mark.long)]
)
def test_remat_repeats_the_dropout_masks(replicas):
    """On each replica, in each part: the masks are those of the forward."""
    found = []
    for remat in (False, True):
        made = make_steps(replicas, False, "float16", remat, 2, drop=0.3)
        rows = made.train(iter(batches()), tf.constant(2)).numpy()
        found.append([rows, *tiny.tensors(made)])
    for plain, again in zip(*found, strict=True):
        np.testing.assert_allclose(again, plain, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("replicas", "use_xla"), [(2, False), (1, True)])
def test_evaluation_counts_every_row_once(replicas, use_xla):
    made = make_steps(replicas, use_xla)
    rows = [
        {name: values.copy() for name, values in batch.items()}
        for batch in itertools.islice(batches().as_numpy_iterator(), 3)
    ]
    rows[-1]["is_real_example"][1:] = 0
    rows[-1]["masked_lm_weights"][1:] = 0
    result = make_run(made, "none").evaluate(
        [{n: tf.constant(x) for n, x in row.items()} for row in rows]
    )
    merged = {
        name: tf.constant(
            np.concatenate([rows[0][name], rows[1][name], rows[2][name][:1]])
        )
        for name in rows[0]
    }
    model = made.model
    outputs = model({name: merged[name] for name in model.input})
    sums = tiny.sums_of(merged, outputs)
    expected = {
        f"{name}_{what}": float(sums[f"{name}_{what}"] / sums[f"{name}_weight"])
        for name in ("masked_lm", "next_sentence")
        for what in ("loss", "accuracy")
    }
    both = expected["masked_lm_loss"] + expected["next_sentence_loss"]
    assert result == pytest.approx({"loss": both, **expected}, abs=1e-5)


def test_batches_are_made_ahead_under_determinism():
    """TensorFlow itself would make a batch when it is asked for."""
    fourth = threading.Event()

    def make(number):
        if number == 3:
            fourth.set()
        return number

    numbers = tf.data.Dataset.range(5).map(
        lambda number: tf.numpy_function(make, [number], number.dtype)
    )
    tf.config.experimental.enable_op_determinism()
    iterator = training_loop._iterate(numbers.prefetch(3))
    assert config.is_op_determinism_enabled()
    assert next(iterator) == 0
    assert fourth.wait(60)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Determinism is not yet supported for Product\nin node", UserError),
        ("no memory", tf.errors.UnimplementedError),
    ],
)
def test_what_is_not_deterministic_ends_the_run(
    tmp_path, monkeypatch, message, expected
):
    made = tiny.make_steps()

    def fail(*_):
        raise tf.errors.UnimplementedError(None, None, message)

    monkeypatch.setattr(made, "train", fail)
    with pytest.raises(expected) as caught:
        train(made, tmp_path)
    if expected is UserError:
        assert str(caught.value) == (
            "no deterministic operation: Determinism is not yet supported for "
            "Product; pass --nodeterministic"
        )
