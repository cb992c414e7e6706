"""Output paths that are rejected before the work of a script."""

import os

import pytest

from bert.common import atomic, outputs
from bert.common.errors import UserError
from bert.common.jobs import scratch

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


def test_unfinished_files_do_not_block_a_folder(tmp_path):
    """A killed export leaves them."""
    (tmp_path / atomic.UNFINISHED / "a").mkdir(parents=True)
    assert CHECKS["folder"](str(tmp_path)) is None
    (tmp_path / "b").touch()
    with pytest.raises(UserError, match="already exists; expected a new or"):
        CHECKS["folder"](str(tmp_path))


def test_an_output_behind_a_link_is_found_among_the_inputs(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    linked, path = (str(tmp_path / x / "a") for x in ("link", "folder"))
    for output, given in ((linked, path), (path, linked)):
        with pytest.raises(UserError, match="is both input and output"):
            outputs.check_no_input([output], [given])


def test_what_cannot_become_a_file_is_an_error(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "none")
    for path in ("", str(tmp_path), f"{tmp_path}/link", "/dev/null"):
        with pytest.raises(UserError, match="output_file=.*the name of a file"):
            CHECKS["file"](path)


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("/a/b", "/a"),
        ("/a/b/", "/a"),
        ("/a", "/"),
        ("gs://bucket/a", "gs://bucket"),
        ("gs://bucket", "gs://bucket"),
    ],
)
def test_the_parent_of_a_bucket_is_the_bucket(path, folder):
    assert outputs.parent(path) == folder


def test_unfinished_files_are_those_of_the_outputs_and_of_their_inputs():
    """In any order; the last part differs if the inputs do."""
    first, again, other, fewer = (
        scratch.folder_of("/a", names, identity)
        for names, identity in (
            ("xy", "1"),
            ("yx", "1"),
            ("xy", "2"),
            ("x", "1"),
        )
    )
    assert first == again != other
    start = first.rpartition("-")[0]
    assert other.startswith(start) and not fewer.startswith(start)
