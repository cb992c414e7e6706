"""What a TPU needs of a step, held with XLA on this machine.

A TPU compiles the whole step: every size is known, numbers have 32 bits or
fewer, and nothing is left to the host. No TPU ran here.
"""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from data import features
from modeling import dropout, losses, models, pretraining_losses, task_models
from tests import small
from training import optimization, steps

pytestmark = pytest.mark.slow
ROWS, CLASSES = 2, 5
CONFIG = small.config(num_hidden_layers=1, hidden_dropout_prob=0.1)


def packed_batch():
    """Two instances in each row."""
    schema = features.packed_schema(small.S, small.P, 2)
    batch = {
        name: np.ones((ROWS, length), "i4" if kind == "int64" else "f4")
        for name, (kind, length) in schema.items()
    }
    batch[features.SEQUENCE_IDS][:, 5:] = 2
    batch[features.IS_REAL_EXAMPLE] = np.ones(ROWS, "f4")
    return batch


def pretraining(packed):
    return steps.Task(
        models.build_pretraining_model(CONFIG, packed=packed),
        pretraining_losses.OBJECTIVES,
        pretraining_losses.pretraining_weights,
        pretraining_losses.pretraining_sums,
        dropout.dropout_seed,
    )


def classification():
    return steps.Task(
        task_models.build_classifier(CONFIG, CLASSES),
        (losses.LABELS,),
        losses.label_weights,
        losses.class_sums,
        dropout.dropout_seed,
    )


def labelled_batch():
    batch = small.batch(3, ROWS)
    batch[features.LABEL_IDS] = np.ones((ROWS, 1), "i4")
    return batch


CASES = {
    "padded": (lambda: pretraining(False), lambda: small.batch(3, ROWS)),
    "packed": (lambda: pretraining(True), packed_batch),
    "classes": (classification, labelled_batch),
}


def whole_step(make_task, batch, accumulation_steps=1):
    """Forward, backward, dropout, clipping and update, as one program."""
    task = make_task()
    rate = optimization.WarmupLinearDecay(0.01, 7, 2)
    optimizer = optimization.AdamWeightDecay(rate)
    optimizer.build(task.model.trainable_variables)
    taken = steps.Steps(
        task,
        optimizer,
        tf.distribute.get_strategy(),
        seed=3,
        accumulation_steps=accumulation_steps,
    )

    @tf.function(jit_compile=True)
    def step(batch):
        row = taken._replica_step(batch)
        optimizer.iterations.assign_add(1)
        return row

    batch = {name: tf.constant(values) for name, values in batch.items()}
    return step, batch, optimizer


@pytest.fixture
def use_policy():
    """Sets the precision of the layers that are built; undone afterwards."""
    before = keras.config.dtype_policy()
    yield keras.config.set_dtype_policy
    keras.config.set_dtype_policy(before)


def assert_static(text):
    """Sizes are known, numbers small, and the host is not asked."""
    for unwanted in (
        "<=",  # a size that is known only when it runs
        "custom-call",
        "f64[",
        "infeed",
        "outfeed",
        "send(",
        "recv(",
    ):
        assert unwanted not in text, unwanted


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        pytest.param("padded", "float32", marks=pytest.mark.long),
        pytest.param("padded", "mixed_bfloat16", marks=pytest.mark.long),
        pytest.param("packed", "float32", marks=pytest.mark.long),
        ("packed", "mixed_bfloat16"),
        ("classes", "float32"),
        pytest.param("classes", "mixed_bfloat16", marks=pytest.mark.long),
    ],
)
def test_the_whole_step_is_one_static_program(use_policy, name, policy):
    use_policy(policy)
    make_task, make_batch = CASES[name]
    step, batch, _ = whole_step(make_task, make_batch())
    text = step.experimental_get_compiler_ir(batch)(stage="hlo")
    assert_static(text)
    assert ("bf16[" in text) == (policy == "mixed_bfloat16")
    # All numbers of a batch have 32 bits: their sizes are inputs as they are.
    entry = re.search(r"entry_computation_layout=\{\((.*?)\)->", text)[1]
    for values in batch.values():
        kind = "s32" if values.dtype == tf.int32 else "f32"
        assert f"{kind}[{','.join(map(str, values.shape))}]" in entry


@pytest.mark.parametrize(
    ("name", "accumulation_steps"),
    [
        pytest.param(name, steps, marks=pytest.mark.long)
        if (name, steps) != ("classes", 2)
        else (name, steps)
        for name in CASES
        for steps in (1, 2)
    ],
)
def test_the_whole_step_compiles_and_runs(name, accumulation_steps):
    make_task, make_batch = CASES[name]
    step, batch, optimizer = whole_step(
        make_task, make_batch(), accumulation_steps
    )
    assert_static(step.experimental_get_compiler_ir(batch)(stage="hlo"))
    row = step(batch)
    assert np.isfinite(row.numpy()).all()
    assert optimizer.step == 1
