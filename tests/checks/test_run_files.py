"""The folder of a run: damaged checkpoints."""

import numpy as np
import pytest

from bert.checks import run
from bert.checks.settings import Settings
from bert.training import saver
from tests.helpers import small


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
    values = {"w": np.arange(97.0)}
    saver.Saver(str(folder / "best")).save(3, values, {"seed": 2})
    found = []
    description = run.check_files(str(folder), found)
    assert [(x.level, x.message) for x in found] == [
        ("fine", f"{folder}: undamaged checkpoints: 3, 7"),
        ("fine", f"{folder}/best: undamaged checkpoints: 3"),
    ]
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


def test_a_given_config_is_checked_instead_of_that_of_the_run(tmp_path):
    for name in ("bert_config.json", "other.json"):
        (tmp_path / name).write_text(small.config().to_json())
    other = f"{tmp_path}/other.json"
    for given, checked in (
        (None, f"{tmp_path}/bert_config.json"),
        (other, other),
    ):
        settings = Settings(output_dir=str(tmp_path), bert_config_file=given)
        first, *_ = run.examine(settings)
        assert first.message.startswith(f"{checked}: num_hidden_layers ")
