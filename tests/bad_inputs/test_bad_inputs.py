"""No stranger's file ends in a traceback: one line and an exit code."""

import importlib
import io
import pathlib
import shutil
import sys

import pytest

from tests.bad_inputs import flag_cases, runs
from tests.bad_inputs.cases import CASES

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def rejected(good, tmp_path, run_script, monkeypatch):
    """Runs a script, after a change of the files; returns its one line."""
    folder = tmp_path / "files"
    shutil.copytree(good, folder)

    def entries():
        return {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}

    def run(name, change=lambda folder: None, **changed):
        change(folder)
        before = entries()
        script, flags, code = runs.command(name, folder, **changed)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n")))
        exit_code, out, err = run_script(script, **flags)
        assert exit_code == code, (out, err)
        assert "Traceback" not in err
        assert "\x1b" not in out + err
        assert entries() == before
        if code == 1:  # of doctor, which has a line for each file
            return out
        (line,) = [x for x in err.splitlines() if x.startswith("error: ")]
        assert err.endswith(f"{line}\n")
        assert len(line) < 2100
        return line

    return run


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)
def test_a_bad_file_is_one_line(rejected, case):
    changed = {}
    if case.path.startswith("other/"):
        changed["input"] = "{folder}/other"
    line = rejected(case.run, case.write, **changed)
    assert (case.message or pathlib.Path(case.path).name) in line


@pytest.mark.parametrize(("name", "flags", "message"), flag_cases.FLAGS)
def test_wrong_flags_are_one_line(rejected, name, flags, message):
    assert message in rejected(name, **flags)


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in ROOT.glob("*.py"))
)
def test_an_unknown_flag_of_any_script_is_one_line(run_script, name):
    script = importlib.import_module(name)
    code, out, err = run_script(script, max_seq_lenght=7)
    assert (code, out) == (2, "")
    assert err.startswith("error: Unknown command line flag 'max_seq_lenght'")
    assert all(x.startswith("error: ") for x in err.splitlines())
