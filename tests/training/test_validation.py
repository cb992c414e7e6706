"""Best weights of a run, and early stopping."""

import functools
import json
import math
import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st

from bert.training import training_loop
from bert.training.preemption import Preemption
from tests.helpers import tiny
from tests.helpers.training_loop import make_run

steps = functools.cache(tiny.make_steps)


def make(folder, sign, patience):
    objective = {"metric": "m", "sign": sign}
    run = make_run(steps(), folder, objective, early_stopping_patience=patience)
    run.description = {"seed": 3}
    return run


@settings(max_examples=50)
@given(
    values=st.lists(st.sampled_from([1.0, 2.5, 4.0, math.nan]), max_size=7),
    sign=st.sampled_from([-1, 1]),
    patience=st.integers(0, 3),
    restart=st.integers(2, 9),
)
def test_the_first_of_the_best_is_kept_and_the_patience_counts_from_it(
    values, sign, patience, restart
):
    """Also over a restart; NaN is never the best."""
    with tempfile.TemporaryDirectory() as folder:
        run, best = make(folder, sign, patience), 0
        for step, value in enumerate(values, 1):
            if step == restart:
                state = json.loads(json.dumps(run.state_dict()))
                run = make(folder, sign, patience)
                run.load_state_dict(state)
            variable = run.named["v0"]
            variable.assign(variable * 0 + step)
            run.train_step.optimizer.iterations.assign(step)
            metrics = {"m": value, "other": -step, "seed": step}
            training_loop._validate(
                run, lambda metrics=metrics: metrics, Preemption()
            )

            if not math.isnan(value) and (
                not best or sign * value > sign * values[best - 1]
            ):
                best = step
            is_over = training_loop._is_over(run, Preemption())
            assert is_over == (0 < patience <= step - best)
            kept = run.best.restore_latest()
            if not best:
                assert kept is None
                continue
            assert kept.step == kept.values["v0"].max() == best
            described = {"seed": 3, "m": values[best - 1], "other": -best}
            assert kept.settings == described
