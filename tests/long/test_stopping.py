"""Fine-tuning that is stopped and resumed; only in `make test-long`."""

import os
import signal

import pytest

import run_swag
from bert.training import logs
from bert.training.saver import Saver
from tests.helpers import killed_runs, model_files, swag_files

pytestmark = pytest.mark.long
STEPS = 13


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("swag")
    model_files.write_sizes(
        folder,
        "config.json",
        swag_files.VOCABULARY,
        hidden_size=24,
        num_hidden_layers=1,
        num_attention_heads=3,
        intermediate_size=37,
        max_position_embeddings=swag_files.S,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
    )
    swag_files.write_csv(folder / "train.csv", STEPS * 7, 1)
    swag_files.write_csv(folder / "val.csv", 31, 2)
    return folder


@pytest.fixture
def tune(folder, run_script):
    def run(output, code=0, **changed):
        flags = swag_files.flags_of(
            folder,
            train_file=folder / "train.csv",
            eval_file=folder / "val.csv",
            output_dir=output,
            **{
                "num_train_epochs": 1,
                "train_batch_size": 7,
                "learning_rate": 1e-3,
                "eval_steps": 3,
                "log_steps": 4,
                "iterations_per_loop": 1,
                **changed,
            },
        )
        found, _, err = run_script(run_swag, "--do_train", "--do_eval", *flags)
        assert found == code, err
        return err

    return run


def test_stopped_fine_tuning_ends_with_the_same_bits(
    tune, tmp_path, monkeypatch
):
    straight, stopped = tmp_path / "straight", tmp_path / "stopped"
    tune(straight)
    tell = logs.log_training

    def told(now, *rest):
        tell(now, *rest)
        if now == 8:
            os.kill(os.getpid(), signal.SIGTERM)

    err = tune(stopped, train_for="0.2s")
    assert "stopped at step 1 of 13, which is saved: the time of" in err
    monkeypatch.setattr(logs, "log_training", told)
    err = tune(stopped, 75)
    assert "stopped at step 8 of 13, which is saved: SIGTERM" in err
    tune(stopped)
    assert killed_runs.losses(stopped) == killed_runs.losses(straight)
    for folder in ("", "best"):
        ends = []
        for run in (straight, stopped):
            run = run / folder
            step = Saver(str(run)).steps()[-1]
            ends.append((step, killed_runs.digest(run, step)))
        assert ends[0] == ends[1]
