"""Cache of the programs that XLA compiles for a CPU.

A training step on a CPU runs a few small programs for each length of its
batches. Compiling the programs of a new length takes a second or more. With the
cache, a later command with the same network, batch size and lengths reads them.

The programs are machine code that TensorFlow executes, and TensorFlow ends a
run at a damaged one. So the folder belongs to the user alone, and a program is
kept only if it has the SHA-256 hash that the process which compiled it recorded
at its end.
"""

import atexit
import functools
import hashlib
import importlib.metadata
import os
import platform
import shutil
import stat
import sys

from bert.common import processes, storage
from bert.common.atomic import write_whole
from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.common.progress import log
from bert.modeling.config import SMALLEST_HIDDEN_SIZE, BertConfig

FLAGS = "TF_XLA_FLAGS"
_CPU = ("vendor_id", "model name", "flags", "Features", "CPU part")
_MOST = 5000  # programs, of about 70 kB each
_FREE = 2**30  # bytes; TensorFlow ends a run if it cannot write a program
_PROBE = 2**24  # bytes that a quota must allow
_HASHES = "sha256.json"  # name of a program -> hash
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def use(config: BertConfig) -> None:
    """Enables the cache of this process, before TensorFlow is imported.

    Small networks have no fused operations, and do not use it. It is not used
    either if TF_XLA_FLAGS is set, if the disk is read-only or nearly full, or
    if other users may write to the folder. Damaged programs are removed, so
    that they are compiled again.

    Args:
        config: BertConfig. Sizes of the network.
    """
    is_late = FLAGS in os.environ or "tensorflow" in sys.modules
    if is_late or config.hidden_size < SMALLEST_HIDDEN_SIZE:
        return
    cpu = processes.cpu_info(*_CPU)
    if not cpu:
        return
    try:
        path = os.path.join(_root(), _key(cpu))
        if "'" in path:  # TensorFlow's quotation mark
            return
        os.makedirs(path, mode=0o700, exist_ok=True)
        if not _is_private(path):
            log(f"programs are not kept: other users may write to {path}")
            return
        os.chmod(path, 0o700)
        if not _has_space(path):
            return
        _remove_damaged(path)
        _remove_oldest(path)
    except (OSError, importlib.metadata.PackageNotFoundError):
        return
    atexit.register(functools.partial(_record, path))
    os.environ[FLAGS] = (
        f"--tf_xla_persistent_cache_directory='{path}' "
        "--tf_xla_persistent_cache_device_types=CPU"
    )


def _is_private(path: str) -> bool:
    """Whether only this user can write to a folder, or replace it."""
    path = os.path.abspath(path)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        return False
    if found.st_mode & _OTHERS:
        return False
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        found = os.stat(path)
        # In a sticky folder, such as /tmp, each user replaces the own files.
        if found.st_mode & _OTHERS and not found.st_mode & stat.S_ISVTX:
            return False
        if found.st_uid not in (0, os.getuid()):
            return False
    return True


def _has_space(path: str) -> bool:
    """Whether the disk and the quota of the user have room for programs."""
    if shutil.disk_usage(path).free < _FREE or not os.access(path, os.W_OK):
        return False
    probe = os.path.join(path, f"probe-{os.getpid()}")
    try:
        with open(probe, "wb") as file:
            file.write(bytes(_PROBE))
    except OSError:
        return False
    finally:
        if os.path.exists(probe):
            os.remove(probe)
    return True


def _hashes(path: str) -> dict[str, str]:
    """Reads the recorded hashes; {} if there are none, or if damaged."""
    file = os.path.join(path, _HASHES)
    try:
        return json_files.read(file, dict[str, str])
    except (OSError, UserError):
        return {}


def _programs(path: str) -> list[os.DirEntry]:
    return [x for x in os.scandir(path) if x.name != _HASHES]


def _remove_damaged(path: str) -> None:
    """Removes programs that differ from their recorded hash, or have none."""
    hashes, count = _hashes(path), 0
    for program in _programs(path):
        expected = hashes.get(program.name)
        if expected is None or storage.hash_file(program.path) != expected:
            os.remove(program.path)
            count += expected is not None
    if count:
        log(f"compiling {count:,} damaged programs of {path} again")


def _record(path: str) -> None:
    """Records the hashes of the programs, when this process ends."""
    try:
        known = _hashes(path)
        hashes = {
            program.name: known.get(program.name)
            or storage.hash_file(program.path)
            for program in _programs(path)
        }
        write_whole(os.path.join(path, _HASHES), json_files.to_json(hashes))
    except (OSError, UserError):  # they are compiled again
        return


def _root() -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "bert", "xla")


def _key(cpu: list[str]) -> str:
    """A hash of all that a program depends on, other than its source.

    TensorFlow's own key has the source and the shapes, but not the processor.
    """
    version = importlib.metadata.version("tensorflow")
    flags = os.environ.get("XLA_FLAGS", "")
    described = "\n".join([version, platform.machine(), flags, *cpu])
    return hashlib.sha256(described.encode()).hexdigest()[:16]


def _remove_oldest(path: str) -> None:
    """Removes the older half of the programs if there are too many."""
    programs = _programs(path)
    if len(programs) > _MOST:
        programs.sort(key=lambda x: x.stat().st_mtime)
        for program in programs[: len(programs) // 2]:
            os.remove(program.path)
