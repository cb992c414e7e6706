"""Requirements of a TPU on a step, tested with XLA on this machine.

A TPU compiles the whole step: every size is known, numbers have 32 bits or
fewer, and nothing is left to the host. What is compiled here are batches as
the pipelines give them, in the scope of a run on an accelerator, as one
replica of several. No TPU ran here.
"""

import functools
import re

import keras
import pytest
import tensorflow as tf

from bert.data import batching, bucketing, feature_names
from bert.data.labels import Labels
from bert.data.records import reader
from bert.data.records.encoding import Feature
from bert.data.records.examples import Examples
from bert.modeling import fused_ops, losses, networks, task_heads, task_losses
from bert.tasks.classification.task import TextClassification
from bert.tasks.ner import windows as ner_windows
from bert.tasks.squad import windows
from bert.training import optimization, train_step
from tests.helpers import small, tiny

pytestmark = pytest.mark.slow
ROWS, REPLICAS, CHOICES = 16, 8, 3
CONFIG = small.config(
    num_hidden_layers=1,
    hidden_dropout_prob=0.1,
    attention_probs_dropout_prob=0.1,
)


class Replica:
    """One replica of several that run the same program.

    It stands in for the context of TPUStrategy: other replicas' sums are
    equal, and a number that only the running program knows tells them apart.
    """

    num_replicas_in_sync = REPLICAS

    def __init__(self, number):
        self.replica_id_in_sync_group = number

    def all_reduce(self, operation, tensors):
        assert operation == tf.distribute.ReduceOp.SUM
        return tf.nest.map_structure(lambda x: x * REPLICAS, tensors)


def pretraining(packed, remat=False):
    """The objective of run_pretraining and its batches."""
    model = networks.build_pretraining_model(CONFIG, packed=packed)
    schema = feature_names.pretraining_schema(small.S, small.P)
    if packed:
        schema = feature_names.packed_schema(small.S, small.P, 2)
    objective = tiny.objective_of(
        losses.OBJECTIVES,
        losses.pretraining_weights,
        losses.pretraining_sums,
    )
    scope = fused_ops.step_scope(CONFIG, remat, compiled=True)
    return (
        model,
        objective,
        scope,
        reader.training_batches(["none"], 1, schema, ROWS, 3, 0),
    )


def labelled(kind, names=("a", "b", "c", "d", "e")):
    """The schema of classification."""
    labels = Labels(kind, names)
    return TextClassification(None, labels, small.S).schema


SWAG = {
    feature_names.LABEL_IDS: Feature(),
    feature_names.CHOICE_WEIGHTS: Feature("float32", size=CHOICES),
}
# Schema, network, loss, weights and sums of each fine-tuning task.
FINE_TUNING = {
    "classes": (
        labelled("classes"),
        lambda: networks.build(CONFIG, task_heads.CLASSIFIER, 5),
        task_losses.LABELS,
        task_losses.label_weights,
        task_losses.class_sums,
    ),
    "multi_label": (
        labelled("multi_label"),
        lambda: networks.build(CONFIG, task_heads.CLASSIFIER, 5),
        task_losses.LABELS,
        task_losses.label_weights,
        task_losses.multi_label_sums,
    ),
    "regression": (
        labelled("regression", ()),
        lambda: networks.build(CONFIG, task_heads.CLASSIFIER, 1),
        task_losses.LABELS,
        task_losses.label_weights,
        task_losses.number_sums,
    ),
    "squad": (
        windows.TRAINING_SCHEMA,
        lambda: networks.build(CONFIG, task_heads.SPANS, 2),
        task_losses.SPAN,
        task_losses.span_weights,
        task_losses.span_sums,
    ),
    "ner": (
        ner_windows.TRAINING_SCHEMA,
        lambda: networks.build(CONFIG, task_heads.TOKENS, 5),
        task_losses.TOKEN,
        task_losses.token_weights,
        task_losses.token_sums,
    ),
    "swag": (
        SWAG,
        lambda: networks.build(CONFIG, task_heads.CHOICES, 1),
        task_losses.CHOICE,
        task_losses.choice_weights,
        task_losses.choice_sums,
    ),
}


def fine_tuning_batches(name, lengths, sizes=(1,) * ROWS):
    """The pipeline of a fine-tuning task."""
    schema = FINE_TUNING[name][0]
    choices = CHOICES if name == "swag" else 1

    def example(length):
        ids = [1] * length
        row = {
            key: ids if feature.sequence else [1] * feature.size
            for key, feature in schema.items()
        }
        return row | {
            key: ids if choices == 1 else [ids] * choices
            for key in ("input_ids", "segment_ids")
        }

    rows = Examples(map(example, sizes), schema, choices)
    return batching.training_batches(rows, lengths, ROWS, 3, 0)


def fine_tuning(name):
    """The objective of a fine-tuning task and its batches."""
    _, build, loss, weights, of_batch = FINE_TUNING[name]
    sums = ("loss",) if name == "regression" else ("loss", "accuracy")
    objective = tiny.objective_of((loss,), weights, of_batch, sums=sums)
    scope = fused_ops.step_scope(CONFIG, False, compiled=True)
    return build(), objective, scope, fine_tuning_batches(name, [small.S])


CASES = {
    "padded": lambda: pretraining(False),
    "packed": lambda: pretraining(True),
    "remat": lambda: pretraining(False, remat=True),
    **{name: functools.partial(fine_tuning, name) for name in FINE_TUNING},
}


@pytest.fixture
def whole_step(monkeypatch):
    """Makes a step: forward, backward, dropout, clipping and update."""

    def make(name, accumulation_steps=1):
        model, objective, scope, dataset = CASES[name]()
        rate = optimization.WarmupLinearDecay(0.01, 7, 2)
        optimizer = optimization.AdamWeightDecay(rate)
        optimizer.build(model.trainable_variables)
        taken = train_step.TrainStep(
            model,
            objective,
            optimizer,
            tf.distribute.get_strategy(),
            3,
            scope,
            losses.batch_tokens,
            accumulation_steps=accumulation_steps,
        )

        @tf.function(jit_compile=True)
        def step(batch, replica):
            with monkeypatch.context() as patch:
                patch.setattr(
                    tf.distribute,
                    "get_replica_context",
                    lambda: Replica(replica),
                )
                row = taken._replica_step(batch)
            optimizer.iterations.assign_add(1)
            return row

        batch = {
            name: tf.ones(spec.shape, spec.dtype)
            for name, spec in dataset.element_spec.items()
        }
        return step, batch, optimizer

    return make


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
        pytest.param("padded", "mixed_bfloat16", marks=pytest.mark.long),
        ("packed", "mixed_bfloat16"),
        pytest.param("remat", "float32", marks=pytest.mark.long),
        pytest.param("classes", "float32", marks=pytest.mark.long),
        *[
            pytest.param(name, "mixed_bfloat16", marks=pytest.mark.long)
            for name in FINE_TUNING
        ],
    ],
)
def test_the_whole_step_is_one_static_program(
    use_policy, whole_step, name, policy
):
    use_policy(policy)
    step, batch, _ = whole_step(name)
    ir = step.experimental_get_compiler_ir(batch, tf.constant(1))
    text = ir(stage="hlo")
    assert_static(text)
    assert ("bf16[" in text) == (policy == "mixed_bfloat16")
    # All numbers of a batch have 32 bits: their sizes are inputs as they are.
    entry = re.search(r"entry_computation_layout=\{\((.*?)\)->", text)[1]
    for values in batch.values():
        kind = "s32" if values.dtype == tf.int32 else "f32"
        assert f"{kind}[{','.join(map(str, values.shape))}]" in entry


@pytest.mark.parametrize("name", FINE_TUNING)
def test_batches_of_each_task_are_static(name):
    """With several lengths each batch has one of those that are compiled."""
    spec = fine_tuning_batches(name, [small.S]).element_spec
    assert all(x.shape.is_fully_defined() for x in spec.values())
    assert feature_names.INPUT_IDS in spec
    lengths = bucketing.xla_lengths(bucketing.bucket_lengths(128))
    assert lengths == [32, 64, 128]
    sizes = [7, 31, 33, 64, 65, 127, 128] * ROWS
    batches = fine_tuning_batches(name, lengths, sizes)
    axis = 2 if name == "swag" else 1
    found = set()
    for batch in batches.take(len(sizes) // ROWS):
        found.add(batch[feature_names.INPUT_IDS].shape[axis])
        assert {len(x) for x in batch.values()} == {ROWS}
    assert found == set(lengths)
