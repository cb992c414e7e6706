"""Fine-tuning of any task: its schedule, and its resumption."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from bert.common.formats import tensor_files
from bert.data import batching, feature_names
from bert.data.labels import Labels
from bert.data.records.examples import Examples
from bert.modeling import checkpoints, networks
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import CLASSIFIER
from bert.runs import finetuning
from bert.runs.run_folder import RunFolder
from bert.tasks.classification.settings import Settings
from bert.tasks.classification.task import TextClassification
from tests.helpers import killed_runs, small
from tests.helpers.small import S, V

ROWS, STEPS, CLASSES, RATE = 23, 5, 3, 0.01
CONFIG = small.config(num_hidden_layers=1, hidden_dropout_prob=0.1)
TASK = TextClassification(None, Labels(names=("a", "b", "c")), S)


def make_run(folder, **named):
    """A run of the classifier, as a script makes it, and its settings."""
    settings = dataclasses.replace(
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
    model = ModelFolder.open(settings.init_checkpoint)
    path = str(folder)
    opened = RunFolder(path, path, CONFIG, settings=settings, model=model)
    return finetuning.build_trainer(opened, TASK, ROWS, "rows"), settings


def train(folder):
    """Trains as a script does; returns the number of the first batch."""
    rng = np.random.default_rng(3)
    rows = [
        {
            feature_names.INPUT_IDS: rng.integers(1, V, size),
            feature_names.SEGMENT_IDS: np.zeros(size, int),
            feature_names.LABEL_IDS: [size % CLASSES],
            feature_names.IS_REAL_EXAMPLE: [1],
        }
        for size in rng.integers(1, S + 1, ROWS)
    ]
    make, first = batching.training_batches, []

    def batches(rows, lengths, batch_size, seed, step, *rest):
        first.append(step)
        return make(rows, lengths, batch_size, seed, step, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batching, "training_batches", batches)
        run, settings = make_run(folder, do_train=True)
        examples = Examples(rows, TASK.schema)
        run.fit([finetuning.phase(settings, run, examples)])
    return first[0]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run that was never interrupted, its folder and its first batch."""
    folder = tmp_path_factory.mktemp("finetuning")
    return folder, train(folder)


def test_the_best_checkpoint_does_not_replace_the_given_weights(
    trained, tmp_path
):
    """A folder may have no checkpoint but the best, as after a kill."""
    folder, _ = trained
    best = tmp_path / "best"
    best.mkdir()
    for path in folder.glob("model.ckpt-2.*"):
        shutil.copy(path, best)
    other = str(folder / "model.ckpt-4")
    run, _ = make_run(tmp_path, init_checkpoint=other)
    run.state.restore_best()
    assert run.state.weights_step == 0
    read = tensor_files.read(other)
    for name, value in run.state.weights().items():
        np.testing.assert_array_equal(value, read[name])


def test_the_rate_warms_up_and_falls(trained):
    folder, _ = trained
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    rates = [json.loads(line)["learning_rate"] for line in lines]
    expected = [0, RATE / 2, *(RATE * (1 - i / STEPS) for i in range(2, STEPS))]
    assert rates == pytest.approx(expected)
    # So the first step, of rate 0, learns nothing.
    first, second = (
        tensor_files.read(str(folder / f"model.ckpt-{step}")) for step in (1, 2)
    )
    seed = Settings().random_seed
    network = networks.build(CONFIG, CLASSIFIER, CLASSES, seed)
    for name, variable in checkpoints.model_variables(network).items():
        np.testing.assert_array_equal(first[name], variable)
        assert (first[name] != second[name]).any(), name


def test_a_run_resumes_with_the_next_batch(trained):
    """To the same bits, when it was killed after its second checkpoint."""
    folder, first = trained
    before = killed_runs.losses(folder), killed_runs.digest(folder, STEPS)
    for step in range(3, STEPS + 1):
        for path in folder.glob(f"model.ckpt-{step}.*"):
            path.unlink()
    assert (first, train(folder)) == (0, 2)
    assert len(before[0]) == STEPS
    after = killed_runs.losses(folder), killed_runs.digest(folder, STEPS)
    assert after == before
