"""Decisions of a run that need no network: scores, steps, losses, phases."""

import contextlib
import dataclasses
import json
import os
import signal
import types

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from bert.common import flags, tensorflow_log
from bert.common import main as common_main
from bert.common.errors import UserError
from bert.data.labels import CLASSES, Labels
from bert.data.records import reader
from bert.data.tables import InputFile
from bert.inference import teacher_outputs
from bert.modeling import checkpoints, networks, task_losses
from bert.modeling.formats import checkpoint_files
from bert.modeling.task_heads import CLASSIFIER
from bert.reports import drawing
from bert.runs import (
    driver,
    exporting,
    file_results,
    finetuning,
    objectives,
    opening,
    pretraining,
    program_cache,
    scoring,
    signals,
    start,
    sweep,
    written_files,
)
from bert.tasks.classification.settings import Settings as ClassifierSettings
from bert.tasks.classification.task import TextClassification
from bert.tasks.finetuning_settings import FineTuning
from bert.tasks.pretraining.inputs import Inputs, PhaseInputs
from bert.tasks.run import OutputFolder, Trained
from bert.tasks.squad.settings import Settings as SquadSettings
from bert.tasks.task import DEV, TEST, TRAIN, Evaluation
from bert.training import collectives, workers
from bert.training.optimization import WarmupLinearDecay
from tests.helpers import model_files, run_folders, small

FOLDS = [{"num_folds": 2, "fold": x} for x in (1, 2)]
# The second of several seeds, whose rows are those of the first.
SEED = {"eval_fraction": 0.3, "random_seed": 8, "first_seed": 7}


class Labelling:
    """A task whose accuracy is the result of the first row."""

    name, prefix, joins_folds, compares_before = "x", "eval_", False, False

    def score(self, rows, encoded, results):
        losses = np.array([1.0, 2.0, 3.0])
        return Evaluation({"accuracy": results[0]}, {}, [], [], losses)

    def baselines(self, rows, encoded, train, settings):
        return {"accuracy/majority": len(train)}


def test_a_second_file_has_names_of_its_own():
    settings = FineTuning(do_train=True, eval_batch_size=2)
    run = run_folders.made(dataclasses.replace(settings, output_dir="run"))
    files = {
        TRAIN: [InputFile("train.tsv", ["a", "b", "c"])],
        DEV: [
            InputFile("dev.tsv", ["d"], part="half"),
            InputFile("other.tsv", ["e"], subset="mm"),
        ],
        TEST: [],
    }
    accuracies = {"dev.tsv": [0.75], "other.tsv": [0.25]}
    computed = types.SimpleNamespace(
        encoded=lambda file: [
            types.SimpleNamespace(sequences=[row]) for row in file.rows
        ],
        evaluated=lambda file, engine=None: accuracies[file.path],
    )
    trainer = types.SimpleNamespace(named={})
    found = scoring.evaluate(run, Labelling(), files, computed, trainer)
    # As in Estimator, the loss is a mean over batches.
    first = {"eval_accuracy": 0.75, "loss": 2.25}
    assert found.metrics == first | {"eval_mm_accuracy": 0.25}
    assert found.report["rows"] == "half"
    assert found.report["references"] == {"eval_accuracy/majority": 3}
    # A later command that exports to int8 may have no training file.
    assert exporting._sample(files, computed) == ["a", "b", "c"]
    files[TRAIN] = []
    assert exporting._sample(files, computed) == ["d"]


@pytest.mark.parametrize(
    ("changes", "fits", "is_chief", "expected"),
    [
        (True, True, True, [{"kind": "x", "tuned_step": 5}]),
        (True, False, True, [{"kind": "x"}]),
        (True, True, False, []),
        (False, False, True, []),
    ],
)
def test_a_decision_is_recorded_with_the_step_of_its_weights(
    monkeypatch, changes, fits, is_chief, expected
):
    written = []
    monkeypatch.setattr(
        checkpoint_files, "write_task", lambda _, x: written.append(x)
    )
    monkeypatch.setattr(opening, "has_checkpoint", lambda path: path == "run")
    settings = types.SimpleNamespace(
        changes_decision=changes, fits_decision=fits
    )
    folder = OutputFolder("run", "run" if is_chief else "shared")
    run = types.SimpleNamespace(settings=settings, output_folder=folder)
    task = types.SimpleNamespace(to_json=lambda: {"kind": "x"})
    scoring.record_decision(run, task, 5)
    assert written == expected


def test_longer_texts_are_counted(capsys):
    file_results.log_long_texts("a.tsv", [5, 6], 6)
    file_results.log_long_texts("b.tsv", [5, 6, 7, 8], 6)
    assert capsys.readouterr().err.startswith(
        "warning: b.tsv: 2 of 4 texts are longer than 6 tokens and were "
    )
    file_results.log_long_texts("c.tsv", [5, 7], 6, reads_windows=True)
    assert capsys.readouterr().err.startswith(
        "note: c.tsv: 1 of 2 texts are longer than 6 tokens and are read in "
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
        learning_rate=0.7,
    )
    steps = int(count / size * epochs)
    if not steps:
        with pytest.raises(UserError, match="expected enough for one step"):
            finetuning.schedule_of(settings, count)
        return
    found = finetuning.schedule_of(settings, count)
    assert found.peak == 0.7
    assert found.num_train_steps == steps
    assert found.num_warmup_steps == int(steps * warmup)


def test_class_weights_and_smoothing_are_of_the_loss():
    weights, smoothing = (0.5, 4.0), 0.25
    labels = Labels(CLASSES, ("a", "b"))
    task = TextClassification(None, labels, 7, class_weights=weights)
    settings = ClassifierSettings(label_smoothing=smoothing)
    rate = WarmupLinearDecay(0.1, 7, 2)
    objective = objectives.objective_of(task, None, settings, rate)
    (loss,) = objective.losses
    assert isinstance(loss, task_losses.ClassLoss)
    assert (loss.weights, loss.smoothing) == (weights, smoothing)


def write_trained(folder, **task):
    """Files of a run of run_squad.py, without weights."""
    (folder / "checkpoint").touch()
    task = {"kind": "spans", "labels": [], "doc_stride": 13, **task}
    (folder / "task.json").write_text(json.dumps(task))


@pytest.mark.parametrize(
    ("steps", "threshold"), [("predict", 1.5), ("train", 0)]
)
def test_a_threshold_is_not_that_of_weights_that_are_trained(
    tmp_path, steps, threshold
):
    write_trained(tmp_path, null_score_diff_threshold=1.5, tuned_step=7)
    named = {f"{steps}_file": "x", "output_dir": tmp_path}
    settings = run_folders.parse(SquadSettings, f"--do_{steps}", **named)
    found = run_folders.opened(settings).settings
    assert found.null_score_diff_threshold == threshold


def test_a_resumed_run_does_not_need_its_initial_checkpoint(tmp_path):
    model_files.write_sizes(tmp_path)
    (tmp_path / "checkpoint").touch()
    settings = run_folders.parse(
        SquadSettings,
        "--do_train",
        output_dir=tmp_path,
        train_file="x",
        init_checkpoint=tmp_path / "gone" / "model.ckpt",
        max_seq_length=small.POSITIONS,
        max_query_length=3,
    )
    with opening.open_run(settings) as run:
        assert run.config.hidden_size == small.H


def identified(recorded="", sha256="ab", **changed):
    """The description of the examples of a run, which may be resumed."""
    settings = dataclasses.replace(ClassifierSettings(), **changed)
    settings = dataclasses.replace(settings, output_dir="run")
    trained = None
    if recorded:
        trained = Trained("run", True, None, {"records": recorded})
    run = run_folders.made(settings, trained=trained)
    task = TextClassification(None, Labels(), 7)
    file = InputFile("train.tsv", sha256=sha256)
    return finetuning.training_data(run, task, [file]).digest


@pytest.mark.parametrize(
    ("changed", "is_advised"),
    [
        ({}, True),
        ({"eval_fraction": 0.3}, False),
        (FOLDS[0], False),
        (SEED, False),
    ],
)
def test_a_run_is_identified_by_its_data_and_rows(changed, is_advised):
    """Weights that may have seen held-out rows are not advised."""
    digests = {identified(**x) for x in ({}, *FOLDS, SEED)}
    assert len(digests) == 4
    first = SEED | {"random_seed": 7}
    assert identified(**first) == identified(eval_fraction=0.3)
    recorded = identified(**changed)
    assert identified(recorded, **changed) == recorded
    with pytest.raises(UserError, match="other training data") as caught:
        identified(recorded, "cd", **changed)
    assert ("--init_checkpoint=run" in str(caught.value)) == is_advised


@pytest.mark.parametrize(
    ("step", "warmup", "message"),
    [
        (3, 6, ""),
        (3, 7, "warning: 7 of 7 steps are warm-up"),
        (7, 7, "finished: run is at step 7 of 7"),
        (8, 0, None),
    ],
)
def test_the_step_of_a_run_is_compared_with_its_last(
    capsys, step, warmup, message
):
    trainer = types.SimpleNamespace(
        settings=types.SimpleNamespace(output_dir="run"),
        step=step,
        objective=types.SimpleNamespace(num_steps=7, num_warmup_steps=warmup),
    )
    if message is None:
        with pytest.raises(UserError, match="the checkpoint is at step 8"):
            start.check_step(trainer)
        return
    start.check_step(trainer)
    err = capsys.readouterr().err
    assert err.startswith(message) and bool(err) == bool(message)


def test_workers_need_the_same_settings_but_other_paths_may_differ(monkeypatch):
    words = "--do_train", "--max_time=7m"
    settings = run_folders.parse(SquadSettings, *words, train_file="a.json")
    compared, assigned = [], []
    monkeypatch.setattr(
        collectives, "check_settings", lambda _, x: compared.append(x)
    )
    monkeypatch.setattr(start, "initialize", lambda *_: ["a"])
    monkeypatch.setattr(start, "check_step", assigned.append)
    trainer = types.SimpleNamespace(
        settings=settings,
        description={**flags.as_dict(settings), "records": "7 of a"},
        restore=lambda: None,
        train_step=types.SimpleNamespace(strategy=None),
    )
    monkeypatch.setattr(written_files, "write_inputs", lambda *_: None)
    run = run_folders.made(settings)
    assert start.restore_or_initialize(trainer, run)
    (found,) = compared
    assert found["--train_file"] is True and found["--init_checkpoint"] is False
    assert found["--train_batch_size"] == settings.train_batch_size
    assert found["records"] == "7 of a" and "--max_time" not in found
    assert assigned == [trainer]

    # The checkpoint of a run replaces the initial weights.
    monkeypatch.setattr(start, "initialize", lambda *_: assigned.append("a"))
    trainer.settings = dataclasses.replace(settings, do_train=False)
    trainer.restore = lambda: "restored"
    assert not start.restore_or_initialize(trainer, run)
    assert assigned == [trainer]


def test_only_training_may_start_with_a_random_head(capsys):
    network = networks.build(small.config(), CLASSIFIER, 3)
    named = checkpoints.model_variables(network)
    values = {
        name: x.numpy()
        for name, x in named.items()
        if not name.startswith("output_")
    }
    model = types.SimpleNamespace(
        path="a", resolve=lambda: "a.ckpt", weights=lambda _: (values, None)
    )

    def assign(trains):
        settings = types.SimpleNamespace(
            do_train=trains, output_dir="run", resume_optimizer=False
        )
        trainer = types.SimpleNamespace(settings=settings, named=named)
        return start.initialize(trainer, model)

    assert assign(True) == ["output_weights", "output_bias"]
    fresh = "fresh: output_weights, output_bias"
    assert capsys.readouterr().err == f"starting from a.ckpt; {fresh}\n"
    with pytest.raises(UserError, match="a.ckpt: .*output_weights"):
        assign(False)


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
    run = types.SimpleNamespace(settings=settings, tokenizer=None)
    inputs = Inputs(parts, None, small.config(), None)
    found = pretraining.phase(run, inputs, parts[1], 17)
    assert (found.end_step, found.batch_size) == (19, 3)
    found.batches(16)
    assert read == [(["long"], 17, {}, 3, 5, 2, (0, 1))]
    assert found.records_of(16) == (["long"], 17, 3, 5, 2)
    assert pretraining.evaluated(inputs) is long
    held_out = dataclasses.replace(inputs, held_out=short)
    assert pretraining.evaluated(held_out) is short


@pytest.mark.parametrize(("given", "level"), [(None, "3"), ("1", "1")])
def test_tensorflow_is_silent_in_training_scripts(monkeypatch, given, level):
    monkeypatch.delenv(tensorflow_log.LEVEL)
    if given:
        monkeypatch.setenv(tensorflow_log.LEVEL, given)
    monkeypatch.setattr(common_main, "run", lambda *_: 7)
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert signals.run(print) == 7
    finally:
        signal.signal(signal.SIGTERM, before)
    assert os.environ.get(tensorflow_log.LEVEL) == level


@pytest.mark.parametrize("is_chief", [True, False])
def test_several_runs_have_one_report(monkeypatch, is_chief):
    drawn, trained = [], []
    settings = types.SimpleNamespace(is_several=True)
    run = types.SimpleNamespace(settings=settings, config=None)

    def run_twice(settings, run_one):
        run_one(settings)
        run_one(settings)

    monkeypatch.setattr(sweep, "run", run_twice)
    opened = contextlib.nullcontext(run)
    monkeypatch.setattr(opening, "open_run", lambda _: opened)
    monkeypatch.setattr(teacher_outputs, "check", lambda *_: None)
    monkeypatch.setattr(program_cache, "use", lambda _: None)
    monkeypatch.setattr(
        finetuning, "train_and_evaluate", lambda *x: trained.append(x)
    )
    monkeypatch.setattr(drawing, "draw_trained", lambda *x: drawn.append(x))
    monkeypatch.setattr(workers, "is_chief", lambda: is_chief)
    driver.run(settings, lambda _: ("task", "files"))
    assert trained == [(run, "task", "files")] * 2
    assert drawn == [(settings, is_chief)]
