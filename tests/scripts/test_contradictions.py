"""Records, config and folder that contradict each other are rejected.

Each case is one line with what was found and what was expected, exit code 2,
before the first step and with nothing written.
"""

import json

import numpy as np
import pytest

import run_pretraining
from bert.training.saver import Saver
from tests.helpers import pretraining_runs, small, text
from tests.helpers.pretraining_files import VOCABULARY, write_records
from tests.helpers.small import P, S


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Good records, records that differ in one thing each, and a config."""
    folder = tmp_path_factory.mktemp("records")
    write_records(folder / "good" / "0.tfrecord", 5)
    write_records(folder / "cased" / "0.tfrecord", 5, do_lower_case=True)
    write_records(folder / "long" / "0.tfrecord", 5, length=13)
    write_records(folder / "longer" / "0.tfrecord", 5, length=17)
    write_records(folder / "accents" / "0.tfrecord", 5, strip_accents=True)
    more = {"max_predictions_per_seq": P + 1}
    write_records(folder / "more" / "0.tfrecord", 5, **more)
    write_records(folder / "other" / "0.tfrecord", 5)
    path = folder / "other" / "_0.manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "vocab_sha256": "0123" * 16}))
    (folder / "model").mkdir()
    (folder / "model" / "x.ckpt.meta").touch()  # a part of a checkpoint
    tokens = ["another" if x == "word7" else x for x in VOCABULARY]
    text.write_vocabulary(folder / "model" / "vocab.txt", tokens)
    (folder / "config.json").write_text(small.config().to_json())
    return folder


@pytest.fixture
def rejected(folder, tmp_path, run_script):
    """Runs the script; returns its one line, without `error: `."""

    def run(*words):
        before = sorted(tmp_path.rglob("*"))
        code, out, err = run_script(
            run_pretraining,
            "--do_train",
            *words,
            **pretraining_runs.flags_of(
                folder, tmp_path / "run", input_file=None, num_train_steps=7
            ),
        )
        assert code == 2, (out, err)
        assert sorted(tmp_path.rglob("*")) == before
        error = err.splitlines()[-1]
        assert error.startswith("error: ")
        assert "Traceback" not in err
        return error.removeprefix("error: ")

    return run


GOOD = "--input_file={0}/good/0.tfrecord"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            f"{GOOD},{{0}}/long/0.tfrecord",
            f"max_seq_length is 13; expected {S}, as in {{0}}/good/0",
        ),
        (
            f"{GOOD},{{0}}/more/0.tfrecord",
            f"max_predictions_per_seq is {P + 1}; expected {P}, as in {{0}}/go",
        ),
        (
            f"{GOOD},{{0}}/accents/0.tfrecord",
            "strip_accents is True; expected False, as in {0}/good/0.tfrecord",
        ),
        (
            "--input_file={0}/longer/0.tfrecord",
            "--max_seq_length=17; expected at most max_position_embeddings, 13",
        ),
        (
            f"{GOOD} --eval_input_file={{0}}/cased/0.tfrecord",
            "do_lower_case is True; expected False, as in {0}/good/0.tfrecord",
        ),
        (
            f"{GOOD} --eval_input_file={{0}}/other/0.tfrecord",
            "make all records with one vocabulary and casing",
        ),
        (
            f"{GOOD} --init_checkpoint={{0}}/model/x.ckpt",
            "token 'word7'; expected 'another', as in {0}/model/vocab.txt",
        ),
        (
            "--phases={0}/long/0.tfrecord:1,{0}/good/0.tfrecord:90",
            "--phases: 0 of 7 steps for '{0}/long/0.tfrecord'",
        ),
    ],
)
def test_records_that_do_not_belong_together(rejected, folder, flags, message):
    line = rejected(*(x.format(folder) for x in flags.split()))
    assert message.format(folder) in line


@pytest.mark.slow
def test_a_checkpoint_of_another_network(rejected, folder, tmp_path):
    saver = Saver(str(tmp_path / "run"))
    saver.save(3, {"bert/pooler/dense/bias": np.zeros(7, "f4")}, {})
    line = rejected(GOOD.format(folder))
    assert line.startswith(f"{tmp_path}/run: checkpoint 3 has ")
    assert "; pass another --output_dir" in line
