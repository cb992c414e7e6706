"""Folders that are removed while a script writes to them: one line."""

import shutil

import pytest

from data.pretraining import runners
from tasks.features import run as features_run
from tests.bad_inputs import runs
from training import logs, saver

OUTPUTS = {
    "create_pretraining_data": ("output_file", "a.tfrecord"),
    "extract_features": ("output_file", "a.jsonl"),
    "run_pretraining": ("output_dir", ""),
}


@pytest.fixture
def rejects(monkeypatch, run_script, good, tmp_path):
    """Runs a script; a function of it removes the folder first."""

    def check(name, module, function, **more):
        folder = tmp_path / "made"
        folder.mkdir()
        original = getattr(module, function)

        def remove(*arguments, **named):
            shutil.rmtree(folder)
            return original(*arguments, **named)

        monkeypatch.setattr(module, function, remove)
        script, flags, _ = runs.command(name, good)
        flag, file = OUTPUTS[name]
        flags |= {flag: folder / file, **more}
        code, _, err = run_script(script, **flags)
        last = err.splitlines()[-1]
        assert code == 2, err
        assert last.startswith(f"error: {folder}/")
        assert not folder.exists()
        return last

    return check


@pytest.mark.parametrize(
    ("function", "processes"),
    [
        ("_write_texts", 1),
        ("_make_parts", 1),
        ("_make_parts", 2),
        ("_write_shards", 1),
    ],
)
def test_records(rejects, function, processes):
    line = rejects(
        "create_pretraining_data", runners, function, num_processes=processes
    )
    assert "No such file or directory; " in line


@pytest.mark.parametrize(
    ("module", "function", "message"),
    [
        (
            logs,
            "log_training",
            "metrics.jsonl: cannot be read or written: No such file or "
            "directory; check that its folder is still there",
        ),
        (saver.Saver, "_write", "has been removed; check permissions"),
    ],
)
def test_runs(rejects, module, function, message):
    assert message in rejects("run_pretraining", module, function)


def test_vectors(rejects):
    line = rejects("extract_features", features_run, "extract", layers=-1)
    assert line.endswith(
        "a.jsonl: cannot be written: No such file or directory"
    )
