"""Records, runs and an export of earlier versions still load.

`tests/fixtures/earlier` was made by the version before files were opened
through `common.storage`, `tests/fixtures/1.0` by version 1.0.0.
"""

import json
import pathlib
import shutil

import numpy as np
import pytest

import run_classifier
import run_pretraining
from bert.common.formats import tensor_files
from bert.training import saver
from tests.helpers import archives, run_folders

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures"


@pytest.fixture(params=["earlier", "1.0"])
def folder(request, tmp_path):
    path = tmp_path / request.param
    shutil.copytree(FIXTURES / request.param, path)
    return path


@pytest.mark.usefixtures("eagerly")
def test_a_run_continues_on_its_records(folder, run_script):
    """Also with a schedule that was removed."""
    path = folder / "run" / "model.ckpt-2.json"
    recorded = json.loads(path.read_text())
    recorded["settings"]["schedule"] = "clock"
    recorded["state"]["trainer"]["seconds"] = 7.0
    path.write_text(json.dumps(recorded))
    code, _, err = run_script(
        run_pretraining,
        "--do_train",
        "--noreport",
        input_file=folder / "records" / "train.tfrecord",
        bert_config_file=folder / "run" / "bert_config.json",
        output_dir=folder / "run",
        num_train_steps=3,
        num_warmup_steps=1,
        train_batch_size=4,
        learning_rate=1e-3,
    )
    assert code == 0, err
    assert f"resuming from step 2 in {folder}/run" in err
    assert "checking every record" not in err
    assert "steps was 2, is 3" in err  # its settings are compared
    assert "--schedule was clock, is linear" in err
    is_old = folder.name == "earlier"
    assert ("dropout was version 1, is version 2" in err) == is_old
    assert saver.Saver(str(folder / "run")).saved_steps() == [2, 3]
    before, after = (
        tensor_files.read(str(folder / "run" / f"model.ckpt-{step}"))
        for step in (2, 3)
    )
    assert set(before) == set(after)
    points = run_folders.points(folder / "run")
    assert [point["step"] for point in points][-2:] == [2, 3]


def predict(run_script, script, folder, **named):
    """Predicts with the model in the folder of a run."""
    code, _, err = run_script(
        script,
        "--do_predict",
        vocab_file=folder / "vocab.txt",
        bert_config_file=folder / "bert_config.json",
        output_dir=folder,
        max_seq_length=13,
        **named,
    )
    assert code == 0, err


def test_a_classifier_predicts_as_before(folder, run_script):
    folder /= "classifier"
    expected = np.loadtxt(folder / "test_results.tsv")
    (folder / "test_results.tsv").unlink()
    predict(
        run_script, run_classifier, folder, task_name="mrpc", data_dir=folder
    )
    found = np.loadtxt(folder / "test_results.tsv")
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_an_export_is_refused(folder, ask):
    archives.unpack(folder / "export.tar.xz", folder)
    code, answers, err = ask(folder / "export", b"a cat\tthe dog\n")
    assert (code, answers) == (2, [])
    assert "if an earlier version exported it, export it again" in err


def test_a_run_answers_as_its_export_did(ask):
    """Runs before 1.0 do not record whether texts are pairs."""
    folder = FIXTURES / "1.0"
    questions = b"a cat sees\tthe dog\nthe tree\ta bird finds\n"
    code, answers, err = ask(folder / "classifier", questions)
    assert code == 0, err
    expected = (folder / "answers.jsonl").read_text().splitlines()
    assert len(answers) == len(expected) == 2
    for answer, line in zip(answers, map(json.loads, expected), strict=True):
        assert answer["label"] == line["label"]
        for label, share in line["probabilities"].items():
            found = answer["probabilities"][label]
            assert found == pytest.approx(share, abs=1e-5)
