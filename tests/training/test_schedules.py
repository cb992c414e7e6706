"""Learning rates against NumPy."""

import numpy as np
import pytest

from bert.training.optimization import WarmupLinearDecay, WarmupStableDecay

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
