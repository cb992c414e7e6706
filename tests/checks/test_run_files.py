"""The folder of a run: damaged checkpoints."""

import shutil

import numpy as np
import pytest

from bert.checks import run
from bert.training import saver


@pytest.fixture
def folder(tmp_path):
    """A folder with two whole checkpoints."""
    for step in (3, 7):
        values = {"w": np.arange(97.0) + step}
        saver.Saver(str(tmp_path)).save(step, values, {"seed": 1})
    return tmp_path


def check(folder):
    """Level -> messages."""
    messages, found = {"wrong": [], "suspicious": [], "fine": []}, []
    run.check_files(str(folder), found)
    for finding in found:
        messages[finding.level].append(finding.message)
    return messages


def test_whole_checkpoints_are_fine(folder):
    found = []
    description = run.check_files(str(folder), found)
    message = f"{folder}: undamaged checkpoints: 3, 7"
    assert [x.message for x in found] == [message]
    assert found[0].level == "fine"
    assert description.step == 7
    assert description.settings == {"seed": 1}


def test_damaged_parts(folder):
    name = "model.ckpt-7.data-00000-of-00001"
    part = folder / name
    content = part.read_bytes()
    damaged = f"{folder}/model.ckpt-7: damaged: "
    fix = "; remove it: the run resumes from the one before"
    part.write_bytes(content[:-1])
    found = check(folder)
    assert found["wrong"] == [
        f"{damaged}{name} is not {len(content)} bytes{fix}"
    ]
    assert found["fine"] == [f"{folder}: undamaged checkpoints: 3"]
    part.unlink()
    assert "No such file or directory" in check(folder)["wrong"][0]


def test_damaged_descriptions(folder):
    description = folder / "model.ckpt-3.json"
    for content in ("", "[]", "{}", '{"files": {"x": 1}}'):
        description.write_text(content)
        (line,) = check(folder)["wrong"]
        assert line.startswith(f"{folder}/model.ckpt-3: damaged: ")
    shutil.copytree(folder, folder / "best")
    assert len(check(folder)["wrong"]) == 2
