"""Learning rates against NumPy, and runs that follow them."""

import numpy as np
import pytest
import tensorflow as tf

from bert.training.optimization import WarmupLinearDecay, WarmupStableDecay
from tests.helpers import tiny
from tests.helpers.pretraining_files import assert_same_bits, tensors
from tests.helpers.training_loop import make_run, phase

PEAK, STEPS = 0.7, 11


@pytest.mark.parametrize("warmup", [0, 3, 11])
@pytest.mark.parametrize("decay", [None, 0, 5, 11])
def test_rates_of_steps_equal_numpy(warmup, decay):
    """Decay None: linear from step 0; 0: none."""
    steps = np.arange(13)
    if decay is None:
        schedule = WarmupLinearDecay(PEAK, STEPS, warmup)
        later = 1 - steps.clip(max=STEPS) / STEPS
    else:
        schedule = WarmupStableDecay(PEAK, STEPS, warmup, decay)
        share = (steps - STEPS + decay) / max(decay, 1)
        later = 1 - np.sqrt(share.clip(0, 1)) if decay else np.ones(13)
    expected = np.where(steps < warmup, steps / max(warmup, 1), later)
    rates = [float(schedule(step)) for step in steps]
    np.testing.assert_allclose(rates, PEAK * expected, atol=1e-6)


def train(folder, schedule, last):
    """Resumes a run of the tiny network, or begins it; trains to a step."""
    folder.mkdir(exist_ok=True)
    steps = tiny.make_steps(schedule=schedule)
    run = make_run(
        steps, folder, {"learning_rate": schedule}, iterations_per_loop=1
    )
    run.state.restore()
    run.fit([phase(batches, last, tiny.ROWS)])
    return run


def batches(step):
    rows = [tiny.batch(seed) for seed in range(STEPS)]
    stacked = {name: np.stack([x[name] for x in rows]) for name in rows[0]}
    return tf.data.Dataset.from_tensor_slices(stacked).repeat().skip(step)


@pytest.mark.slow
def test_a_run_without_an_end_goes_on_to_a_decay(tmp_path):
    """The steps before the decay are those of a run that knew its end."""
    train(tmp_path / "open", WarmupStableDecay(PEAK, 5, 2), 5)
    for name in ("open", "straight"):
        train(tmp_path / name, WarmupStableDecay(PEAK, STEPS, 2, 4), STEPS)
    ours, theirs = (
        tensors(tmp_path / name / f"model.ckpt-{STEPS}")
        for name in ("open", "straight")
    )
    assert_same_bits(ours, theirs)
