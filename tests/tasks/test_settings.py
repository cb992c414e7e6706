"""Flags of all scripts that train: their checks and effects."""

import dataclasses
import json

import numpy as np
import pytest

import run_classifier
import run_pretraining
from bert.common import command_line
from bert.common.errors import UserError
from bert.common.formats import tensor_files
from bert.modeling import checkpoints, networks, task_heads
from bert.runs import pretraining as pretraining
from bert.tasks.pretraining.inputs import Inputs
from bert.tasks.pretraining.settings import Settings
from bert.training.optimization import WarmupLinearDecay, WarmupStableDecay
from bert.training.settings import Training
from tests.helpers import (
    classifier_files,
    pretraining_runs,
    run_folders,
    small,
)
from tests.helpers.small import L


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
    inputs = Inputs.open(run_folders.opened(given).find_model())
    if refused is None:
        pretraining.build_trainer(inputs)
        return
    with pytest.raises(UserError, match=f"--{refused}; expected a multiple"):
        pretraining.build_trainer(inputs)


def test_fine_tuning_divides_its_batch_only_to_train(folder, tmp_path):
    named = {
        **classifier_files.flags_of(folder),
        "output_dir": tmp_path / "run",
        "gradient_accumulation_steps": 3,
    }
    argv = ["", *(f"--{name}={value}" for name, value in named.items())]

    def check(word):
        given = command_line.parse([*argv, word], run_classifier.Settings, "")
        run_folders.opened(given).find_model()

    check("--do_eval")
    with pytest.raises(UserError, match="--gradient_accumulation_steps=3"):
        check("--do_train")


@pytest.mark.slow
def test_pretraining_takes_them_all(folder, run_script, tmp_path):
    named = pretraining_runs.flags_of(
        folder / "records",
        tmp_path / "run",
        train_batch_size=8,
        num_train_steps=3,
        optimizer="lamb",
        precision="float16",
        gradient_accumulation_steps=4,
    )
    code, _, err = run_script(run_pretraining, "--do_train", **named)
    assert code == 0, err
    run = tmp_path / "run"
    saved = tensor_files.read(str(run / "model.ckpt-3"))
    assert saved.pop("global_step") == 3
    assert {value.dtype for value in saved.values()} == {np.dtype(np.float32)}
    lines = (run / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2, 3]
    assert not (saved["bert/pooler/dense/kernel/adam_v"] == 0).all()


def test_layers_have_rates_and_some_are_frozen():
    model = networks.build(small.config(), task_heads.CLASSIFIER, 5)
    named = checkpoints.model_variables(model)
    checkpoints.freeze_layers(named, 0)
    assert len(model.trainable_variables) == len(named)
    found = checkpoints.rate_factors(named, list(named.values()), 0.5, L)
    factors = dict(zip(named, found, strict=True))
    for name, factor in factors.items():
        expected = 1.0
        if "embeddings" in name:
            expected = 0.25
        elif "layer_0" in name:
            expected = 0.5
        assert factor == expected, name
    checkpoints.freeze_layers(named, 1)
    left = [name for name, x in named.items() if x.trainable]
    assert len(model.trainable_variables) == len(left)
    assert left == [name for name, x in factors.items() if x == 1.0]


@pytest.mark.slow
def test_fine_tuning_takes_them_all(folder, run_script, tmp_path):
    named = classifier_files.flags_of(folder) | {
        "output_dir": tmp_path / "run",
        "optimizer": "lamb",
        "precision": "bfloat16",
        "gradient_accumulation_steps": 7,
        "layer_decay": 0.5,
        "freeze_layers": 1,
        "num_train_epochs": 1,
    }
    code, _, err = run_script(run_classifier, "--do_train", **named)
    assert code == 0, err
    start = tensor_files.read(str(folder / "bert_model.ckpt"))
    (path,) = (tmp_path / "run").glob("model.ckpt-*.index")
    end = tensor_files.read(str(path.with_suffix("")))
    frozen = ("bert/embeddings/", "bert/encoder/layer_0/")
    assert not [
        name
        for name in end
        if name.startswith(frozen) and name.endswith(("adam_m", "adam_v"))
    ]
    for name, value in start.items():
        same = value.tobytes() == end[name].tobytes()
        assert same == name.startswith(frozen), name
