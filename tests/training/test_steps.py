"""A step's arithmetic: micro-batches, and numbers that are not finite."""

import numpy as np
import pytest
import tensorflow as tf

from common.errors import UserError
from tests.helpers import tiny
from training import distribution


@pytest.fixture(scope="module")
def whole():
    """Three steps, each on its whole batch at once."""
    made = tiny.make_steps()
    return tiny.take(made, None, None, None), tiny.tensors(made)


@pytest.mark.parametrize(
    ("replicas", "accumulation_steps", "use_xla"),
    [(1, 4, False), (1, 2, True), (2, 1, False), (2, 2, False), (2, 4, True)],
)
def test_micro_batches_give_the_update_of_the_whole_batch(
    whole, replicas, accumulation_steps, use_xla
):
    made = tiny.make_steps(replicas, accumulation_steps, use_xla)
    rows = tiny.take(made, None, None, None)
    np.testing.assert_allclose(rows, whole[0], rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(tiny.tensors(made), whole[1], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize(("replicas", "accumulation_steps"), [(1, 2), (2, 1)])
def test_parts_of_a_batch_drop_different_positions(
    replicas, accumulation_steps, rate
):
    """With the same examples in both only dropout can differ."""
    half = {name: values[:4] for name, values in tiny.batch(1).items()}
    twice = {name: np.concatenate([x, x]) for name, x in half.items()}
    losses = []
    for data, parts in (
        (half, (1, 1)),
        (twice, (replicas, accumulation_steps)),
    ):
        made = tiny.make_steps(*parts, rate=rate)
        data = iter(tf.data.Dataset.from_tensors(data))
        sums = made.train(data, tf.constant(1)).numpy()[0]
        losses.append(sums[0] / sums[2])
    assert (losses[0] == pytest.approx(losses[1], rel=1e-4)) == (rate == 0.0)


@pytest.mark.parametrize(
    ("replicas", "accumulation_steps", "use_xla", "poison"),
    [
        (1, 1, False, np.nan),
        (1, 1, True, np.inf),
        (2, 1, False, np.inf),
        (2, 2, False, np.nan),
    ],
)
def test_a_step_that_is_not_finite_changes_no_bit(
    replicas, accumulation_steps, use_xla, poison
):
    made = tiny.make_steps(replicas, accumulation_steps, use_xla)
    tiny.take(made, None)
    before = tiny.bits(made)
    assert not np.isfinite(tiny.take(made, poison)).all()
    assert tiny.bits(made) == before
    assert made.optimizer.step == 2
    assert np.isfinite(tiny.take(made, None)).all()
    assert tiny.bits(made) != before


def test_a_poisoned_weight_changes_no_other():
    made = tiny.make_steps()
    tiny.take(made, None)
    weight = made.task.model.trainable_variables[0]
    weight.assign(np.full(weight.shape, np.nan, "f4"))
    before = tiny.bits(made)
    tiny.take(made, None)
    assert tiny.bits(made) == before


def test_parts_of_a_batch_must_divide_over_the_devices():
    strategy = distribution.make_strategy("mirrored")
    distribution.check_batch_size(strategy, 24, "train_batch_size", 3)
    with pytest.raises(UserError, match="--train_batch_size=20; expected a mu"):
        distribution.check_batch_size(strategy, 20, "train_batch_size", 3)
