"""The folder of a run: damaged checkpoints, and what was left there."""

import numpy as np
import pytest

from training import run_checks, saver


@pytest.fixture
def folder(tmp_path):
    """A folder with two whole checkpoints."""
    for step in (3, 7):
        values = {"w": np.arange(97.0) + step}
        saver.Saver(str(tmp_path)).save(step, values, {"seed": 1})
    return tmp_path


def check(folder):
    """Level -> messages."""
    messages = {"wrong": [], "suspicious": [], "fine": []}
    for finding in run_checks.check_files(str(folder)):
        messages[finding.level].append(finding.message)
    return messages


def test_whole_checkpoints_are_fine(folder):
    assert check(folder) == {
        "wrong": [],
        "suspicious": [],
        "fine": [f"{folder}: checkpoints 3, 7 whole"],
    }


def test_damaged_parts(folder):
    part = folder / "model.ckpt-3.data-00000-of-00001"
    content = bytearray(part.read_bytes())
    fix = "remove this checkpoint: the run goes on from the one before"
    content[7] ^= 1
    part.write_bytes(content)
    assert check(folder)["wrong"] == [
        f"{part}: not what was written (sha256 differs); {fix}"
    ]
    size = len(content)
    part.write_bytes(content[:-1])
    assert check(folder)["wrong"] == [
        f"{part}: has {size - 1} bytes; expected {size}; {fix}"
    ]
    part.unlink()
    assert check(folder)["wrong"] == [f"{part}: missing; {fix}"]


def test_descriptions_that_are_damaged_or_not_there(folder):
    description = folder / "model.ckpt-3.json"
    for content in ("", "[]", "{}", '{"files": {"x": 1}, "settings": {}}'):
        description.write_text(content)
        (line,) = check(folder)["wrong"]
        assert line.startswith(
            f"{description}: not a checkpoint's description: "
        )
    description.unlink()
    assert check(folder)["wrong"] == [
        f"{folder}/model.ckpt-3.index: has no description beside it; expected "
        "model.ckpt-3.json; this checkpoint is not whole: remove it"
    ]


def test_what_killed_runs_left(folder):
    (folder / ".partial-checkpoint").mkdir()
    (folder / "vocab.txt.partial").touch()
    left = "left by a run that was killed, or written just now; remove it if "
    assert check(folder)["suspicious"] == [
        f"{folder}/{name}: {left}no run is going on"
        for name in (".partial-checkpoint", "vocab.txt.partial")
    ]
