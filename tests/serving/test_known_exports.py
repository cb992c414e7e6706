import os
import pathlib
import shutil

import pytest

from bert.common import atomic, outputs, storage
from bert.serving import export_folder, known_exports


@pytest.fixture
def export(tmp_path, monkeypatch):
    """Folder of an export that this person made."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def save(folder):
        for name in ("variables", "assets"):
            os.makedirs(f"{folder}/{name}")
        for name in ("saved_model.pb", "variables/v.index", "assets/vocab.txt"):
            with open(f"{folder}/{name}", "w") as file:
                file.write(name)

    return export_folder.write(str(tmp_path / "export"), save)


def test_an_export_is_known_also_under_another_name(export):
    assert known_exports.is_known(export)
    moved = shutil.move(export, f"{export}_moved")
    assert known_exports.is_known(moved)
    os.makedirs(f"{moved}/assets.extra")
    open(f"{moved}/assets.extra/warm_up", "w").close()
    assert known_exports.is_known(moved)


@pytest.mark.parametrize(
    "name",
    ["saved_model.pb", "variables/v.index", "assets/vocab.txt"],
)
def test_a_changed_export_is_not_known(export, name):
    with open(f"{export}/{name}", "a") as file:
        file.write(" ")
    assert not known_exports.is_known(export)


def test_an_added_or_renamed_file_is_not_known(export):
    more = pathlib.Path(export, "assets", "more")
    more.touch()
    assert not known_exports.is_known(export)
    more.unlink()
    assert known_exports.is_known(export)
    os.rename(f"{export}/assets/vocab.txt", f"{export}/assets/other.txt")
    assert not known_exports.is_known(export)


def test_nothing_is_known_to_another_person(export, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert not known_exports.is_known(export)


def test_an_export_is_written_without_a_state_folder(
    export, monkeypatch, tmp_path
):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    known_exports.remember(export)
    assert not known_exports.is_known(export)


def test_the_list_is_in_the_home_folder_by_default(monkeypatch):
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/anna")
    assert (
        known_exports.list_file()
        == "/home/anna/.local/state/bert/known_exports"
    )


@pytest.mark.parametrize("kind", ["link", "here"])
def test_a_folder_that_is_there_is_filled(tmp_path, monkeypatch, kind):
    """It is not replaced, as it may be a mount; the graph comes last."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path / "real")
    folder = str(tmp_path / "link") if kind == "link" else "."
    (tmp_path / "real" / atomic.UNFINISHED).mkdir()  # of a killed export

    def save(path):
        os.makedirs(f"{path}/variables")
        for name in ("saved_model.pb", "variables/variables.index"):
            pathlib.Path(path, name).write_bytes(b"x")

    replace, moved = storage.replace, []

    def record(source, target):
        moved.append(os.path.basename(target))
        replace(source, target)

    monkeypatch.setattr(storage, "replace", record)
    outputs.check_new_folder(folder, "")
    export_folder.write(folder, save)
    assert moved[-2:] == ["variables.index", "saved_model.pb"]
    names = {"saved_model.pb", "variables"}
    assert {x.name for x in (tmp_path / "real").iterdir()} == names
    assert (tmp_path / "link").is_symlink()
