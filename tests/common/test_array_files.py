"""Arrays in the files of a run, whole and damaged."""

import numpy as np
import pytest

from bert.common.formats import array_files
from bert.runs import head_start
from bert.tasks.classification.settings import Settings
from tests.helpers import run_folders

VALUES = np.arange(15, dtype="f4").reshape(3, 5)


def test_an_array_comes_back(tmp_path):
    array_files.write(str(tmp_path / "a.npy"), VALUES)
    found = array_files.read(str(tmp_path / "a.npy"))
    np.testing.assert_array_equal(found, VALUES)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: np.save(path, np.array([{}])),
        lambda path: np.save(path, VALUES[0]),
        lambda path: np.save(path, VALUES * np.nan),
    ],
    ids=["empty", "truncated", "pickle", "one row", "NaN"],
)
def test_the_damaged_start_of_a_head_is_no_baseline(tmp_path, damage, capsys):
    path = tmp_path / head_start.FILE
    settings = Settings(output_dir=str(tmp_path), start_head=True)
    run = run_folders.made(settings)
    assert head_start.read(run) is None and not capsys.readouterr().err
    array_files.write(str(path), VALUES)
    np.testing.assert_array_equal(head_start.read(run), VALUES)
    damage(path)
    assert head_start.read(run) is None
    assert f"{path} is damaged" in capsys.readouterr().err
