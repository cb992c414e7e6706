"""Checkpoints are whole or not there."""

import math
import os
import shutil
import threading

import numpy as np
import pytest
import tensorflow as tf

from bert.common import atomic, storage
from bert.common.errors import UserError
from bert.common.formats import tensor_files
from bert.training.saver import Saver
from tests.helpers import tiny

VALUES = {
    "a/kernel": np.arange(6.0, dtype="f4").reshape(2, 3),
    "b": np.int32(5),
}

PARTS = (".data-00000-of-00001", ".index", ".json")


@pytest.fixture
def saver(tmp_path):
    return Saver(str(tmp_path), keep_max=3)


def files(saver):
    return sorted(os.listdir(saver.folder))


def test_tensorflow_reads_a_checkpoint(saver):
    prefix = saver.save(7, VALUES, {"seed": 3})
    reader = tf.train.load_checkpoint(prefix)
    shapes = reader.get_variable_to_shape_map()
    assert shapes == {"a/kernel": [2, 3], "b": [], "global_step": []}
    assert reader.get_tensor("global_step") == 7
    assert reader.get_tensor("global_step").dtype == np.int64
    np.testing.assert_array_equal(
        reader.get_tensor("a/kernel"), VALUES["a/kernel"]
    )


def test_an_empty_folder_restores_nothing(saver, tmp_path):
    assert saver.restore_latest() is None
    assert Saver(str(tmp_path / "none")).restore_latest() is None


def test_former_names_of_flags_are_read_as_the_current_ones(saver):
    saver.save(7, VALUES, {"eval_share": 0.25, "seed": 3})
    restored = saver.restore_latest()
    assert restored.settings == {"eval_fraction": 0.25, "seed": 3}


def test_only_the_newest_are_kept(saver):
    for step in (2, 3, 5, 7, 11):
        saver.save(step, VALUES, {})
    assert saver.saved_steps() == [5, 7, 11]
    assert len(files(saver)) == 1 + 3 * 3
    newest = tf.train.latest_checkpoint(saver.folder)
    assert newest == os.path.join(saver.folder, "model.ckpt-11")


def test_going_back_removes_later_checkpoints(saver, capsys):
    for step in (5, 10, 15):
        saver.save(step, VALUES, {})
    saver.remove_after(10)
    assert saver.saved_steps() == [5, 10]
    newest = tf.train.latest_checkpoint(saver.folder)
    assert newest == os.path.join(saver.folder, "model.ckpt-10")
    err = capsys.readouterr().err
    assert err == (
        f"removed {saver.folder}/model.ckpt-15: later than step 10, from which "
        "the run resumes\n"
    )
    saver.remove_after(0)
    assert files(saver) == []
    saver.remove_after(0)
    assert len(capsys.readouterr().err.splitlines()) == 2


@pytest.mark.parametrize("interrupted", [*range(6)])
def test_a_removal_that_is_interrupted_leaves_no_gap(
    saver, monkeypatch, interrupted
):
    """Each checkpoint counts as long as it has all files, the newest last."""
    for step in (5, 10, 15):
        saver.save(step, VALUES, {})
    remove, removed = storage.remove, []

    def fail(path):
        if len(removed) == interrupted:
            raise OSError("killed")
        removed.append(path)
        remove(path)

    monkeypatch.setattr(storage, "remove", fail)
    with pytest.raises(OSError, match="killed"):
        saver.remove_after(5)
    assert saver.saved_steps() == [5, 10, 15][: 3 - (interrupted + 2) // 3]
    for step in saver.saved_steps():
        assert saver._restore(f"{saver.folder}/model.ckpt-{step}", step)


def test_the_checkpoint_last_saved_is_the_newest(tmp_path):
    """Also where an abandoned branch of the run had gone further."""
    saver = Saver(str(tmp_path), keep_max=1)
    for step in (500, 450):
        saver.save(step, VALUES, {})
    assert saver.restore_latest().step == 450
    newest = tf.train.latest_checkpoint(saver.folder)
    assert newest == os.path.join(saver.folder, "model.ckpt-450")


def cut(content):
    return content[: len(content) // 2]


def flip(content, bit=3):
    content = bytearray(content)
    content[bit // 8] ^= 1 << bit % 8
    return bytes(content)


def damage(path, change):
    """Changes a file's bytes, or removes it."""
    if change is None:
        os.remove(path)
        return
    with open(path, "rb") as file:
        content = file.read()
    with open(path, "wb") as file:
        file.write(change(content))


@pytest.mark.parametrize(
    ("part", "change"),
    [
        (".index", cut),
        (".index", lambda content: b""),
        (".index", flip),
        (".index", None),
        (".data-00000-of-00001", cut),
        (".data-00000-of-00001", lambda content: content[:-1]),
        (".data-00000-of-00001", lambda content: b""),
        (".data-00000-of-00001", lambda content: content + b"x"),
        (".data-00000-of-00001", flip),
        (".data-00000-of-00001", None),
        (".json", cut),
        (".json", lambda content: b""),
        (".json", lambda content: b"{}"),
        (".json", lambda content: b"[]"),
        (".json", lambda content: content.replace(b'"files"', b'"file"')),
        (".json", lambda content: content.replace(b"model.", b"../model.")),
    ],
)
def test_a_damaged_one_gives_way_to_the_one_before(saver, capsys, part, change):
    for step in (5, 10):
        saver.save(step, VALUES, {"seed": 3})
    path = f"{saver.folder}/model.ckpt-10"
    damage(path + part, change)
    assert saver.restore_latest().step == 5
    err = capsys.readouterr().err
    assert err.startswith(
        f"warning: {path}: unreadable, restoring an earlier checkpoint: "
    )
    assert len(err.splitlines()) == 1


def test_one_that_may_not_be_read_is_not_replaced(saver, monkeypatch):
    """Training would go back, and remove it."""
    for step in (5, 10):
        saver.save(step, VALUES, {"seed": 3})
    newest = f"{saver.folder}/model.ckpt-10.json"
    open_text = storage.open_file

    def forbidden(path, mode):
        if path == newest:
            raise PermissionError(13, "Permission denied", path)
        return open_text(path, mode)

    monkeypatch.setattr(storage, "open_file", forbidden)
    with pytest.raises(PermissionError, match="ckpt-10.json"):
        saver.restore_latest()


@pytest.mark.parametrize("change", [cut, lambda c: b"", lambda c: b"\0", None])
def test_the_text_file_is_not_needed(saver, change):
    """TensorFlow's manager would start over."""
    for step in (5, 10):
        saver.save(step, VALUES, {})
    damage(os.path.join(saver.folder, "checkpoint"), change)
    assert saver.restore_latest().step == 10
    saver.sweep()
    saver.save(11, VALUES, {})
    newest = tf.train.latest_checkpoint(saver.folder)
    assert newest == os.path.join(saver.folder, "model.ckpt-11")


def test_every_flipped_bit_is_detected(saver, capsys):
    for step in (5, 10):
        saver.save(step, VALUES, {"seed": 3})
    parts = [f"{saver.folder}/model.ckpt-10{part}" for part in PARTS[:2]]
    sizes = [os.path.getsize(part) for part in parts]
    rng = np.random.default_rng(1)
    for i in range(120):
        path, size = parts[i % 2], sizes[i % 2]
        bit = int(rng.integers(8 * size))
        damage(path, lambda content: flip(content, bit))  # noqa: B023
        restored = saver.restore_latest()
        if restored.step == 10:  # bytes between the blocks of the index
            assert path.endswith(".index")
            assert restored.values.keys() == {*VALUES, "global_step"}
            for name, value in VALUES.items():
                np.testing.assert_array_equal(restored.values[name], value)
        damage(path, lambda content: flip(content, bit))  # noqa: B023
    assert capsys.readouterr().err.count("model.ckpt-10: unreadable") > 90
    assert saver.restore_latest().step == 10
    for part in PARTS[:2]:  # a copy of another step, of the same size
        path = f"{saver.folder}/model.ckpt-5{part}"
        shutil.copyfile(path, path.replace("-5", "-10"))
    assert saver.restore_latest().step == 5


def test_descriptions_of_earlier_releases_are_read(saver):
    """They have hashes, and NaN in the sums of a window."""
    saver.save(5, VALUES, {}, {"loss": math.nan})
    path = os.path.join(saver.folder, "model.ckpt-5.json")
    damage(path, lambda content: b'{"sha256": "0",' + content[1:])
    assert math.isnan(saver.restore_latest().state["loss"])


def test_a_run_never_starts_over_silently(saver):
    saver.save(5, VALUES, {})
    os.remove(os.path.join(saver.folder, "model.ckpt-5.json"))
    saver.sweep()
    with pytest.raises(UserError, match="no checkpoint here can be read"):
        saver.restore_latest()


def test_files_of_a_killed_save_are_swept(saver):
    for step in (5, 10):
        saver.save(step, VALUES, {})
    scratch = os.path.join(saver.folder, atomic.UNFINISHED)
    os.mkdir(scratch)  # killed between the names of the files of checkpoint 10
    name = f"model.ckpt-10{PARTS[-1]}"
    os.rename(f"{saver.folder}/{name}", f"{scratch}/{name}")
    for name in ("metrics.jsonl.partial", "model.ckpt-3.index"):
        with open(os.path.join(saver.folder, name), "w") as file:
            file.write("half")
    os.makedirs(os.path.join(saver.folder, "export.partial", "assets"))
    saver.sweep()
    assert not os.path.exists(scratch)
    assert files(saver) == ["checkpoint", "export.partial"] + [
        f"model.ckpt-5{part}" for part in PARTS
    ]


@pytest.mark.parametrize("renamed", [0, 1, 2])
def test_a_checkpoint_without_all_its_names_does_not_count(
    saver, monkeypatch, renamed
):
    replace, names = storage.replace, []

    def fail(source, path):
        if os.path.dirname(path) == saver.folder:
            if len(names) == renamed:
                raise OSError("no room")
            names.append(path)
        replace(source, path)

    monkeypatch.setattr(storage, "replace", fail)
    with pytest.raises(UserError, match="no room"):
        saver.save(10, VALUES, {})
    assert len(names) == renamed and saver.saved_steps() == []


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_not_saved(saver, value):
    saver.save(5, VALUES, {})
    before = files(saver)
    bad = {**VALUES, "c/bias": np.array([1, value], "f4")}
    with pytest.raises(UserError, match="c/bias has values that are not fini"):
        saver.save(10, bad, {})
    assert files(saver) == before


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(UserError, match="cannot be written: Not a directory"):
        Saver(str(path)).save(5, VALUES, {})


def test_reading_nothing_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="model.ckpt-5"):
        tensor_files.read(str(tmp_path / "model.ckpt-5"))


@pytest.fixture
def gate(monkeypatch):
    """Checkpoints are written when it is set."""
    gate, write = threading.Event(), tensor_files.write

    def wait_and_write(prefix, values):
        assert gate.wait(60)
        write(prefix, values)

    monkeypatch.setattr(tensor_files, "write", wait_and_write)
    return gate


def test_a_copy_is_written_while_training_goes_on(saver, gate):
    made = tiny.make_steps(use_xla=True)
    variables = made.model.trainable_variables
    optimizer = made.optimizer
    held = [*variables, *optimizer.adam_m, *optimizer.adam_v]
    tiny.take(made, None)
    before = tiny.tensors(made)
    values = {str(i): variable for i, variable in enumerate(held)}
    saver.save_in_background(1, values, {"seed": 3}, {"waited": 2})
    tiny.take(made, None, None)
    assert saver.saved_steps() == []
    gate.set()
    saver.wait()
    restored = saver.restore_latest()
    assert (restored.step, restored.settings) == (1, {"seed": 3})
    assert restored.state == {"waited": 2}
    for i, value in enumerate(before):
        np.testing.assert_array_equal(restored.values[str(i)], value)
        assert (tiny.tensors(made)[i] != value).any()


def test_one_checkpoint_is_written_at_a_time(saver, gate):
    """The end of the context manager waits too."""
    with saver:
        saver.save_in_background(5, VALUES, {})
        threading.Timer(0.2, gate.set).start()
        saver.save_in_background(10, VALUES, {})
        assert 5 in saver.saved_steps()
        saver.wait()
        assert saver.saved_steps() == [5, 10]
        gate.clear()
        saver.save_in_background(15, VALUES, {})
        threading.Timer(0.2, gate.set).start()
    assert saver.saved_steps() == [5, 10, 15]


def test_an_error_in_the_thread_is_raised_once(saver, capsys):
    saver.save_in_background(5, VALUES, {})
    bad = {"c/bias": np.array([1, np.nan], "f4")}
    for raised in (
        lambda: saver.save_in_background(15, VALUES, {}),
        lambda: saver.save(15, VALUES, {}),
        saver.__exit__,
        saver.wait,
    ):
        saver.save_in_background(10, bad, {})
        with pytest.raises(UserError, match="c/bias has values that are not"):
            raised()
        saver.wait()
    assert saver.saved_steps() == [5]
    assert capsys.readouterr().err == f"saved {saver.folder}/model.ckpt-5\n"
