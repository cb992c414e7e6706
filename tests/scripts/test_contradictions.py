"""Flags, records, config and folder that contradict each other are rejected.

Each case is one line with what was found and what was expected, exit code 2,
before the first step and with nothing written.
"""

import json

import numpy as np
import pytest

import run_pretraining
from data import features
from data.records import encoding, writer
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
        ({"num_train_steps": 0}, "num_train_steps"),
        ({"learning_rate": -0.1}, "learning_rate"),
    ],
)
def test_flags_and_records(rejected, made, flags, message):
    flags = {
        name: x.format(made=made) if isinstance(x, str) else x
        for name, x in flags.items()
    }
    assert message.format(made=made) in rejected(**flags)


def damaged(path, name, index, value):
    """A shard without a manifest that has one value of another kind."""
    batch = small.batch(1, 5)
    schema = features.pretraining_schema(S, P)
    arrays = {
        name: batch[name].astype("i8" if kind == "int64" else "f4")
        for name, (kind, _) in schema.items()
    }
    if value is None:
        del arrays[name]
    elif index is None:
        arrays[name] = np.repeat(arrays[name], value, 1)
    else:
        arrays[name][index] = value
    writer.write_records(str(path), encoding.encode_examples(arrays))
    return path


@pytest.mark.parametrize("words", [(), ("--use_xla",)], ids=["plain", "xla"])
@pytest.mark.parametrize(
    ("name", "index", "value", "message"),
    [
        (
            "input_ids",
            (3, 2),
            V,
            f"record 3: input_ids has {V}; expected 0 to ",
        ),
        ("input_ids", (3, 2), -1, "record 3: input_ids has -1; expected 0 to "),
        ("masked_lm_ids", (2, 0), V, f"record 2: masked_lm_ids has {V}; expec"),
        (
            "masked_lm_positions",
            (4, 1),
            S,
            f"record 4: masked_lm_positions has {S}; expected 0 to {S - 1}",
        ),
        ("segment_ids", (0, 1), 2, "record 0: segment_ids has 2; expected 0 t"),
        (
            "next_sentence_labels",
            (1, 0),
            2,
            "record 1: next_sentence_labels has 2; expected 0 to 1",
        ),
        ("input_mask", None, 2, f"input_mask has {2 * S} values; expected {S}"),
        (
            "masked_lm_weights",
            None,
            None,
            "no masked_lm_weights; expected records",
        ),
    ],
)
def test_numbers_that_devices_would_not_reject(
    rejected, tmp_path, words, name, index, value, message
):
    path = damaged(tmp_path / "bare.tfrecord", name, index, value)
    line = rejected(*words, input_file=path)
    assert line.startswith(f"{path}: ")
    assert message in line


def test_lengths_of_bare_records_are_compared_with_the_flags(
    rejected, tmp_path
):
    path = damaged(tmp_path / "bare.tfrecord", "input_ids", (0, 0), 1)
    line = rejected(input_file=path, max_seq_length=13)
    assert f"record 0: input_ids has {S} values; expected 13" in line


def test_a_byte_that_was_changed(rejected, made, tmp_path):
    for path in (made / "good").glob("*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    path = tmp_path / "0.tfrecord"
    content = bytearray(path.read_bytes())
    content[-20] ^= 4
    path.write_bytes(content)
    line = rejected(input_file=path)
    assert line.startswith(f"{path}: record 4 at byte ")


def test_records_of_another_seed_under_a_listed_name(rejected, made, tmp_path):
    """Valid records of the listed size, but not the listed ones."""
    write_records(tmp_path / "new" / "0.tfrecord", 5, seed=3)
    manifest = tmp_path / "new" / "_0.manifest.json"
    listed = (made / "good" / "_0.manifest.json").read_bytes()
    size = (made / "good" / "0.tfrecord").stat().st_size
    path = tmp_path / "new" / "0.tfrecord"
    assert path.stat().st_size == size
    manifest.write_bytes(listed)
    line = rejected(input_file=path)
    assert "not the records that were written" in line


def test_a_folder_with_another_vocabulary(rejected, made, tmp_path):
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "vocab.txt"
    path.write_text("[PAD]\n")
    line = rejected()
    assert line.startswith(f"{made}/good/vocab-")
    assert line.endswith(
        f".txt:2: token '[UNK]'; expected the end, as in {path}; pass another "
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


@pytest.mark.slow
def test_too_little_disk_space(rejected, monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    line = rejected()
    assert "run: 1,000 bytes free; expected at least " in line
    assert ", for two checkpoints; free disk space" in line
