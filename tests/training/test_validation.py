"""Best weights of a run, and early stopping."""

import pytest

from bert.training import loop
from bert.training.logs import TrainingLog
from bert.training.preemption import Preemption
from tests.helpers import tiny
from tests.helpers.training_loop import make_trainer

VALUES = [3.0, 2.0, 2.0, 2.5, 5.0, 1.0]


@pytest.fixture
def make(tmp_path):
    """Makes a `Trainer`, and `add`, which evaluates a step with a value."""

    def make(is_loss, patience=0):
        trainer, preemption = (
            make_trainer(tiny.make_steps(), tmp_path),
            Preemption(),
        )
        trainer._settings, log = {"seed": 3}, TrainingLog(str(tmp_path), 0)
        variable = trainer._named["v0"]

        def add(step, value):
            variable.assign(variable * 0 + step)
            trainer.steps.optimizer.iterations.assign(step)
            metrics = {"m": value, "other": -step, "seed": step}
            validation = loop.Validation(
                lambda: metrics, "m", is_loss, patience
            )
            trainer._validate(validation, log, preemption)
            trainer.is_over = trainer._should_stop(validation, preemption)
            return trainer.best.restore_latest()

        return trainer, add

    return make


@pytest.mark.parametrize(
    ("is_loss", "steps"),
    [(True, [1, 2, 2, 2, 2, 6]), (False, [1] * 4 + [5] * 2)],
)
def test_the_best_is_kept(make, is_loss, steps):
    """The lowest loss, or the highest of anything else; the first of equals."""
    _, add = make(is_loss)
    for step, (value, expected) in enumerate(zip(VALUES, steps), 1):
        kept = add(step, value)
        assert kept.step == kept.values["v0"].max() == expected
        assert kept.settings == {
            "seed": 3,
            "m": VALUES[expected - 1],
            "other": -expected,
        }


@pytest.mark.parametrize("patience", [1, 3])
def test_a_run_is_over_when_the_patience_is_exhausted(make, patience):
    best, add = make(True, patience)
    add(1, 3.0)
    for _ in range(patience - 1):
        add(2, 3.0)
    assert not best.is_over
    add(5, 2.0)  # a better one
    for step in range(patience):
        assert not best.is_over
        add(6 + step, 2.0)
    assert best.is_over


def test_without_patience_no_run_is_over(make):
    best, add = make(True)
    for step in range(5):
        add(step, 1.0)
    assert not best.is_over


def test_best_value_and_patience_survive_a_restart(make):
    first, add = make(True, patience=2)
    add(1, 2.0)
    add(2, 2.5)
    again, add = make(True, patience=2)
    again._load_state_dict(first._state_dict())
    assert add(3, 2.0).step == 1
    assert again.is_over
