"""The process that keeps a report up to date, and its start by a run."""

import os
import subprocess

import pytest

from common import outputs, storage
from common.errors import StorageError
from reports import page, watch
from tasks import live_report
from tasks.live_report import start  # before the tests replace it
from tests.helpers import report_files


@pytest.fixture
def watched(monkeypatch):
    """Starts the process as a run does; returns it and the pipe's end."""
    pipes, processes = [], []
    pipe, popen = os.pipe, subprocess.Popen
    monkeypatch.setattr(os, "pipe", lambda: pipes.append(pipe()) or pipes[-1])
    monkeypatch.setattr(
        live_report.subprocess,
        "Popen",
        lambda *args, **named: (
            processes.append(popen(*args, **named)) or processes[0]
        ),
    )

    def run(folder):
        start(str(folder))
        monkeypatch.undo()
        return processes[0], pipes[0][1]

    return run


@pytest.mark.slow
def test_the_end_of_the_run_is_a_last_report(watched, tmp_path):
    process, pipe = watched(tmp_path / "run")
    for path in report_files.write_run(tmp_path / "run").iterdir():
        if path.name != "metrics.jsonl":  # no evaluation, no checkpoint
            path.unlink()
    assert process.poll() is None
    os.close(pipe)
    assert process.wait() == 0
    text = (tmp_path / "run" / "report.html").read_text()
    assert "Masked LM: loss" in text


@pytest.mark.slow
def test_a_run_that_changes_nothing_leaves_its_report(watched, tmp_path):
    folder = report_files.write_run(tmp_path / "run")
    process, pipe = watched(folder)
    os.close(pipe)
    assert process.wait() == 0
    assert not (folder / "report.html").exists()


@pytest.mark.slow
def test_paths_are_relative_to_the_folder_of_the_run_s_process(
    watched, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # until the process has started
    process, pipe = watched("run")
    folder = report_files.write_run(
        tmp_path / "run", input_file="run/*.tfrecord"
    )
    os.close(pipe)
    assert process.wait() == 0
    assert "40,009" in (folder / "report.html").read_text()  # of the records


def test_evaluations_and_checkpoints_are_news(tmp_path):
    folder = report_files.write_run(tmp_path / "run")
    (folder / "eval").mkdir()
    before = watch.times(str(folder))
    names = {os.path.basename(path) for path in before}
    assert names == {
        "metrics.jsonl",
        "eval_results.txt",
        "model.ckpt-7.json",
        "model.ckpt-30.json",
    }
    (folder / "eval" / "events").write_text("x")
    assert watch.times(str(folder)).keys() - before.keys() == {
        str(folder / "eval" / "events")
    }


@pytest.fixture
def stored(monkeypatch, tmp_path):
    """A run on a store, which has ended."""
    monkeypatch.setattr(os, "nice", lambda step: None)
    for name in watch._ENVIRONMENT:  # restored afterwards
        monkeypatch.setenv(name, "before")
    with open(os.devnull) as ended:
        monkeypatch.setattr("sys.stdin", ended)
        outputs.copy_folder(
            str(report_files.write_run(tmp_path / "run")), "ram://watch/run"
        )
        yield "ram://watch/run"
    storage.remove_folder("ram://watch/run")


def test_a_run_on_a_store_has_its_report(stored):
    watch.main(["watch", stored, "-1", os.getcwd()])
    with storage.open_text(f"{stored}/report.html") as file:
        assert "Masked LM: loss" in file.read()
    assert os.environ["TPU_LOAD_LIBRARY"] == "0"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "-1"


def test_a_store_that_does_not_answer_ends_no_report(stored, monkeypatch):
    def fail(folders, path):
        asked.append(path)
        raise StorageError(path)

    asked = []
    monkeypatch.setattr(page, "write", fail)
    watch.main(["watch", stored, "-1", os.getcwd()])
    assert asked == [f"{stored}/report.html"]


def test_a_run_on_a_store_starts_the_process(monkeypatch):
    started = []
    monkeypatch.setattr(
        live_report.subprocess,
        "Popen",
        lambda command, **named: started.append(command),
    )
    pipe = os.pipe()
    monkeypatch.setattr(os, "pipe", lambda: pipe)
    start("ram://none/run")
    os.close(pipe[1])
    expected = ["ram://none/run", "0", os.getcwd()]
    assert [command[-3:] for command in started] == [expected]


def test_without_the_libraries_one_line_tells_how_to_get_them(
    monkeypatch, hide_package, capsys, tmp_path
):
    hide_package("matplotlib")
    monkeypatch.setattr(live_report.subprocess, "Popen", None)
    start(str(tmp_path))
    assert capsys.readouterr().err == (
        "report.html is not written; pip install -r requirements-report.txt\n"
    )
