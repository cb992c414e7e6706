"""Best weights of a run, and early stopping."""

import pytest

from bert.training.preemption import Preemption
from tests.helpers import tiny
from tests.helpers.training_loop import make_run

VALUES = [3.0, 2.0, 2.0, 2.5, 5.0, 1.0]


@pytest.fixture
def make(tmp_path):
    """Makes a `Trainer`, and `add`, which evaluates a step with a value."""

    def make(sign, patience=0):
        run = make_run(
            tiny.make_steps(),
            tmp_path,
            {"metric": "m", "sign": sign},
            early_stopping_patience=patience,
        )
        run.state.description, preemption = {"seed": 3}, Preemption()
        variable = run.state.named["v0"]

        def add(step, value):
            variable.assign(variable * 0 + step)
            run.train_step.optimizer.iterations.assign(step)
            metrics = {"m": value, "other": -step, "seed": step}
            run._validate(lambda: metrics, preemption)
            run.is_over = run._is_over(preemption)
            return run.state.best.restore_latest()

        return run, add

    return make


@pytest.mark.parametrize(
    ("sign", "steps"),
    [(-1, [1, 2, 2, 2, 2, 6]), (1, [1] * 4 + [5] * 2)],
)
def test_the_best_is_kept(make, sign, steps):
    """The lowest loss, or the highest of anything else; the first of equals."""
    run, add = make(sign)
    for step, (value, expected) in enumerate(zip(VALUES, steps), 1):
        kept = add(step, value)
        assert not run.is_over
        assert kept.step == kept.values["v0"].max() == expected
        assert kept.settings == {
            "seed": 3,
            "m": VALUES[expected - 1],
            "other": -expected,
        }


@pytest.mark.parametrize("patience", [1, 3])
def test_a_run_is_over_when_the_patience_is_exhausted(make, patience):
    best, add = make(-1, patience)
    add(1, 3.0)
    for _ in range(patience - 1):
        add(2, 3.0)
    assert not best.is_over
    add(5, 2.0)  # a better one
    for step in range(patience):
        assert not best.is_over
        add(6 + step, 2.0)
    assert best.is_over


def test_best_value_and_patience_survive_a_restart(make):
    first, add = make(-1, patience=2)
    add(1, 2.0)
    add(2, 2.5)
    again, add = make(-1, patience=2)
    again.state.load_state_dict(first.state.state_dict())
    assert add(3, 2.0).step == 1
    assert again.is_over
