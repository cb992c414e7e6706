"""The cache of XLA's programs."""

import atexit
import errno
import importlib.metadata
import os
import subprocess
import sys
import types
import unittest.mock

import pytest

from bert.common import processes, tensorflow_log
from bert.modeling.config import BertConfig
from bert.runs import program_cache

LARGE = BertConfig(17, hidden_size=128, num_attention_heads=2)
CPU = "processor : 0\nflags : avx2{}\nMHz : {}\n\nprocessor : 1\nflags : avx2\n"


COMPILE = """
from bert.modeling.config import BertConfig
from bert.runs import program_cache
program_cache.use(BertConfig(17, hidden_size=128, num_attention_heads=2))
import tensorflow as tf
for i in range(7):
    print(tf.function(lambda x: x * i, jit_compile=True)(tf.ones(3)).numpy())
"""


@pytest.fixture
def use(tmp_path, monkeypatch):
    """Enables the cache as in a new process; returns whether it is used."""
    monkeypatch.setattr(processes, "CPU_INFO", str(tmp_path / "cpuinfo"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(program_cache, "sys", types.SimpleNamespace(modules={}))
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(atexit, "register", lambda *_: None)
    monkeypatch.setattr(tensorflow_log, "after_import", lambda *_: None)

    def run(config=LARGE, flags=None, features="", speed=1):
        (tmp_path / "cpuinfo").write_text(CPU.format(features, speed))
        monkeypatch.delenv(program_cache.FLAGS, raising=False)
        if flags is not None:
            monkeypatch.setenv(program_cache.FLAGS, flags)
        program_cache.use(config)
        return os.environ.get(program_cache.FLAGS) not in (None, flags)

    return run


@pytest.fixture
def root(tmp_path):
    return tmp_path / "cache" / "bert" / "xla"


def test_programs_are_those_of_a_processor_a_compiler_and_a_network(
    use, root, monkeypatch
):
    assert use() and use(speed=2) and len(os.listdir(root)) == 1
    assert use(features=" fma") and len(os.listdir(root)) == 2
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_max_isa=AVX2")
    assert use() and len(os.listdir(root)) == 3
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.99.0")
    assert use() and len(os.listdir(root)) == 4
    assert use(BertConfig(18, hidden_size=128, num_attention_heads=2))
    assert len(os.listdir(root)) == 5


def test_runs_that_have_no_cache(use, root, monkeypatch):
    assert not use(BertConfig(17, hidden_size=126, num_attention_heads=2))
    assert not use(flags="--tf_xla_auto_jit=2")
    monkeypatch.setattr(program_cache, "sys", sys)  # TensorFlow is imported
    assert not use()
    assert not root.exists()


@pytest.mark.parametrize(
    "cause",
    [
        "other users may write to it (mode 0770)",
        "other users may write to it (mode 0707)",
        "it is not a folder of this user",
        "File exists",
        "No space left on device",
    ],
)
def test_a_folder_that_cannot_be_used(use, root, monkeypatch, capsys, cause):
    """The run goes on without a cache, after one line."""
    if cause == "File exists":
        root.parent.mkdir(parents=True)
        root.touch()
    else:
        root.mkdir(parents=True)
    if "mode" in cause:
        root.chmod(int(cause[-5:-1], 8))
    elif "this user" in cause:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    elif "space" in cause:
        full = OSError(errno.ENOSPC, cause)
        monkeypatch.setattr(os, "chmod", unittest.mock.Mock(side_effect=full))
    assert not use()
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"{root}: compiled programs are not kept: {cause}; expected a folder "
        "of mode 0700; remove it, or set XDG_CACHE_HOME for another one"
    )


def test_the_folder_is_private(use, root):
    assert use() and root.stat().st_mode & 0o777 == 0o700
    root.chmod(0o755)
    assert use() and root.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_may_replace_is_not_used(use, root, capsys):
    assert use()
    root.parent.chmod(0o770)
    assert not use()
    line = capsys.readouterr().err
    assert f"as they may write to {root.parent}; expected" in line
    root.parent.chmod(0o755)
    assert use()


def test_a_link_is_not_used(use, root, tmp_path, capsys):
    root.parent.mkdir(parents=True)
    root.symlink_to(tmp_path)
    assert not use() and "not a folder of this user" in capsys.readouterr().err


def test_old_programs_are_removed(use, root, monkeypatch):
    assert use()
    folder = root / "other"
    folder.mkdir()
    for i in range(5):
        (folder / str(i)).touch()
        os.utime(folder / str(i), (100 - i, 100 - i))
    monkeypatch.setattr(program_cache, "_MOST", 5)
    assert use() and len(os.listdir(folder)) == 5
    monkeypatch.setattr(program_cache, "_MOST", 4)
    assert use() and sorted(os.listdir(folder)) == ["0", "1", "2"]


@pytest.mark.slow
def test_damaged_programs_are_compiled_again(tmp_path, monkeypatch):
    """One line says so, once; all other files are read."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    monkeypatch.delenv(program_cache.FLAGS)

    def compiled():
        found = subprocess.run(
            [sys.executable, "-c", COMPILE],
            check=True,
            capture_output=True,
            text=True,
            umask=0o002,
        )
        files = sorted(tmp_path.rglob("*.pb"))
        assert {x.stat().st_mode & 0o777 for x in files} == {0o600}
        lines = [x for x in found.stderr.splitlines() if "compiled" in x]
        return found.stdout, lines, {x: x.read_bytes() for x in files}

    values, lines, files = compiled()
    assert not lines and len(files) == 7
    empty, cut, flipped, exchanged, other, writable, kept = files
    empty.write_bytes(b"")
    cut.write_bytes(files[cut][:-1])
    changed = bytearray(files[flipped])
    changed[len(changed) // 2] ^= 1
    flipped.write_bytes(changed)
    exchanged.write_bytes(files[other])
    other.write_bytes(files[exchanged])
    writable.chmod(0o620)

    line = f"{kept.parent}: 6 of 7 compiled programs are damaged or not "
    line += "private: they are compiled again"
    again, lines, found = compiled()
    assert (again, lines, found.keys()) == (values, [line], files.keys())
    assert found[kept] == files[kept]
    assert compiled() == (values, [], found)


@pytest.mark.slow
def test_a_disk_that_fills_during_a_run(tmp_path, monkeypatch):
    """As a limit on the size of files: TensorFlow's error ended the run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(program_cache.FLAGS)
    limit = "import resource, signal\n"
    limit += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (999, 999))\n"
    run = subprocess.run(
        [sys.executable, "-c", COMPILE.replace("for", f"{limit}for", 1)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout.splitlines()[-1] == "[6. 6. 6.]"
    (line,) = [x for x in run.stderr.splitlines() if "compiled" in x]
    assert line.startswith(f"compiled programs are not kept: {tmp_path}/bert/")
    assert ": cannot be written: File too large" in line
    assert not list(tmp_path.rglob("*.p*"))


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
        command += ["--nolength_buckets"]  # a short run compiles nothing else
        run = subprocess.run(
            command, check=True, capture_output=True, text=True
        )
        assert "E0000" not in run.stderr
        (data,) = (tmp_path / name).glob("*.data-00000-of-00001")
        programs = {x: x.stat().st_mtime_ns for x in tmp_path.rglob("*.pb")}
        found.append((data.read_bytes(), programs))
    assert found[0] == found[1] and len(found[0][1]) > 10
