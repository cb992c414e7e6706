"""A step's arithmetic: micro-batches, and numbers that are not finite."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.distribute import mirrored_run, mirrored_strategy

from bert.modeling.dropout import Dropout
from bert.modeling.networks import build_pretraining_model
from bert.training import distribution, train_step
from tests.helpers import small, tiny


@pytest.fixture(scope="module")
def whole():
    """Three steps, each on its whole batch at once."""
    made = tiny.make_steps()
    return tiny.take(made, None, None, None), tiny.tensors(made)


@pytest.mark.parametrize(
    ("replicas", "accumulation_steps", "use_xla", "compares", "poison"),
    [
        (1, 4, False, False, np.nan),
        (2, 2, True, False, np.inf),
        (2, 2, False, True, np.nan),
    ],
)
def test_micro_batches_give_the_update_of_the_whole_batch(
    whole, replicas, accumulation_steps, use_xla, compares, poison
):
    """And a step or weight that is not finite changes no bit."""
    made = tiny.make_steps(replicas, accumulation_steps, use_xla)
    (loss,) = made.objective.losses
    loss.compares_rows = compares
    rows = tiny.take(made, None, None, None)
    np.testing.assert_allclose(rows, whole[0], rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(tiny.tensors(made), whole[1], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)

    before = tiny.bits(made)
    assert not np.isfinite(tiny.take(made, poison)).all()
    assert tiny.bits(made) == before
    assert made.optimizer.step == 4

    assert np.isfinite(tiny.take(made, None)).all()
    assert tiny.bits(made) != before

    weight = made.model.trainable_variables[0]
    weight.assign(np.full(weight.shape, np.nan, "f4"))
    before = tiny.bits(made)
    tiny.take(made, None)
    assert tiny.bits(made) == before


class Context:
    """The second of four replicas on two workers with equal batches."""

    num_replicas_in_sync, replica_id_in_sync_group = 4, 1

    def all_reduce(self, operation, weights):
        assert operation == tf.distribute.ReduceOp.SUM
        return weights + 3.0 * tf.constant([7.5])  # of the other replicas


def test_the_weight_of_an_empty_batch_counts_once(monkeypatch):
    loss = tiny.SquaredError()
    loss.weight = lambda batch: tf.reduce_sum(batch["weight"]) + 0.5
    made = tiny.again(tiny.make_steps(), losses=(loss,))
    monkeypatch.setattr(train_step.workers, "index_and_count", lambda: (0, 2))
    weight = tf.constant([[1.0], [2.0], [3.0], [5.0]])
    found = made._normalizers(Context(), {"weight": weight})
    assert float(found["error"]) == 3.0 + 5.0 + 3 * 7.0 + 0.5


def test_parts_of_a_batch_drop_different_positions():
    """On each replica; all have the same examples, and one of them counts."""
    made = tiny.make_steps(2, 2, rate=0.5)
    made.optimizer.learning_rate = 0.0
    parts, size = 4, tiny.ROWS // 4
    batch = {k: np.tile(v[:size], (parts, 1)) for k, v in tiny.batch(1).items()}

    losses = []
    for part in range(parts):
        alone = np.repeat(np.arange(parts) == part, size)[:, None]
        data = {**batch, "weight": alone.astype("f4")}
        data = tf.data.Dataset.from_tensors(data)
        made.optimizer.iterations.assign(0)
        losses.append(made.train(iter(data), tf.constant(1)).numpy()[0, 0])
    assert len(np.unique(np.round(losses, 3))) == parts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("use_xla", "kind", "tolerance"),
    [(False, "float32", 1e-4), (True, "bfloat16", 0.03)],
)
def test_a_replica_without_weights_changes_no_loss(use_xla, kind, tolerance):
    """131 steps: a number that doubles in each step would overflow."""
    batch = tiny.batch(1)
    batch["weight"][: tiny.ROWS // 2] = 0
    data = tf.data.Dataset.from_tensors(batch).repeat()
    together, alone = (
        tiny.make_steps(*parts, kind=kind).train(iter(data), tf.constant(131))
        for parts in ((2, 2, use_xla), (1, 1, False))
    )
    assert np.isfinite(together).all()
    np.testing.assert_allclose(
        together[:, 0], alone[:, 0], rtol=tolerance, atol=tolerance
    )


def keys_of_dropout(use_xla, count):
    """Keys of all layers of a BERT in some steps: [count, layers, 2]."""
    model = build_pretraining_model(
        small.config(
            num_hidden_layers=1,
            hidden_dropout_prob=0.1,
            attention_probs_dropout_prob=0.1,
        )
    )
    layers = [x for x in model._flatten_layers() if isinstance(x, Dropout)]

    class Key(tiny.SquaredError):
        """Has a number of a key instead of an accuracy."""

        has_accuracy = True

        def __init__(self, i):
            self.name, self.i = f"key_{i}", i

        def sums(self, batch, outputs):
            keys = tf.concat([layer.draw(True)[0] for layer in layers], 0)
            key = tf.cast(keys[self.i], "float32")
            return super().sums(batch, outputs) | {"accuracy": key}

    made, size = tiny.make_steps(), 2 * len(layers)
    keys = tuple(map(Key, range(size)))
    made = tiny.again(made, use_xla=use_xla, losses=keys)
    data = tf.data.Dataset.from_tensors(tiny.batch(1)).repeat()
    rows = made.train(iter(data), tf.constant(count)).numpy()
    chosen = [made.sum_names.index(f"key_{i}_accuracy") for i in range(size)]
    return rows[:, chosen].reshape(count, len(layers), 2)


def test_compiled_steps_drop_the_same_positions():
    plain, compiled = (keys_of_dropout(use_xla, 19) for use_xla in (0, 1))
    np.testing.assert_array_equal(plain, compiled)
    pairs = plain.reshape(-1, 2)
    assert len(np.unique(pairs, axis=0)) == len(pairs) == 19 * 4


def test_steps_without_an_update_do_not_age_the_moments():
    """Nor those before an interruption."""
    made, again, expected = (
        tiny.make_steps(rule="corrected_adamw") for _ in range(3)
    )
    tiny.take(made, np.nan, np.inf)
    again.load_state_dict(json.loads(json.dumps(made.state_dict())))
    assert again.bad_steps == made.bad_steps
    again.optimizer.iterations.assign(made.optimizer.step)
    for each in (made, again, expected):
        tiny.take(each, None, None)
    assert tiny.bits(made) == tiny.bits(again) == tiny.bits(expected)
    assert made.optimizer.step == again.optimizer.step == 4


@pytest.fixture
def as_gpus(monkeypatch):
    """TensorFlow takes the CPUs for GPUs while it traces."""
    for owner, name in (
        (mirrored_run, "_is_gpu_device"),
        (mirrored_strategy, "_is_gpu_device"),
        (distribution, "can_compile_whole"),
    ):
        monkeypatch.setattr(owner, name, lambda device: True)


@pytest.mark.parametrize("replicas", [1, 4])
def test_the_whole_step_is_one_program_of_each_gpu(as_gpus, replicas):
    """Its update is in place: it assigns the variables inside."""
    made = tiny.make_steps(replicas, accumulation_steps=2, use_xla=True)
    train = made._train.get_concrete_function(
        tiny.batches(None), tf.constant(1)
    )
    called = {f.name: f.graph for f in train.graph._functions.values()}
    (body,) = [
        graph
        for graph in called.values()
        if any(op.type == "IteratorGetNext" for op in graph.get_operations())
    ]
    programs = [
        op
        for op in body.get_operations()
        if op.type.endswith("PartitionedCall")
    ]
    assert len(programs) == replicas
    assert all(op.get_attr("_XlaMustCompile") for op in programs)
    variables = 3 * len(made.model.trainable_variables)
    outside = [op.type for op in body.get_operations()]
    assert outside.count("AssignVariableOp") == replicas  # number of the step
    assert not [name for name in outside if name.startswith("Collective")]
    for op in programs:
        inside = body._get_function(op.get_attr("f").name).graph
        kinds = [op.type for op in inside.get_operations()]
        assert kinds.count("AssignVariableOp") == variables
        assert ("CollectiveReduceV2" in kinds) == (replicas > 1)


@pytest.mark.parametrize("replicas", [1, 4])
def test_evaluation_is_one_program_of_each_gpu(as_gpus, replicas):
    made = tiny.make_steps(replicas, use_xla=True)
    graph = made.evaluate.get_concrete_function(tiny.batch(0)).graph
    kinds = [op.type for op in graph.get_operations()]
    programs = [
        op
        for op in graph.get_operations()
        if op.type.endswith("PartitionedCall")
    ]
    assert len(programs) == replicas and "MatMul" not in kinds
    assert all(op.get_attr("_XlaMustCompile") for op in programs)


def lengths_of(lengths, seen):
    """Batches whose weights have these lengths, and steps that see them."""
    made = tiny.make_steps(use_xla=True)
    loss = tiny.SquaredError()
    weigh = loss.weight

    def watched(batch):
        seen.append(batch["weight"].shape.as_list())
        return weigh(batch)

    batch = tiny.batch(0)
    spec = {k: tf.TensorSpec(v.shape, v.dtype) for k, v in batch.items()}
    spec["weight"] = tf.TensorSpec([tiny.ROWS, None])
    data = tf.data.Dataset.from_generator(
        lambda: (
            batch | {"weight": batch["weight"] * np.ones([1, n], "f4")}
            for n in lengths
        ),
        output_signature=spec,
    )
    loss.weight = watched
    again = tiny.again(made, use_xla=True, losses=(loss,))
    return again, iter(data)


def test_each_length_of_a_batch_is_a_static_program():
    seen = []
    made, data = lengths_of([2, 3, 2, 2, 3], seen)
    rows = made.train(data, tf.constant(4)).numpy()
    assert seen == [[tiny.ROWS, 2], [tiny.ROWS, 3]]
    weights = rows[:, made.sum_names.index("error_weight")]
    np.testing.assert_allclose(weights / weights[0], [1, 1.5, 1, 1], rtol=1e-6)
    assert made.optimizer.step == 4
    assert made.train(data, tf.constant(1)).shape == rows[:1].shape
    assert len(seen) == 2
