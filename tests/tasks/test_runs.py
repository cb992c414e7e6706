"""Decisions of a run that need no network: scores, steps, losses, phases."""

import os
import signal
import types

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from bert.common import main as common_main
from bert.common import tensorflow_log
from bert.common.errors import UserError
from bert.data.labels import CLASSES
from bert.data.records import reader
from bert.modeling import task_losses
from bert.modeling.task_heads import CLASSIFIER
from bert.reports import drawing
from bert.runs import (
    driver,
    finetuning,
    objectives,
    pretraining,
    signals,
    sweep,
    trained_run,
)
from bert.tasks.finetuning_settings import FineTuning
from bert.tasks.pretraining.inputs import Inputs, PhaseInputs
from bert.tasks.task import DEV, TEST, TRAIN, Evaluation, InputFile
from bert.training import workers
from bert.training.optimization import WarmupLinearDecay


class Labelling:
    """A task whose accuracy is the result of the first row."""

    name, prefix, joins_folds, compares_before = "x", "eval_", False, False

    def score(self, rows, encoded, results):
        losses = np.array([1.0, 2.0, 3.0])
        return Evaluation({"accuracy": results[0]}, {}, [], [], losses)

    def baselines(self, rows, encoded, train, settings):
        return {"accuracy/majority": len(train)}


def test_a_second_file_has_names_of_its_own():
    settings = types.SimpleNamespace(
        fits_decision=False, eval_batch_size=2, do_train=True, fold=0
    )
    folder = types.SimpleNamespace(settings=settings, model=None)
    files = {
        TRAIN: [InputFile("train.tsv", ["a", "b", "c"])],
        DEV: [
            InputFile("dev.tsv", ["d"], part="half"),
            InputFile("other.tsv", ["e"], subset="mm"),
        ],
        TEST: [],
    }
    run = trained_run.TrainedRun(folder, Labelling(), files, None)
    accuracies = {"dev.tsv": [0.75], "other.tsv": [0.25]}
    run._encoded = lambda file: [
        types.SimpleNamespace(rows=[row]) for row in file.rows
    ]
    run._results = lambda file: accuracies[file.path]
    metrics, report, _ = run.evaluate()
    # As in Estimator, the loss is a mean over batches.
    first = {"eval_accuracy": 0.75, "loss": 2.25}
    assert metrics == first | {"eval_mm_accuracy": 0.25}
    assert run.validate() == first
    assert report["rows"] == "half"
    assert report["references"] == {"eval_accuracy/majority": 3}
    # A later command that exports to int8 may have no training file.
    assert run._sample() == ["a", "b", "c"]
    files[TRAIN] = []
    assert run._sample() == ["d"]


def test_longer_texts_are_counted(capsys):
    trained_run.log_long_texts("a.tsv", [5, 6], 6)
    trained_run.log_long_texts("b.tsv", [5, 6, 7, 8], 6)
    assert capsys.readouterr().err.startswith(
        "warning: b.tsv: 2 of 4 texts are longer than 6 tokens and were "
    )


@hypothesis.given(
    st.integers(0, 500),
    st.integers(1, 64),
    st.floats(0.1, 9),
    st.floats(0, 1),
)
def test_steps_are_counted_as_in_the_original(count, size, epochs, warmup):
    settings = FineTuning(
        do_train=True,
        train_batch_size=size,
        num_train_epochs=epochs,
        warmup_proportion=warmup,
    )
    steps = int(count / size * epochs)
    if not steps:
        with pytest.raises(UserError, match="expected enough for one step"):
            finetuning.schedule(settings, count)
        return
    found = finetuning.schedule(settings, count)
    assert found.num_train_steps == steps
    assert found.num_warmup_steps == int(steps * warmup)


def test_class_weights_and_smoothing_are_of_the_loss():
    weights, smoothing = (0.5, 4.0), 0.25
    labels = types.SimpleNamespace(kind=CLASSES)
    task = types.SimpleNamespace(
        head=CLASSIFIER,
        labels=labels,
        class_weights=weights,
        prefix="eval_",
        metric="accuracy",
    )
    settings = types.SimpleNamespace(label_smoothing=smoothing, teacher=None)
    rate = WarmupLinearDecay(0.1, 7, 2)
    objective = objectives.objective_of(task, None, settings, rate)
    batch = {"label_ids": np.array([1, 0]), "is_real_example": np.ones(2)}
    outputs = {"logits": np.array([[0.5, -1.0], [2.0, 1.5]], np.float32)}
    found = objective.loss_sums(batch, outputs)["labels_loss"]
    expected = task_losses.class_sums(batch, outputs, weights, smoothing)
    np.testing.assert_allclose(found, expected["labels_loss"], rtol=1e-6)


def test_a_phase_counts_its_own_steps(monkeypatch):
    read = []
    monkeypatch.setattr(reader, "training_batches", lambda *x: read.append(x))
    monkeypatch.setattr(reader, "report_records", lambda *x: x)
    short, long = (
        types.SimpleNamespace(files=[x], schema={}, max_seq_length=7)
        for x in ("short", "long")
    )
    parts = [PhaseInputs(short, None, 4, 0, 14)]
    parts += [PhaseInputs(long, None, 3, 14, 19)]
    settings = types.SimpleNamespace(random_seed=5)
    inputs = Inputs(types.SimpleNamespace(settings=settings), parts)
    found = pretraining.phase(inputs, parts[1], 17)
    assert (found.end_step, found.batch_size) == (19, 3)
    found.batches(16)
    assert read == [(["long"], 17, {}, 3, 5, 2, (0, 1))]
    assert found.records_of(16) == (["long"], 17, 3, 5, 2)
    assert pretraining.evaluated(inputs) is long
    assert pretraining.evaluated(Inputs(None, parts, short)) is short


@pytest.mark.parametrize(
    ("variable", "value", "level"),
    [
        ("TF_CONFIG", "{}", "3"),
        ("SLURM_STEP_NUM_TASKS", "2", "3"),
        ("SLURM_STEP_NUM_TASKS", "1", None),
    ],
)
def test_tensorflow_is_silent_in_several_workers(
    monkeypatch, variable, value, level
):
    monkeypatch.delenv(tensorflow_log.LEVEL)
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(common_main, "run", lambda *_: 7)
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert signals.run(print) == 7
    finally:
        signal.signal(signal.SIGTERM, before)
    assert os.environ.get(tensorflow_log.LEVEL) == level


@pytest.mark.parametrize("is_chief", [True, False])
def test_a_run_has_the_report_of_its_first_worker(monkeypatch, is_chief):
    drawn, settings = [], types.SimpleNamespace(is_several=True)
    monkeypatch.setattr(drawing, "draw_trained", lambda *x: drawn.append(x))
    monkeypatch.setattr(sweep, "run", lambda *_: None)
    monkeypatch.setattr(workers, "is_chief", lambda: is_chief)
    driver.run(settings, None)
    assert drawn == [(settings, is_chief)]
