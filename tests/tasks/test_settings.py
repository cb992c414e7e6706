"""Flags of all scripts that train: their checks and effects."""

import dataclasses

import pytest

import run_classifier
import run_pretraining
from bert.common import command_line
from bert.common.errors import UserError
from bert.runs import opening, pretraining
from bert.tasks.pretraining.settings import Settings
from bert.training.optimization import WarmupLinearDecay, WarmupStableDecay
from bert.training.settings import Training
from tests.helpers import (
    classifier_files,
    pretraining_runs,
    run_folders,
    small,
)


def test_steps_to_profile_are_a_range():
    assert Training(profile_steps="1:20").steps_to_profile == (1, 20)


def test_the_time_of_a_run_has_a_unit():
    assert Training(max_time="1.5m").seconds == 90


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({}, WarmupLinearDecay(0.7, 11, 3)),
        ({"schedule": "constant"}, WarmupStableDecay(0.7, 11, 3)),
        (
            {"schedule": "wsd", "num_decay_steps": 5},
            WarmupStableDecay(0.7, 11, 3, 5),
        ),
    ],
)
def test_flags_choose_the_schedule(named, expected):
    steps = {"num_train_steps": 11, "num_warmup_steps": 3}
    settings = dataclasses.replace(
        Settings(), learning_rate=0.7, **steps, **named
    )
    found = pretraining.schedule(settings)
    assert type(found) is type(expected) and vars(found) == vars(expected)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("training_flags")
    classifier_files.write_model(folder)
    classifier_files.write_task(folder)
    (folder / "records").mkdir()
    pretraining_runs.write(folder / "records")
    return folder


@pytest.mark.parametrize(
    ("words", "train", "held_out", "refused"),
    [
        (["--do_train"], 8, False, None),
        (["--do_train"], 6, False, "train_batch_size=6"),
        (["--do_train"], 8, True, "eval_batch_size=6"),
        (["--do_eval"], 6, False, "eval_batch_size=6"),
        (["--do_eval", "--eval_batch_size=4"], 7, False, None),
        (["--do_eval", "--do_train"], 8, False, "eval_batch_size=6"),
    ],
)
def test_only_batches_that_are_computed_must_divide_over_the_devices(
    folder, tmp_path, monkeypatch, words, train, held_out, refused
):
    monkeypatch.setattr(
        pretraining.start, "restore_or_initialize", lambda *_: None
    )
    named = pretraining_runs.flags_of(
        folder / "records",
        tmp_path / "run",
        train_batch_size=train,
        eval_batch_size=6,
        gradient_accumulation_steps=2,
        distribution="mirrored",
    )
    if held_out:
        named["eval_input_file"] = folder / "records/held_out.tfrecord"
    argv = ["", *(f"--{name}={value}" for name, value in named.items())]
    given = command_line.parse([*argv, *words], run_pretraining.Settings, "")
    with opening.open_pretraining(given) as opened:
        if refused is None:
            pretraining.build_trainer(*opened)
            return
        with pytest.raises(UserError, match=f"--{refused}; expected a multip"):
            pretraining.build_trainer(*opened)


def test_fine_tuning_divides_its_batch_only_to_train(folder, tmp_path):
    """An evaluation takes any number; and all layers may be frozen."""
    settings = run_folders.parse(
        run_classifier.Settings,
        "--do_eval",
        **classifier_files.flags_of(folder),
        output_dir=tmp_path / "run",
        gradient_accumulation_steps=3,
        freeze_layers=small.L,
    )
    with opening.open_run(settings):
        pass
