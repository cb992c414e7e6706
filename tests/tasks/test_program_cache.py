"""The cache of XLA's programs, without TensorFlow."""

import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys
import types

import pytest

from bert.common import processes
from bert.modeling.config import BertConfig
from bert.runs import program_cache
from tests.helpers import full_disk

LARGE = BertConfig(17, hidden_size=128, num_attention_heads=2)
CPU = "processor : 0\nflags : avx2{}\nMHz : {}\n\nprocessor : 1\nflags : avx2\n"


@pytest.fixture
def use(tmp_path, monkeypatch):
    """Enables the cache as in a new process; returns the folder, or None."""
    monkeypatch.setattr(processes, "CPU_INFO", str(tmp_path / "cpuinfo"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(program_cache, "sys", types.SimpleNamespace(modules={}))
    monkeypatch.setenv("XLA_FLAGS", "")

    def run(config=LARGE, flags=None, features="", speed=1):
        (tmp_path / "cpuinfo").write_text(CPU.format(features, speed))
        monkeypatch.delenv(program_cache.FLAGS, raising=False)
        if flags is not None:
            monkeypatch.setenv(program_cache.FLAGS, flags)
        program_cache.use(config)
        found = os.environ.get(program_cache.FLAGS)
        if found is None or found == flags:
            return None
        _, path, kinds = found.split("'")
        assert kinds == " --tf_xla_persistent_cache_device_types=CPU"
        return pathlib.Path(path)

    return run


def test_programs_are_those_of_a_processor_and_its_compiler(use, monkeypatch):
    folder = use()
    assert folder.is_dir() and folder.parts[-3:-1] == ("bert", "xla")
    assert use(speed=2) == folder
    assert use(features=" fma") != folder
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_max_isa=AVX2")
    assert use() != folder
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.99.0")
    assert use() != folder


def test_runs_that_have_no_cache(use, monkeypatch):
    assert use(BertConfig(17, hidden_size=126, num_attention_heads=2)) is None
    assert use(flags="--tf_xla_auto_jit=2") is None
    with monkeypatch.context() as changed:
        changed.setenv("XDG_CACHE_HOME", "somebody's")
        assert use() is None
    monkeypatch.setattr(program_cache, "sys", sys)  # TensorFlow is imported
    assert use() is None


def test_a_disk_that_is_full_or_read_only_has_no_cache(use, monkeypatch):
    folder = use()
    with monkeypatch.context() as changed:
        changed.setattr(os, "access", lambda path, mode: False)
        assert use() is None
    with monkeypatch.context() as changed:
        usage = types.SimpleNamespace(free=2**20)
        changed.setattr(shutil, "disk_usage", lambda path: usage)
        assert use() is None
    (folder / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "file"))
    assert use() is None


def recorded(folder, *names):
    """Writes programs as a process that compiled them and ended."""
    for name in names:
        (folder / name).write_bytes(name.encode() * 99)
    program_cache._record(str(folder))


def flip(path):
    content = bytearray(path.read_bytes())
    content[7] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(b""),
        lambda path: shutil.copy(path.parent / "b.pb", path),
        flip,
    ],
    ids=["truncated", "empty", "exchanged", "flipped"],
)
def test_a_damaged_program_is_compiled_again(use, capsys, damage):
    folder = use()
    recorded(folder, "a.pb", "b.pb")
    assert use() == folder and not capsys.readouterr().err
    assert {x.name for x in folder.glob("*.pb")} == {"a.pb", "b.pb"}
    damage(folder / "a.pb")
    assert use() == folder
    found = capsys.readouterr().err
    assert found == f"compiling 1 damaged programs of {folder} again\n"
    assert {x.name for x in folder.glob("*.pb")} == {"b.pb"}


def test_programs_without_hashes_are_compiled_again(use, capsys):
    folder = use()
    recorded(folder, "a.pb")
    (folder / "killed.pb").write_bytes(b"of a process that was killed")
    assert use() == folder
    assert [x.name for x in folder.glob("*.pb")] == ["a.pb"]
    (folder / "sha256.json").write_text("[")
    assert use() == folder and not [*folder.glob("*.pb")]
    assert not capsys.readouterr().err


def test_a_folder_that_others_may_write_is_not_used(use, capsys):
    folder = use()
    assert folder.stat().st_mode & 0o777 == 0o700
    for path in (folder, folder.parent):
        path.chmod(0o770)
        assert use() is None
        assert f"write to {folder}" in capsys.readouterr().err
        path.chmod(0o755)  # as an earlier version made it
        assert use() == folder
    assert folder.stat().st_mode & 0o777 == 0o700
    moved = folder.rename(folder.with_name("moved"))
    folder.symlink_to(moved)
    assert use() is None


def test_a_quota_that_is_used_up_has_no_cache(use):
    folder = use()
    with full_disk.files_of_at_most(2**20):
        assert use() is None
    assert not [*folder.glob("probe*")]


def test_old_programs_are_removed(use, monkeypatch):
    folder = use()
    recorded(folder, *map(str, range(5)))
    for i in range(5):
        os.utime(folder / str(i), (100 - i, 100 - i))
    monkeypatch.setattr(program_cache, "_MOST", 5)
    assert use() == folder and len(os.listdir(folder)) == 6
    monkeypatch.setattr(program_cache, "_MOST", 4)
    assert use() == folder
    assert sorted(os.listdir(folder)) == ["0", "1", "2", "sha256.json"]


@pytest.mark.long
def test_a_later_run_reads_the_programs_and_ends_with_the_same_bits(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("TF_CPP_MIN_LOG_LEVEL", program_cache.FLAGS):
        monkeypatch.delenv(name)  # as users have it
    (tmp_path / "t.tsv").write_text("text\tlabel\n" + "a b\tx\nb\ty\n" * 9)
    (tmp_path / "vocab.txt").write_text(
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n"
    )
    (tmp_path / "config.json").write_text(LARGE.to_json())
    found = []
    for name in ("first", "second"):
        command = [sys.executable, "run_classifier.py", "--do_train"]
        command += ["--task_name=tsv", f"--train_file={tmp_path}/t.tsv"]
        command += [f"--vocab_file={tmp_path}/vocab.txt", "--noreport"]
        command += [f"--bert_config_file={tmp_path}/config.json"]
        command += [f"--output_dir={tmp_path}/{name}", "--train_batch_size=6"]
        run = subprocess.run(
            command, check=True, capture_output=True, text=True
        )
        assert "E0000" not in run.stderr
        (data,) = (tmp_path / name).glob("*.data-00000-of-00001")
        programs = {x: x.stat().st_mtime_ns for x in tmp_path.rglob("*.pb")}
        found.append((data.read_bytes(), programs))
    assert found[0] == found[1] and len(found[0][1]) > 10
