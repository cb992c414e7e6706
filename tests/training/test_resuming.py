"""Runs that go back to an earlier checkpoint."""

import functools

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator,
)

from bert.common.errors import UserError
from bert.training import logs, training_loop
from bert.training.saver import Saver
from tests.helpers import run_folders, tiny
from tests.helpers.training_loop import make_run, phase


@functools.cache
def compiled_steps():
    """Steps of the tiny network, and the values of its variables at first."""
    made = tiny.make_steps()
    state = [*made.model.variables, *made.optimizer.variables]
    return made, [(variable, variable.numpy()) for variable in state]


def fresh_steps():
    """The same steps as at first: they are compiled once."""
    made, state = compiled_steps()
    for variable, value in state:
        variable.assign(value)
    made.bad_steps = 0
    return made


class Trial:
    """A run of the tiny network, with given scores as evaluations."""

    def __init__(self, folder, last, scores, patience=0, do_train=True):
        self.folder, self._last = str(folder), last
        self._scores = scores
        self.run = make_run(
            fresh_steps(),
            folder,
            do_train=do_train,
            save_checkpoints_steps=3,
            eval_steps=2,
            iterations_per_loop=1,
            early_stopping_patience=patience,
        )
        self.best = self.run.best

    def plan(self):
        return phase(self._batches, self._last, tiny.ROWS)

    def train(self):
        """Trains; returns the state of the best weights."""
        self.run.restore()
        training_loop.fit(self.run, [self.plan()], self._validate)
        return self.run.state_dict()["held_out"]["best"]

    def _validate(self):
        return {"score": self._scores[self.run.step]}

    def _batches(self, step):
        return tf.data.Dataset.from_tensors(tiny.batch(step)).repeat()


def go_back(folder, step):
    """Removes the later checkpoints, as a user would."""
    for path in folder.glob("model.ckpt-*"):
        if int(path.name.split("-")[1].split(".")[0]) > step:
            path.unlink()


def curve(folder, tag):
    """Steps of a curve, as TensorBoard's own reader shows them."""
    reader = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    reader.Reload()
    return [event.step for event in reader.Tensors(tag)]


def train_steps(folder):
    """Steps of the lines for the report."""
    lines = run_folders.points(folder)
    return [line["step"] for line in lines if line["kind"] == "train"]


SCORES = {2: 0.3, 4: 0.5, 6: 0.6, 7: 0.9}


@pytest.mark.parametrize(
    ("first", "back", "second", "patience", "best", "waited", "end"),
    [
        # The best of an abandoned branch does not win.
        ((0.3, 0.5, 0.6, 0.9), 3, (0.2, 0.4, 0.1), 0, 6, 1, 7),
        # That of the branch which the run is still on is kept.
        ((0.8, 0.5, 0.6, 0.1), 3, (0.7, 0.7, 0.7), 0, 2, 3, 7),
        # The patience starts anew without best weights.
        ((0.3, 0.5, 0.6, 0.9), 3, (0.2, 0.1, 0.1), 1, 4, 1, 6),
        ((0.5, 0.3, 0.3, 0.9), 6, (0.1,), 2, 7, 0, 7),
    ],
)
def test_the_best_is_that_of_the_branch(
    tmp_path, first, back, second, patience, best, waited, end
):
    before = dict(zip((2, 4, 6, 7), first))
    Trial(tmp_path, 7, before).train()
    go_back(tmp_path, back)

    after = dict(zip([step for step in before if step > back], second))
    other = Trial(tmp_path, 7, after, patience)
    value = {**before, **after}[best]
    assert other.train() == {"value": value.hex(), "waited": waited}
    assert other.run.step == end
    assert other.best.saved_steps() == [best]
    assert other.best.restore_latest().settings == {"score": value}


@pytest.mark.parametrize(
    ("eval_steps", "do_train", "back", "step"),
    [
        (2, True, 7, 4),
        (0, False, 7, 4),
        (0, False, 3, 4),  # nothing is removed without training
        (0, True, 7, 7),
    ],
)
def test_the_best_weights_are_used_after_evaluations_and_without_training(
    tmp_path, eval_steps, do_train, back, step
):
    Trial(tmp_path, 7, {2: 0.3, 4: 0.5, 6: 0.4, 7: 0.1}).train()
    go_back(tmp_path, back)
    changed = {"eval_steps": eval_steps, "do_train": do_train}
    state = make_run(fresh_steps(), tmp_path, **changed)
    state.restore()
    assert state.step == back
    last = state.weights()["v0"]
    state.restore_best()
    assert state.weights_step == step
    assert (state.weights()["v0"] == last).all() == (step == 7)


@pytest.mark.parametrize("back", [0, 3])
def test_curves_end_where_the_run_goes_back_to(tmp_path, back):
    """For TensorBoard, of training and of evaluation, and as lines."""
    Trial(tmp_path, 7, SCORES).train()
    assert curve(tmp_path, "loss") == [1, 2, 3, 4, 5, 6, 7]
    go_back(tmp_path, back)
    (path,) = tmp_path.glob("events.out.tfevents.*")
    for each in (path, tmp_path / logs.METRICS):  # a killed run wrote half
        each.write_bytes(each.read_bytes()[:-3])
    Trial(tmp_path, 5, SCORES | {5: 0.2}).train()
    assert curve(tmp_path, "loss") == [1, 2, 3, 4, 5]
    assert curve(tmp_path / "eval", "score") == [2, 4, 5]
    assert train_steps(tmp_path) == [1, 2, 3, 4, 5]


def test_a_resumed_run_does_not_rewrite_its_curves(tmp_path):
    Trial(tmp_path, 7, SCORES).train()
    (path,) = tmp_path.glob("events.out.tfevents.*")
    before = path.stat()
    make_run(tiny.make_steps(), tmp_path).log.drop_after(7)
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
    )


def test_moments_are_needed_only_to_train(tmp_path):
    run = Trial(tmp_path, 3, SCORES | {3: 0.4})
    variables = run.run._variables
    name = next(x for x in variables if x.endswith("/adam_m"))
    del variables[name]  # as of a layer that is frozen
    run.train()
    other = Trial(tmp_path, 7, SCORES, do_train=False)
    other.run.restore()
    assert other.run.step == 3
    with pytest.raises(UserError, match=f"{name}.*or the flags of this run"):
        Trial(tmp_path, 7, SCORES).run.restore()


def test_an_error_of_a_checkpoint_ends_the_run(tmp_path, monkeypatch):
    """After the call of steps in which it occurs, with its message."""
    run = Trial(tmp_path, 7, SCORES)
    checkpoints, steps = run.run.saver, run.run.train_step
    train, describe = steps.train, Saver._describe

    def fail(saver, *arguments):
        if saver is checkpoints:
            raise OSError("no room")
        describe(saver, *arguments)

    def take(*arguments):
        if run.run.step == 3:  # whose checkpoint fails
            assert checkpoints._pending.exception(60) is not None
        return train(*arguments)

    monkeypatch.setattr(Saver, "_describe", fail)
    monkeypatch.setattr(steps, "train", take)
    with pytest.raises(UserError, match="cannot be written"):
        run.train()
    assert run.run.step == 4


def test_the_best_weights_can_be_evaluated_as_a_run(tmp_path):
    """They have no moments and no state of a training."""
    Trial(tmp_path, 2, {2: 0.5}).train()
    best = Trial(tmp_path / "best", 2, {}, do_train=False)
    assert best.run.restore().step == 2
