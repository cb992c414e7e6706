"""Requirements of a TPU on a step, tested with XLA on this machine.

A TPU compiles the whole step: every size is known, numbers have 32 bits or
fewer, and nothing is left to the host. What is compiled here are batches as
the pipelines give them, in the scope of a run on an accelerator, as one
replica of several. No TPU ran here.
"""

import re

import pytest
import tensorflow as tf

from bert.data import batching, bucketing, feature_names
from bert.data.labels import KINDS, REGRESSION, Labels
from bert.data.records import reader
from bert.data.records.examples import Examples
from bert.data.text.tokenizer import Tokenizer
from bert.modeling import fused_ops, losses, networks, precision
from bert.runs import objectives
from bert.tasks.classification.settings import Settings as ClassifierSettings
from bert.tasks.classification.task import TextClassification
from bert.tasks.ner.task import TokenClassification
from bert.tasks.squad.settings import Settings
from bert.tasks.squad.task import QuestionAnswering
from bert.tasks.swag.task import MultipleChoice
from bert.training import optimization, train_step
from tests.helpers import small, text, tiny

pytestmark = pytest.mark.slow
ROWS, REPLICAS = 16, 8
CONFIG = small.config(
    num_hidden_layers=1,
    hidden_dropout_prob=0.1,
    attention_probs_dropout_prob=0.1,
)
SETTINGS = ClassifierSettings(random_seed=3, label_smoothing=0.1)
RATE = optimization.WarmupLinearDecay(0.01, 7, 2)
FINE_TUNING = (*KINDS, "squad", "ner", "swag")


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
        losses.PRETRAINING,
    )
    scope = fused_ops.step_scope(CONFIG, remat, compiled=True)
    batches = reader.training_batches(["none"], 1, schema, ROWS, 3, 0)
    return model, objective, scope, batches


def tasks():
    """The task of each kind of fine-tuning, by its name."""
    tokenizer = Tokenizer("vocab.txt", tokens=text.VOCABULARY)
    names = ("a", "b", "c", "d", "e")
    made = {
        kind: TextClassification(
            tokenizer,
            Labels(kind, () if kind == REGRESSION else names),
            small.S,
        )
        for kind in KINDS
    }
    return made | {
        "squad": QuestionAnswering(tokenizer, Settings(max_seq_length=small.S)),
        "ner": TokenClassification(tokenizer, names, False, small.S),
        "swag": MultipleChoice(tokenizer, small.S, 3),
    }


def fine_tuning_batches(task, lengths, sizes=(1,) * ROWS):
    """The pipeline of a fine-tuning task."""

    def example(length):
        ids = [1] * length
        row = {
            key: ids if feature.sequence else [1] * feature.size
            for key, feature in task.schema.items()
        }
        return row | {
            key: ids if task.sequences == 1 else [ids] * task.sequences
            for key in ("input_ids", "segment_ids")
        }

    rows = Examples(map(example, sizes), task.schema, task.sequences)
    return batching.training_batches(rows, lengths, ROWS, 3, 0)


def fine_tuning(name):
    """The objective of a fine-tuning task and its batches."""
    task, scope = tasks()[name], fused_ops.step_scope(CONFIG, False, True)
    network = objectives.build_network(task, CONFIG, SETTINGS)
    objective = objectives.objective_of(task, CONFIG, SETTINGS, RATE)
    batches = fine_tuning_batches(task, [small.S])
    return network, objective, scope, batches


@pytest.fixture
def whole_step(monkeypatch):
    """Makes a step: forward, backward, dropout, clipping and update."""

    def make(name):
        if name in FINE_TUNING:
            model, objective, scope, dataset = fine_tuning(name)
        else:
            made = pretraining(name == "packed", name == "remat")
            model, objective, scope, dataset = made
        optimizer = optimization.AdamWeightDecay(RATE)
        optimizer.build(model.trainable_variables)
        taken = train_step.TrainStep(
            model,
            objective,
            optimizer,
            tf.distribute.get_strategy(),
            3,
            scope,
            losses.batch_tokens,
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
        return step, batch

    return make


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param("padded", "bfloat16", marks=pytest.mark.long),
        ("packed", "bfloat16"),
        pytest.param("remat", "float32", marks=pytest.mark.long),
        pytest.param("classes", "float32", marks=pytest.mark.long),
        *(
            pytest.param(name, "bfloat16", marks=pytest.mark.long)
            for name in FINE_TUNING
        ),
    ],
)
def test_the_whole_step_is_one_static_program(whole_step, name, kind):
    """Sizes are known, numbers small, and the host is not asked."""
    with precision.computing_in(kind):
        step, batch = whole_step(name)
    ir = step.experimental_get_compiler_ir(batch, tf.constant(1))
    hlo = ir(stage="hlo")
    for unwanted in (
        "<=",  # a size that is known only when it runs
        "custom-call",
        "f64[",
        "infeed",
        "outfeed",
        "send(",
        "recv(",
    ):
        assert unwanted not in hlo, unwanted
    assert ("bf16[" in hlo) == (kind == "bfloat16")
    # All numbers of a batch have 32 bits: their sizes are inputs as they are.
    entry = re.search(r"entry_computation_layout=\{\((.*?)\)->", hlo)[1]
    for values in batch.values():
        number = "s32" if values.dtype == tf.int32 else "f32"
        assert f"{number}[{','.join(map(str, values.shape))}]" in entry


@pytest.mark.parametrize("name", FINE_TUNING)
def test_batches_of_each_task_are_static(name):
    """With several lengths each batch has one of those that are compiled."""
    task = tasks()[name]
    spec = fine_tuning_batches(task, [small.S]).element_spec
    assert all(x.shape.is_fully_defined() for x in spec.values())
    assert feature_names.INPUT_IDS in spec
    lengths = bucketing.xla_lengths(bucketing.bucket_lengths(128))
    assert lengths == [32, 64, 128]
    sizes = [7, 31, 33, 64, 65, 127, 128] * ROWS
    batches = fine_tuning_batches(task, lengths, sizes)
    axis = 2 if name == "swag" else 1
    found = set()
    for batch in batches.take(len(sizes) // ROWS):
        found.add(batch[feature_names.INPUT_IDS].shape[axis])
        assert {len(x) for x in batch.values()} == {ROWS}
    assert found == set(lengths)
