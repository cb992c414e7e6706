"""Command lines of scripts that train: who has a report."""

import json

import pytest

from tasks import live_report
from tasks import main as tasks_main
from tasks.pretraining.settings import Settings


@pytest.fixture
def started(monkeypatch):
    """Folders whose reports are kept up to date."""
    folders = []
    monkeypatch.setattr(live_report, "start", folders.append)
    return folders


def parse(*words):
    required = ("--bert_config_file=a.json", "--output_dir=run")
    return tasks_main.parse(["script", *required, *words], Settings, "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--do_train"], ["run"]),
        (["--do_train", "--noreport"], []),
        (["--do_eval"], []),
    ],
)
def test_a_run_that_trains_has_a_report(started, words, expected):
    parse(*words)
    assert started == expected


@pytest.mark.parametrize(("index", "expected"), [(0, ["run"]), (1, [])])
def test_of_several_workers_the_first_has_one(
    started, monkeypatch, index, expected
):
    cluster = {
        "cluster": {"worker": ["a:1", "b:2"]},
        "task": {"type": "worker", "index": index},
    }
    monkeypatch.setenv("TF_CONFIG", json.dumps(cluster))
    monkeypatch.setattr("sys.stdout", None)  # restored afterwards
    parse("--do_train")
    assert started == expected
