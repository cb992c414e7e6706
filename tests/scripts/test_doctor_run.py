"""doctor on the folder of a run: files, settings, curves."""

import json
import math

import pytest

import doctor
from checks import records
from checks import run as run_diagnosis
from modeling import models
from tasks.pretraining import inputs
from tests.helpers import model_files, pretraining_files, small, text
from training import saver

pytestmark = pytest.mark.slow

V = len(text.VOCABULARY)


@pytest.fixture(scope="module")
def values():
    """The variables of a fresh network."""
    model = models.build_pretraining_model(small.config(vocab_size=V), seed=7)
    return model_files.values_of(model)


@pytest.fixture
def run_folder(tmp_path, values):
    """A run of two checkpoints and its curves."""
    folder = tmp_path / "run"
    folder.mkdir()
    model_files.write_sizes(folder)
    settings = {
        "num_train_steps": 7,
        "num_warmup_steps": 2,
        "learning_rate": 1e-3,
        "do_lower_case": True,
        "strip_accents": True,
    }
    for step in (3, 7):
        saver.Saver(str(folder)).save(step, values, settings)
    write_curves(folder, 1.0)
    return folder


def write_curves(folder, last_norm):
    points = [
        {
            "step": step,
            "kind": "train",
            "masked_lm_loss": math.log(V) - step / 100,
            "next_sentence_loss": 0.69,
            "gradient_norm": last_norm if step == 7 else 1.0,
            "learning_rate": 5e-4,
        }
        for step in range(1, 8)
    ]
    lines = "".join(json.dumps(point) + "\n" for point in points)
    (folder / "metrics.jsonl").write_text(lines)


def test_a_healthy_run_raises_nothing(diagnose, run_folder):
    code, found = diagnose(output_dir=run_folder)
    assert (code, found["wrong"], found["suspicious"]) == (0, [], [])
    fine = "\n".join(found["fine"])
    assert f"{run_folder}: whole checkpoints: 3, 7" in fine
    assert f"{run_folder}/model.ckpt-7: " in fine
    assert f"{run_folder}/metrics.jsonl: step 7, masked_lm " in fine


def test_other_records_than_the_run_s(run_folder, tmp_path):
    """Those that count have the names that the run has read."""
    files = [str(tmp_path / name) for name in ("0.tfrecord", "1.tfrecord")]
    for path in files:
        pretraining_files.write_shard(path, [path.encode()])
    given = doctor.Settings(output_dir=str(run_folder)).with_files_of_run()
    read = inputs.Records(files[:1], [None], {})
    settings = {
        "input_file": "records/0.tf*",
        "records": run_diagnosis.fingerprint([read]),
    }

    def compare(**changed):
        found = run_diagnosis.compare_run(
            given,
            None,
            records.Scan(files[:1], listed=[None]),
            {**settings, **changed},
            "model.ckpt-7.json",
        )
        return [finding.message for finding in found]

    assert compare() == []
    assert compare(input_file="records/2.tf*", records="0") == []
    assert compare(records="0") == [
        f"{files[0]}: the run was trained on other records with these names; "
        "resume a run with the records that it started with"
    ]


def test_the_fingerprint_is_that_of_names_sizes_and_hashes(tmp_path):
    def of(name, content, sha256):
        path = tmp_path / name
        path.write_bytes(content)
        entry = {"shards": {name: {"sha256": sha256}}}
        read = inputs.Records([str(path)], [entry], {})
        return run_diagnosis.fingerprint([read])

    found = {of("a", b"x", "0"), of("b", b"x", "0"), of("a", b"xx", "0")}
    assert len(found | {of("a", b"x", "1")}) == 4
    assert of("a", b"x", "0") in found


def test_a_file_that_several_patterns_match_was_read_once():
    files = ["wiki/0.tfrecord", "books/0.tfrecord"]
    patterns = "wiki/*.tfrecord,books/*.tfrecord"
    assert run_diagnosis.trained_on(files, patterns) == files


def test_records_of_several_casings(run_folder):
    made = {"vocab_sha256": "0", "vocab_file": "v.txt", "strip_accents": True}
    listed = [
        {**made, "do_lower_case": x, "manifest": "m.json"}
        for x in (True, False, True)
    ]
    found = run_diagnosis._check_text(
        doctor.Settings(), None, None, records.Scan([], listed=listed)
    )
    (message,) = [x.message for x in found if x.level == "wrong"]
    assert message.endswith("make all records with one vocabulary and casing")


def test_records_of_another_casing(run_folder):
    given = doctor.Settings(output_dir=str(run_folder)).with_files_of_run()
    scan = records.Scan(
        ["0.tfrecord"],
        listed=[{"do_lower_case": False, "strip_accents": False}],
    )
    (found,) = run_diagnosis.compare_run(
        given, None, scan, {"do_lower_case": True}, "model.ckpt-7.json"
    )
    assert (found.level, found.message) == (
        "wrong",
        "model.ckpt-7.json: do_lower_case of the run is True; expected False, "
        "as for the records",
    )
