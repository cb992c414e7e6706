"""No stranger's file ends in a traceback: one line and an exit code."""

import io
import pathlib
import shutil
import sys

import pytest

from tests.bad_inputs import (
    index_cases,
    json_cases,
    other_cases,
    runs,
)

CASES = [*json_cases.cases(), *index_cases.cases(), *other_cases.cases()]


@pytest.fixture
def rejects(good, tmp_path, run_script, monkeypatch):
    """Checks the line and the code of a script for the file of a case."""

    def check(case, name):
        folder = tmp_path / "files"
        shutil.copytree(good, folder)
        case.write(folder)
        before = sorted(folder.rglob("*"))
        script, flags, code = runs.command(name, folder)
        if case.path.startswith("other/"):
            flags["input"] = folder / "other"
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n")))
        words = [f"--{key}" for key, value in flags.items() if value is True]
        flags = {k: v for k, v in flags.items() if v is not True}
        found, out, err = run_script(script, *words, **flags)
        assert found == code, (out, err)
        assert "Traceback" not in err
        last = err.splitlines()[-1] if code == 2 else out
        assert (case.message or pathlib.Path(case.path).name) in last
        assert "\x1b" not in out + err
        if code == 2:
            assert last.startswith("error: ")
            assert len(last) < 2100
        assert sorted(folder.rglob("*")) == before

    return check


def ids(case):
    return f"{case.kind}: {case.name}"


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_a_bad_file_is_one_line(rejects, case):
    rejects(case, case.runs[0])


@pytest.mark.long
@pytest.mark.parametrize(
    ("case", "name"),
    [(case, name) for case in CASES for name in case.runs[1:]],
    ids=lambda x: x if isinstance(x, str) else ids(x),
)
def test_every_script_that_meets_it_says_so(rejects, case, name):
    rejects(case, name)
