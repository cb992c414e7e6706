"""Warnings of bad steps and of spikes of the loss."""

import collections
import json

import numpy as np
import pytest
import tensorflow as tf

from bert.common.errors import UserError
from bert.training import finite_check, training_loop
from tests.helpers import run_folders, tiny
from tests.helpers.training_loop import make_run, phase


def train(made, folder, *poisons, **changed):
    """Trains on one batch a step, in calls of all steps."""
    data = tf.data.Dataset.from_generator(
        lambda: iter([tiny.batch(i, x) for i, x in enumerate(poisons)]),
        output_signature={
            name: tf.TensorSpec(x.shape, x.dtype)
            for name, x in tiny.batch(0).items()
        },
    )
    plan = phase(lambda step: data, len(poisons), tiny.ROWS, **changed)
    run = make_run(made, folder, save_checkpoints_steps=100)
    training_loop.fit(run, [plan])
    return run_folders.points(folder)


def test_bad_steps_are_logged_with_their_examples(tmp_path, capsys):
    made = tiny.make_steps()
    lines = train(
        made,
        tmp_path,
        None,
        np.nan,
        None,
        np.inf,
        np.nan,
        None,
        records_of="examples of {}".format,
    )
    warned = [x for x in capsys.readouterr().err.splitlines() if "warn" in x]
    assert len(warned) == 3
    assert "step 2: loss nan, error_loss nan, gradient norm nan" in warned[0]
    assert warned[0].endswith("its examples: examples of 2")
    assert warned[1].endswith("its examples: examples of 4")
    # A mean of nothing is no figure.
    assert [line["step"] for line in lines] == [1, 3, 6]
    assert made.bad_steps == 0


def test_three_bad_steps_in_a_row_end_the_run(tmp_path):
    made = tiny.make_steps()
    with pytest.raises(UserError, match="steps 2 to 4 gave no finite loss"):
        train(made, tmp_path, None, np.nan, np.inf, np.nan, None)
    assert made.bad_steps == 3


@pytest.mark.parametrize(
    ("loss", "scale", "bad_steps"),
    [(5.0, 1.0, 1), (5.0, 2.0, 0), (np.nan, 2.0, 1)],
)
def test_an_infinite_gradient_is_bad_without_a_loss_scale(
    loss, scale, bad_steps
):
    """Otherwise the next step has a lower loss scale; a loss must be finite."""
    made, sums = tiny.make_steps(), np.float32([[loss, 1.0, np.inf, scale]])
    losses = collections.deque(maxlen=finite_check.WINDOW)
    good = finite_check.check(made, losses, 0, sums, str)
    assert (len(good), made.bad_steps) == (0, bad_steps)


def test_a_spike_is_a_loss_above_six_deviations():
    kept = collections.deque(maxlen=finite_check.WINDOW)
    rng = np.random.default_rng(7)
    losses = rng.normal(5.0, 0.1, finite_check.WINDOW).tolist()
    limits = [finite_check.limit_of(kept, loss) for loss in losses]
    assert limits == [None] * finite_check.WINDOW
    mean, deviation = np.mean(losses), np.std(losses)
    below = mean + 5.9 * deviation
    assert finite_check.limit_of(kept, below) is None
    window = [*losses[1:], below]
    expected = np.mean(window) + 6 * np.std(window)
    assert finite_check.limit_of(kept, 9.0) == pytest.approx(expected)


def test_the_window_of_losses_is_kept_over_an_interruption(capsys):
    row = np.float32([[5.0, 1.0, 1.0, 1.0, 1.0]])  # the loss is 5 / 1
    first, second = (make_run(tiny.make_steps(), "") for _ in range(2))
    rows = np.repeat(row, finite_check.WINDOW, 0)
    finite_check.check(first.train_step, first.losses, 0, rows, str)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    rows[:2, 0] = 10.0
    finite_check.check(
        second.train_step,
        second.losses,
        finite_check.WINDOW,
        rows[:2],
        str,
    )
    error = capsys.readouterr().err
    assert "step 129: loss 10.0000 spikes above 5.0" in error
    assert "step 130: loss 10.0000 spikes above 7.6" in error
