"""Shared storage through TensorFlow, of which `ram://` needs no server."""

import copy
import io
import os

import numpy as np
import pytest
import tensorflow as tf

from bert.common import atomic, outputs, remote_files, storage
from bert.common import main as main_lib
from bert.common.errors import StorageError, UserError
from bert.common.formats import tensor_files
from bert.training import saver


@pytest.fixture
def folder(request):
    return f"ram://{request.node.name.replace('[', '-').rstrip(']')}"


def test_files_are_written_read_and_listed(folder):
    storage.make_folder(f"{folder}/a/b")
    atomic.write_whole(f"{folder}/a/x.txt", "é\n")
    with storage.open_text(f"{folder}/a/x.txt", "a") as file:
        file.write("more\n")
    with storage.open_text(f"{folder}/a/x.txt") as file:
        assert list(file) == ["é\n", "more\n"]
    with storage.open_file(f"{folder}/a/b/y", "wb") as file:
        file.write(b"0123456789" * 300_000)
    with storage.open_file(f"{folder}/a/b/y", "rb") as file:
        file.seek(-3, io.SEEK_END)
        assert (file.tell(), file.read()) == (2_999_997, b"789")
        file.seek(11)
        assert file.read(3) == b"123"
    assert storage.size(f"{folder}/a/b/y") == 3_000_000
    assert storage.list_folder(f"{folder}/a") == ["b", "x.txt"]
    assert storage.find(f"{folder}/a", "*.txt") == [f"{folder}/a/x.txt"]
    assert storage.files_below(folder) == [
        f"{folder}/a/b/y",
        f"{folder}/a/x.txt",
    ]
    assert storage.is_folder(f"{folder}/a/b")
    assert storage.is_file(f"{folder}/a/x.txt")
    assert not storage.is_file(f"{folder}/a/b")
    storage.remove(f"{folder}/a/x.txt")
    storage.remove_folder(f"{folder}/a/b")
    assert storage.files_below(folder) == []


def test_errors_are_those_of_local_files(folder):
    with pytest.raises(FileNotFoundError):
        storage.open_file(f"{folder}/none", "rb")
    with pytest.raises(FileNotFoundError):
        storage.size(f"{folder}/none")
    assert storage.list_folder(f"{folder}/none") == []
    with pytest.raises(UserError, match="File system scheme 's3'"):
        storage.exists("s3://bucket/x")


def test_the_error_of_another_process_has_one_advice():
    error = copy.copy(StorageError("gs://b/a: 503"))
    assert str(error) == "gs://b/a: 503; run the same command again"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (tf.errors.AbortedError, StorageError),
        (tf.errors.UnavailableError, StorageError),
        (tf.errors.DeadlineExceededError, StorageError),
        (tf.errors.NotFoundError, FileNotFoundError),
        (tf.errors.PermissionDeniedError, PermissionError),
        (tf.errors.UnauthenticatedError, PermissionError),
        (tf.errors.AlreadyExistsError, FileExistsError),
        (tf.errors.InvalidArgumentError, OSError),
    ],
)
def test_a_store_without_answer_is_no_missing_file(error, expected):
    with pytest.raises(expected) as found, remote_files.files("gs://b/x"):
        raise error(None, None, "503")
    assert "gs://b/x" in str(found.value)
    assert isinstance(found.value, OSError) == (expected is not StorageError)


def test_an_unavailable_store_ends_a_script_with_75(capsys):
    def main(argv):
        raise tf.errors.AbortedError(None, None, *argv)

    assert main_lib.run(main, ["503 when reading gs://b/x"]) == 75
    assert capsys.readouterr().err == (
        "error: 503 when reading gs://b/x; run the same command again\n"
    )
    with pytest.raises(tf.errors.AbortedError):
        main_lib.run(main, ["other"])


def test_a_folder_is_copied(folder):
    names = ("a/1", "saved_model.pb", "z/2")
    for name in names:
        storage.make_folder(os.path.dirname(f"{folder}/from/{name}"))
        atomic.write_whole(f"{folder}/from/{name}", name)
    for source in ("from", "from/"):
        outputs.copy_folder(f"{folder}/{source}", f"{folder}/to-{source}")
        expected = [
            f"{folder}/to-{source.rstrip('/')}/{name}" for name in names
        ]
        assert storage.files_below(f"{folder}/to-from") == expected
        storage.remove_folder(f"{folder}/to-from")


def test_a_folder_appears_with_its_last_file_last(folder, monkeypatch):
    order, replace = [], storage.replace
    monkeypatch.setattr(
        storage, "replace", lambda a, b: (order.append(b), replace(a, b))
    )
    with atomic.whole_folder(f"{folder}/to", "m") as temporary:
        for name in ("m", "a", "z"):
            atomic.write_whole(f"{temporary}/{name}", name)
        order.clear()
    assert order == [f"{folder}/to/{name}" for name in "azm"]


def test_unfinished_files_of_a_folder_are_at_one_local_path():
    first, second, other = (
        atomic.scratch(f"gs://b/{name}", "x") for name in ("a", "a/", "c")
    )
    assert first == second != other
    assert os.path.isabs(first) and first.endswith("x")


def test_an_upload_that_is_cut_is_an_error(folder, tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"abc")
    monkeypatch.setattr(
        storage, "copy", lambda a, b: remote_files.open_file(b, "wb").close()
    )
    with pytest.raises(StorageError, match="not written completely"):
        storage.replace(str(tmp_path / "a"), f"{folder}/a")
    assert (tmp_path / "a").exists()


def values_of(step: int) -> dict:
    return {"w": np.full([3, 5], step, "f4")}


def test_the_description_of_a_checkpoint_is_written_last(folder, monkeypatch):
    """Until it is there, the checkpoint is not."""
    order, replace = [], storage.replace

    def named(source, target):
        if target.startswith(folder):
            order.append(os.path.basename(target))
        replace(source, target)

    monkeypatch.setattr(storage, "replace", named)
    saver.Saver(folder, 2).save(3, values_of(3), {})
    assert order == [
        "model.ckpt-3.data-00000-of-00001",
        "model.ckpt-3.index",
        "model.ckpt-3.json",
        "checkpoint",
    ]

    def killed(source, target):
        if target.endswith("5.json"):
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(storage, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        saver.Saver(folder, 2).save(5, values_of(5), {})
    monkeypatch.undo()
    again = saver.Saver(folder, 2)
    again.sweep()
    restored = again.restore_latest()
    assert restored.step == 3
    assert restored.values["w"].tolist() == values_of(3)["w"].tolist()
    for step in (6, 7):
        again.save(step, values_of(step), {})
    assert again.saved_steps() == [6, 7]
    assert not any("-3." in name for name in storage.list_folder(folder))


@pytest.mark.parametrize(
    ("module", "name", "error"),
    [
        (storage, "size", tf.errors.AbortedError(None, None, "503")),
        # TensorFlow's own reader does not tell why it cannot read.
        (tensor_files, "read", ValueError("503")),
    ],
)
def test_a_store_that_is_gone_is_no_damage(
    folder, monkeypatch, module, name, error
):
    """Else a run would go on from an earlier checkpoint."""
    own = saver.Saver(folder, 2)
    for step in (1, 2):
        own.save(step, values_of(step), {})

    original = getattr(module, name)

    def gone(path):
        if "model.ckpt-2" not in path or path.endswith("json"):
            return original(path)
        with remote_files.files(path):
            raise error

    monkeypatch.setattr(module, name, gone)
    with pytest.raises(StorageError, match=r"model.ckpt-2\S*: 503"):
        own.restore_latest()


def test_given_weights_of_a_store_that_is_gone_are_not_damaged(monkeypatch):
    def gone(prefix):
        raise tf.errors.AbortedError(None, None, f"503 at {prefix}")

    monkeypatch.setattr(tensor_files, "open_reader", gone)
    with pytest.raises(StorageError, match="503 at gs://b/model.ckpt"):
        tensor_files.read("gs://b/model.ckpt")


def test_tensors_are_read_in_the_order_of_the_file(tmp_path):
    """A store is read in parts of 64 MB, again at each step back."""
    names = [f"w{i:02}" for i in range(29)]
    tensor_files.write(f"{tmp_path}/x", dict.fromkeys(reversed(names), 1.0))
    assert list(tensor_files.read(f"{tmp_path}/x")) == names
