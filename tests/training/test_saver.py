"""Checkpoints are whole or not there."""

import json
import os

import numpy as np
import pytest
import tensorflow as tf

import tensor_file
from errors import UserError
from training.saver import Saver

VALUES = {
    "a/kernel": np.arange(6.0, dtype="f4").reshape(2, 3),
    "b": np.int32(5),
}


@pytest.fixture
def saver(tmp_path):
    return Saver(str(tmp_path), keep_max=3)


def files(saver):
    return sorted(os.listdir(saver.folder))


def test_what_is_saved_is_read_by_tensorflow(saver):
    prefix = saver.save(7, VALUES, {"seed": 3})
    reader = tf.train.load_checkpoint(prefix)
    shapes = reader.get_variable_to_shape_map()
    assert shapes == {"a/kernel": [2, 3], "b": [], "global_step": []}
    assert reader.get_tensor("global_step") == 7
    assert reader.get_tensor("global_step").dtype == np.int64
    np.testing.assert_array_equal(
        reader.get_tensor("a/kernel"), VALUES["a/kernel"]
    )


def test_the_files_of_a_checkpoint(saver):
    saver.save(7, VALUES, {"seed": 3})
    assert files(saver) == [
        "checkpoint",
        "model.ckpt-7.data-00000-of-00001",
        "model.ckpt-7.index",
        "model.ckpt-7.json",
    ]
    with open(os.path.join(saver.folder, "model.ckpt-7.json")) as file:
        description = json.load(file)
    assert description["step"] == 7
    assert description["settings"] == {"seed": 3}
    assert sorted(description["files"]) == files(saver)[1:3]


def test_the_newest_is_restored(saver):
    for step in (5, 10):
        saver.save(step, {"a": np.float32(step)}, {})
    restored = saver.restore_latest()
    assert restored.step == 10
    assert restored.values["a"] == 10


def test_an_empty_folder_restores_nothing(saver, tmp_path):
    assert saver.restore_latest() is None
    assert Saver(str(tmp_path / "none")).restore_latest() is None


def test_only_the_newest_are_kept(saver):
    for step in (2, 3, 5, 7, 11):
        saver.save(step, VALUES, {})
    assert saver.steps() == [5, 7, 11]
    assert len(files(saver)) == 1 + 3 * 3
    newest = tf.train.latest_checkpoint(saver.folder)
    assert newest == os.path.join(saver.folder, "model.ckpt-11")


@pytest.mark.parametrize(
    ("part", "damage"),
    [
        (".index", lambda content: content[: len(content) // 2]),
        (".index", lambda content: b""),
        (".index", None),
        (".data-00000-of-00001", lambda content: content[:-1]),
        (".data-00000-of-00001", lambda content: content + b"x"),
        (".data-00000-of-00001", lambda c: bytes([c[0] ^ 1]) + c[1:]),
        (".data-00000-of-00001", None),
        (".json", lambda content: content[: len(content) // 2]),
        (".json", lambda content: b"{}"),
    ],
)
def test_a_damaged_one_gives_way_to_the_one_before(saver, capsys, part, damage):
    for step in (5, 10):
        saver.save(step, VALUES, {})
    path = os.path.join(saver.folder, f"model.ckpt-10{part}")
    if damage is None:
        os.remove(path)
    else:
        with open(path, "rb") as file:
            content = file.read()
        with open(path, "wb") as file:
            file.write(damage(content))
    assert saver.restore_latest().step == 5
    assert f"{saver.folder}/model.ckpt-10" in capsys.readouterr().err


def test_a_run_never_starts_over_silently(saver):
    saver.save(5, VALUES, {})
    os.remove(os.path.join(saver.folder, "model.ckpt-5.json"))
    with pytest.raises(UserError, match="no checkpoint here can be read"):
        saver.restore_latest()


def test_the_text_file_is_not_needed(saver):
    saver.save(5, VALUES, {})
    os.remove(os.path.join(saver.folder, "checkpoint"))
    assert saver.restore_latest().step == 5


def test_what_a_killed_save_left_is_swept(saver):
    scratch = os.path.join(saver.folder, ".partial-checkpoint")
    os.mkdir(scratch)
    with open(os.path.join(scratch, "model.ckpt-3.index"), "w") as file:
        file.write("half")
    saver.save(5, VALUES, {})
    assert not os.path.exists(scratch)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(UserError, match="checkpoint cannot be written"):
        Saver(str(path)).save(5, VALUES, {})


def test_reading_nothing_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="model.ckpt-5"):
        tensor_file.read(str(tmp_path / "model.ckpt-5"))
