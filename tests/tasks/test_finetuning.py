"""Fine-tuning of any task: its schedule, and its resumption."""

import json
import shutil
import types

import numpy as np
import pytest

from bert.common import flags, tensor_files
from bert.data import batching, features
from bert.data.records import example_files
from bert.modeling import checkpoints, task_losses, task_models
from bert.tasks import (
    finetuning_run,
    run_folder,
    settings,
    training_run,
)
from bert.tasks.swag.settings import Settings
from tests.helpers import killed_runs, small
from tests.helpers.small import S, V

ROWS, STEPS, CLASSES, RATE = 23, 5, 3, 0.01
SCHEMA = dict.fromkeys(
    (features.LABEL_IDS, features.IS_REAL_EXAMPLE), example_files.Feature()
)


def build():
    config = small.config(num_hidden_layers=1, hidden_dropout_prob=0.1)
    return task_models.build_classifier(config, CLASSES)


def make_run(folder, **named):
    """A run of the classifier, as a script makes it."""
    everything = flags.replace(
        Settings(),
        output_dir=str(folder),
        train_batch_size=4,
        max_seq_length=S,
        num_train_epochs=1,  # of 5.75 steps
        warmup_proportion=0.5,
        learning_rate=RATE,
        save_checkpoints_steps=1,
        log_steps=1,
        **named,
    )
    config = small.config(num_hidden_layers=1)
    return finetuning_run.FineTuningRun(
        everything,
        run_folder.RunFolder(str(folder), str(folder), config, None),
        None,
        training_run.TrainingTask(
            build,
            (task_losses.LABELS,),
            task_losses.label_weights,
            task_losses.class_sums,
        ),
        ROWS,
    )


@pytest.mark.parametrize(
    ("log_steps", "last", "expected"),
    [(None, 0, 1), (None, 47, 1), (None, 1000, 20), (None, 9999, 100)]
    + [(7, 47, 7)],
)
def test_the_interval_of_the_curves_follows_the_run(log_steps, last, expected):
    run = types.SimpleNamespace(
        _training=settings.Training(log_steps=log_steps),
        _task=types.SimpleNamespace(num_train_steps=last),
        _learning_rate=None,
    )
    schedule = training_run.TrainingRun.schedule(
        run, None, 4, last, eval_steps=0
    )
    assert schedule.log_steps == expected


def train(folder):
    """Trains as a script does; returns the number of the first batch."""
    tuning = make_run(folder, do_train=True)
    tuning.start()
    rng = np.random.default_rng(3)
    rows = [
        {
            features.INPUT_IDS: rng.integers(1, V, size),
            features.SEGMENT_IDS: np.zeros(size, int),
            features.LABEL_IDS: [size % CLASSES],
            features.IS_REAL_EXAMPLE: [1],
        }
        for size in rng.integers(1, S + 1, ROWS)
    ]
    make, first = batching.training_batches, []

    def batches(rows, lengths, batch_size, seed, step, *rest):
        first.append(step)
        return make(rows, lengths, batch_size, seed, step, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batching, "training_batches", batches)
        tuning.train(example_files.Examples(rows, SCHEMA))
    return first[0]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that was never interrupted, its folder and its first batch."""
    folder = tmp_path_factory.mktemp("finetuning")
    return folder, train(folder)


def test_the_best_checkpoint_does_not_replace_the_given_weights(run, tmp_path):
    """A folder may have no checkpoint but the best, as after a kill."""
    folder, _ = run
    best = tmp_path / "best"
    best.mkdir()
    for path in folder.glob("model.ckpt-2.*"):
        shutil.copy(path, best)
    other = str(folder / "model.ckpt-4")
    tuning = make_run(tmp_path, init_checkpoint=other)
    tuning.start()
    tuning.restore_best()
    assert tuning.weights_step == 0
    read = tensor_files.read(other)
    for name, value in tuning.weights().items():
        np.testing.assert_array_equal(value, read[name])


def test_the_rate_warms_up_and_falls(run):
    folder, _ = run
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    rates = [json.loads(line)["learning_rate"] for line in lines]
    expected = [0, RATE / 2, *(RATE * (1 - i / STEPS) for i in range(2, STEPS))]
    assert rates == pytest.approx(expected)
    # So the first step, of rate 0, learns nothing.
    first, second = (
        tensor_files.read(str(folder / f"model.ckpt-{step}")) for step in (1, 2)
    )
    for name, variable in checkpoints.model_variables(build()).items():
        np.testing.assert_array_equal(first[name], variable)
        assert (first[name] != second[name]).any(), name


def test_a_run_resumes_with_the_next_batch(run):
    """To the same bits, when it was killed after its second checkpoint."""
    folder, first = run
    before = killed_runs.losses(folder), killed_runs.digest(folder, STEPS)
    for step in range(3, STEPS + 1):
        for path in folder.glob(f"model.ckpt-{step}.*"):
            path.unlink()
    assert (first, train(folder)) == (0, 2)
    assert len(before[0]) == STEPS
    after = killed_runs.losses(folder), killed_runs.digest(folder, STEPS)
    assert after == before
