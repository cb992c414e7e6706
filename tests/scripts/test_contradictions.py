"""Flags, records, config and folder that contradict each other are rejected.

Each case is one line with what was found and what was expected, exit code 2,
before the first step and with nothing written.
"""

import json

import numpy as np
import pytest

import run_pretraining
from tests.helpers import small
from tests.helpers.pretraining_files import write_records
from tests.helpers.small import P, S, V
from training.saver import Saver


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Good records, records that differ in one thing each, and configs."""
    folder = tmp_path_factory.mktemp("made")
    write_records(folder / "good" / "0.tfrecord", 5)
    write_records(folder / "good" / "1.tfrecord", 3, seed=2)
    write_records(folder / "cased" / "0.tfrecord", 5, do_lower_case=True)
    write_records(folder / "long" / "0.tfrecord", 5, length=13)
    write_records(folder / "longer" / "0.tfrecord", 5, length=17)
    write_records(folder / "large" / "0.tfrecord", 5, vocab_size=V + 2)
    write_records(folder / "other" / "0.tfrecord", 5)
    path = folder / "other" / "_0.manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "vocab_sha256": "0123" * 16}))
    (folder / "config.json").write_text(small.config().to_json())
    (folder / "deep.json").write_text(
        small.config(num_hidden_layers=3).to_json()
    )
    return folder


@pytest.fixture
def rejected(made, tmp_path, run_script):
    """Runs the script; returns its one line, without `error: `."""

    def run(*words, **named):
        named = {
            "input_file": made / "good" / "0.tfrecord",
            "bert_config_file": made / "config.json",
            "output_dir": tmp_path / "run",
            "num_train_steps": 7,
            "train_batch_size": 4,
            **named,
        }
        named = {name: x for name, x in named.items() if x is not None}
        before = sorted(tmp_path.rglob("*"))
        code, out, err = run_script(
            run_pretraining, "--do_train", *words, **named
        )
        assert code == 2, (out, err)
        assert sorted(tmp_path.rglob("*")) == before
        error = err.splitlines()[-1]
        assert error.startswith("error: ")
        assert "Traceback" not in err
        return error.removeprefix("error: ")

    return run


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            {"max_seq_length": 13},
            f"max_seq_length is {S}; expected 13, as of the flags; omit",
        ),
        (
            {"max_predictions_per_seq": 5},
            f"max_predictions_per_seq is {P}; expected 5, as of the flags",
        ),
        (
            {"input_file": "{made}/good/0.tfrecord,{made}/long/0.tfrecord"},
            f"max_seq_length is 13; expected {S}, as of {{made}}/good/0",
        ),
        (
            {"input_file": "{made}/longer/0.tfrecord"},
            "--max_seq_length=17; expected at most max_position_embeddings, 13",
        ),
        (
            {"input_file": "{made}/large/0.tfrecord"},
            f"vocab_size is {V}; expected at least {V + 2}, the tokens of",
        ),
        (
            {"eval_input_file": "{made}/cased/0.tfrecord"},
            "do_lower_case is True; expected False, as of {made}/good/0.tfr",
        ),
        (
            {"eval_input_file": "{made}/other/0.tfrecord"},
            "make all records with one vocabulary and casing",
        ),
        (
            {"eval_input_file": "{made}/longer/0.tfrecord"},
            "expected at most max_position_embeddings, 13",
        ),
        (
            {"phases": "{made}/good/0.tfrecord:1"},
            "both --input_file and --phases; expected one of them",
        ),
        (
            {"input_file": None},
            "neither --input_file nor --phases; expected one of them",
        ),
        (
            {"input_file": None, "phases": "{made}/good/0.tfrecord"},
            "--phases: '{made}/good/0.tfrecord'; expected files:share or file",
        ),
        (
            {"input_file": None, "phases": "{made}/good/0.tfrecord:0"},
            "--phases: '{made}/good/0.tfrecord:0'; expected files:share or f",
        ),
        (
            {
                "input_file": None,
                "phases": "{made}/long/0.tfrecord:1,{made}/good/0.tfrecord:90",
            },
            "--phases: none of 7 steps for '{made}/long/0.tfrecord'",
        ),
        (
            {"input_file": None, "phases": "{made}/none*:1"},
            "--phases='{made}/none*' matches no file",
        ),
        (
            {
                "input_file": None,
                "phases": "{made}/good/0.tfrecord:1,{made}/long/0.tfrecord:1",
                "max_seq_length": S,
            },
            f"max_seq_length is 13; expected {S}, as of the flags",
        ),
        (
            {
                "input_file": None,
                "phases": "{made}/good/0.tfrecord:1,{made}/cased/0.tfrecord:1",
            },
            "make all records with one vocabulary and casing",
        ),
        (
            {
                "input_file": None,
                "phases": "{made}/good/0.tfrecord:1,{made}/long/0.tfrecord:1:6",
                "distribution": "mirrored",
            },
            "--train_batch_size=6; expected a multiple of 4",
        ),
        (
            {
                "eval_input_file": "{made}/good/1.tfrecord",
                "eval_batch_size": 6,
                "distribution": "mirrored",
            },
            "--eval_batch_size=6; expected a multiple of 4",
        ),
        (
            {"early_stopping_patience": 3},
            "--early_stopping_patience=3; expected --eval_input_file",
        ),
        (
            {
                "early_stopping_patience": 3,
                "eval_input_file": "{made}/good/0.tfrecord",
                "eval_steps": 0,
            },
            "--early_stopping_patience=3; expected --eval_input_file and",
        ),
        ({"train_for": "soon"}, "--train_for=soon; expected a time such as"),
    ],
)
def test_flags_and_records(rejected, made, flags, message):
    flags = {
        name: x.format(made=made) if isinstance(x, str) else x
        for name, x in flags.items()
    }
    assert message.format(made=made) in rejected(**flags)


def test_a_folder_with_another_vocabulary(rejected, made, tmp_path):
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "vocab.txt"
    (source,) = (made / "good").glob("vocab-*.txt")
    path.write_text(source.read_text() + "another\n")
    line = rejected()
    assert line.startswith(f"{source}:")
    assert line.endswith(
        f": the end; expected 'another', as in {path}; pass another "
        "--output_dir, or the run's vocabulary"
    )


def test_a_folder_with_another_network(rejected, made, tmp_path):
    (tmp_path / "run").mkdir()
    config = (made / "deep.json").read_text()
    (tmp_path / "run" / "bert_config.json").write_text(config)
    assert "holds a run with another config" in rejected()


@pytest.mark.slow
def test_a_checkpoint_of_another_network(rejected, tmp_path):
    saver = Saver(str(tmp_path / "run"))
    saver.save(3, {"bert/pooler/dense/bias": np.zeros(7, "f4")}, {})
    line = rejected()
    assert line.startswith(f"{tmp_path}/run: checkpoint 3 has ")
    assert "; pass another --output_dir" in line
