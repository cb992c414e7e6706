"""Command lines of scripts that train: who claims the folder."""

import json
import signal

import pytest
import tensorflow as tf

from common import locks
from common import main as common_main
from common.errors import UserError
from tasks import main as tasks_main
from tasks.features import settings as features_settings
from tasks.pretraining.settings import Settings
from training import workers


@pytest.fixture
def ended(monkeypatch, tmp_path):
    """Ends the script after the test."""
    monkeypatch.setattr(workers, "_folders", None)  # of other workers
    monkeypatch.chdir(tmp_path)
    yield
    common_main.run(lambda argv: None, [])  # the script ends
    assert not (tmp_path / "run").exists()


def parse(*words):
    required = ("--bert_config_file=a.json", "--output_dir=run")
    return tasks_main.parse(["script", *required, *words], Settings, "")


@pytest.mark.parametrize(("index", "expected"), [(0, True), (1, None)])
def test_of_several_workers_the_first_has_a_report(
    ended, monkeypatch, index, expected
):
    cluster = {
        "cluster": {"worker": ["a:1", "b:2"]},
        "task": {"type": "worker", "index": index},
    }
    monkeypatch.setenv("TF_CONFIG", json.dumps(cluster))
    monkeypatch.setattr("sys.stdout", None)  # restored afterwards
    assert parse("--do_train").training.report is expected


def test_a_run_that_trains_claims_its_folder(ended, tmp_path):
    parse("--do_train")
    with pytest.raises(UserError, match=r"^run: in use by process \d+ on "):
        parse("--do_train")
    parse("--do_eval")


@pytest.mark.parametrize(("index", "fails"), [(0, True), (1, False)])
def test_of_several_workers_the_first_claims_the_folder(
    ended, monkeypatch, tmp_path, index, fails
):
    cluster = {
        "cluster": {"worker": ["a:1", "b:2"]},
        "task": {"type": "worker", "index": index},
    }
    monkeypatch.setenv("TF_CONFIG", json.dumps(cluster))
    monkeypatch.setattr("sys.stdout", None)
    (tmp_path / "run").mkdir()
    with locks.hold(str(tmp_path / "run" / ".lock"), "run"):
        try:
            parse("--do_train")
        except UserError:
            assert fails
        else:
            assert not fails
    (tmp_path / "run").rmdir()


def test_a_device_without_memory_is_one_line(capsys):
    def main(argv):
        tf.zeros([1 << 43])

    signals = signal.getsignal(signal.SIGTERM)
    try:
        assert tasks_main.run(main, []) == 2
    finally:
        signal.signal(signal.SIGTERM, signals)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: the device is out of memory: OOM when")
    assert "raise --gradient_accumulation_steps" in line


def test_a_checkpoint_of_the_current_folder_is_not_that_of_a_run(
    tmp_path, monkeypatch
):
    """A script without output_dir continues no run."""
    (tmp_path / "checkpoint").touch()
    monkeypatch.chdir(tmp_path)
    argv = ["extract_features.py"]
    argv += [f"--{x}_file=x" for x in ("input", "output", "vocab")]
    argv += ["--bert_config_file=x", "--init_checkpoint=missing"]
    with pytest.raises(UserError, match="missing: no such checkpoint"):
        tasks_main.parse(argv, features_settings.Settings, "")
