"""Layers that are computed again, with replicas, parts and half precision."""

import numpy as np
import pytest
import tensorflow as tf

from bert.modeling import fused_ops, losses, precision
from bert.modeling.networks import build_pretraining_model
from bert.training import train_step
from bert.training.optimization import AdamWeightDecay
from tests.helpers import small, tiny

pytestmark = pytest.mark.slow
ROWS = 8


def batch(seed):
    """Uneven masks: a mean of the parts' means would be another loss."""
    made = small.batch(seed, ROWS)
    made["masked_lm_weights"][0] = 1
    made["masked_lm_weights"][-1] = [1, 0, 0]
    return made


def take(kind, remat, replicas=1, parts=1, rate=0.0):
    """Sums and weights of two steps."""
    strategy = tiny.strategy_of(replicas)
    config = small.config(
        num_hidden_layers=1,
        hidden_dropout_prob=rate,
        attention_probs_dropout_prob=rate,
    )
    with strategy.scope():
        with precision.computing_in(kind):
            model = build_pretraining_model(config)
        optimizer = AdamWeightDecay(0.001)
        optimizer.build(model.trainable_variables)
    made = train_step.TrainStep(
        model,
        tiny.objective_of(
            losses.OBJECTIVES,
            losses.pretraining_weights,
            losses.pretraining_sums,
        ),
        optimizer,
        strategy,
        3,
        fused_ops.step_scope(config, remat),
        losses.batch_tokens,
        accumulation_steps=parts,
    )
    batches = [batch(seed) for seed in range(2)]
    stacked = {
        name: np.stack([b[name] for b in batches]) for name in batches[0]
    }
    data = iter(tf.data.Dataset.from_tensor_slices(stacked))
    return made.train(data, tf.constant(2)).numpy(), tiny.tensors(made)


def assert_equal(ours, theirs, off):
    np.testing.assert_allclose(ours[0], theirs[0], rtol=off, atol=off)
    for one, other in zip(ours[1], theirs[1], strict=True):
        np.testing.assert_allclose(one, other, atol=off)


@pytest.mark.parametrize(
    "replicas", [1, pytest.param(2, marks=pytest.mark.long)]
)
def test_remat_repeats_the_dropout_masks(replicas):
    """On each replica, in each part: the masks are those of the forward."""
    ours = take("float16", True, replicas, 2, rate=0.3)
    assert_equal(ours, take("float16", False, replicas, 2, rate=0.3), 1e-3)
