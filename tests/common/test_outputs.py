"""Output paths that are rejected before the work of a script."""

import os

import pytest

from bert.common import outputs
from bert.common.errors import UserError

CHECKS = {
    "file": lambda path: outputs.check_file(path, "output_file"),
    "folder": lambda path: outputs.check_new_folder(path, "pass another"),
}


@pytest.mark.parametrize("kind", CHECKS)
def test_an_output_in_a_folder_without_permission(tmp_path, monkeypatch, kind):
    path = str(tmp_path / "output")
    assert CHECKS[kind](path) is None

    def access(folder, mode):  # root may write everywhere
        return (folder, mode) != (str(tmp_path), os.W_OK | os.X_OK)

    monkeypatch.setattr(outputs.os, "access", access)
    with pytest.raises(UserError) as caught:
        CHECKS[kind](path)
    assert str(caught.value).startswith(
        f"{path}: cannot be written: Permission denied, "
    )
    assert list(tmp_path.iterdir()) == []
