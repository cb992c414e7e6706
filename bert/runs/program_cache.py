"""Cache of the programs that XLA compiles for a CPU.

A training step on a CPU runs a few small programs for each length of its
batches. Compiling the programs of a new length takes a second or more. With the
cache, a later command with the same network, batch size and lengths reads them.

    files of the cache -> checked -> memory -> TensorFlow
    files of the cache <- with checksums <- memory <- TensorFlow

TensorFlow checks nothing, and ends a run if a file is damaged or if the disk is
full. It therefore reads and writes its file system in memory. Programs are
executed: only files of this user, which no other user may write, are read.
"""

import atexit
import contextlib
import functools
import hashlib
import importlib.metadata
import os
import platform
import stat
import sys

from bert.common import atomic, processes, storage, tensorflow_log
from bert.common.errors import UserError, reason_of
from bert.common.progress import log
from bert.modeling.config import SMALLEST_HIDDEN_SIZE, BertConfig

FLAGS = "TF_XLA_FLAGS"
_CPU = ("vendor_id", "model name", "flags", "Features", "CPU part")
_MOST = 5000  # programs, of about 70 kB each
_MEMORY = "ram://bert/xla"  # where TensorFlow reads and writes programs
_ENDING = ".pb"  # of TensorFlow's files
_OTHERS_WRITE = 0o022
_DIGEST = hashlib.sha256().digest_size  # bytes at the start of a file


def use(config: BertConfig) -> None:
    """Enables the cache of this process, before TensorFlow is imported.

    Small networks have no fused operations, and do not use it. It is not used
    either if TF_XLA_FLAGS is set. New programs are written when the process
    ends. If the cache cannot be used, one line says why.

    Args:
        config: BertConfig. Sizes of the network.
    """
    is_late = FLAGS in os.environ or "tensorflow" in sys.modules
    if is_late or config.hidden_size < SMALLEST_HIDDEN_SIZE:
        return
    cpu = processes.cpu_info(*_CPU)
    root = _root()
    try:
        path = os.path.join(root, _key(cpu, config))
        if not cpu or not _is_private(root):
            return
        os.makedirs(path, exist_ok=True)
        _remove_oldest(root)
        programs = _read(path)
    except importlib.metadata.PackageNotFoundError:
        return
    except OSError as error:
        _log_unused(root, reason_of(error))
        return
    os.environ[FLAGS] = (
        f"--tf_xla_persistent_cache_directory='{_MEMORY}' "
        "--tf_xla_persistent_cache_device_types=CPU"
    )
    # Functions that are registered first are called last, when all is compiled.
    atexit.register(_write, path, set(programs))
    tensorflow_log.after_import(
        "tensorflow", functools.partial(_load, programs)
    )


def _is_private(root: str) -> bool:
    """Whether only this user can write the folder, which is made if missing.

    Args:
        root: str. Folder of the cache. A line is printed if it is not private.
    """
    umask = os.umask(0o077)  # `makedirs` gives its mode to the last folder only
    try:
        os.makedirs(root, exist_ok=True)
    finally:
        os.umask(umask)
    found = os.lstat(root)
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        cause = "it is not a folder of this user"
    elif mode & _OTHERS_WRITE:
        cause = f"other users may write to it (mode {mode:04o})"
    elif above := _replaceable_by_others(root):
        cause = f"other users may replace it, as they may write to {above}"
    else:
        os.chmod(root, 0o700)
        return True
    _log_unused(root, cause)
    return False


def _replaceable_by_others(root: str) -> str:
    """Returns the folder above a folder that others may write to; or ""."""
    path = os.path.abspath(root)
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        found = os.stat(path)
        # In a sticky folder, such as /tmp, a user replaces only the own files.
        is_open = found.st_mode & _OTHERS_WRITE
        if found.st_uid not in (0, os.geteuid()) or (
            is_open and not found.st_mode & stat.S_ISVTX
        ):
            return path
    return ""


def _log_unused(root: str, cause: str) -> None:
    log(
        f"{root}: compiled programs are not kept: {cause}; expected a folder "
        "of mode 0700; remove it, or set XDG_CACHE_HOME for another one"
    )


def _read(path: str) -> dict[str, bytes]:
    """Reads programs by name; removes damaged files, and says so once."""
    programs, num_damaged = {}, 0
    for entry in os.scandir(path):
        if not entry.name.endswith(_ENDING):  # is being written
            continue
        program = _read_program(entry)
        if program:
            programs[entry.name] = program
        else:
            num_damaged += 1
            with contextlib.suppress(FileNotFoundError):  # another run did
                os.remove(entry.path)

    if num_damaged:
        log(
            f"{path}: {num_damaged} of {num_damaged + len(programs)} compiled "
            "programs are damaged or not private: they are compiled again"
        )
    return programs


def _read_program(entry: os.DirEntry) -> bytes | None:
    """Returns a program if its file is private and has the right checksum."""
    try:
        found = entry.stat(follow_symlinks=False)
        is_own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if not is_own or found.st_mode & _OTHERS_WRITE:
            return None
        with open(entry.path, "rb") as file:
            digest, program = file.read(_DIGEST), file.read()
    except OSError:
        return None
    return program if digest == _digest(entry.name, program) else None


def _digest(name: str, program: bytes) -> bytes:
    """Checksum of a program, which differs from file to file."""
    return hashlib.sha256(b"%b\0%b" % (name.encode(), program)).digest()


def _load(programs: dict[str, bytes]) -> None:
    """Moves programs to TensorFlow's file system in memory."""
    storage.make_folder(_MEMORY)
    while programs:
        name, program = programs.popitem()
        with storage.open_file(f"{_MEMORY}/{name}", "wb") as file:
            file.write(program)


def _write(path: str, known: set[str]) -> None:
    """Writes the programs that this process has compiled."""
    if "tensorflow" not in sys.modules:
        return
    try:
        for name in set(storage.list_folder(_MEMORY)) - known:
            with storage.open_file(f"{_MEMORY}/{name}", "rb") as memory:
                program = memory.read()
            file = os.path.join(path, name)
            content = _digest(name, program) + program
            atomic.write_whole(file, content, is_shared=True)
            os.chmod(file, 0o600)
    except (OSError, UserError) as error:
        log(f"compiled programs are not kept: {error}")


def _root() -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "bert", "xla")


def _key(cpu: list[str], config: BertConfig) -> str:
    """A hash of the processor, the compiler and the network.

    TensorFlow's own key has the source and the shapes of a program, but not the
    processor. A process reads the programs of one network only.
    """
    version = importlib.metadata.version("tensorflow")
    flags = os.environ.get("XLA_FLAGS", "")
    described = "\n".join(
        [version, platform.machine(), flags, *cpu, config.to_json()]
    )
    return hashlib.sha256(described.encode()).hexdigest()[:16]


def _remove_oldest(root: str) -> None:
    """Removes the older half of the programs if there are too many."""
    files = [
        os.path.join(x, name) for x, _, names in os.walk(root) for name in names
    ]
    if len(files) > _MOST:
        files.sort(key=lambda x: os.lstat(x).st_mtime)
        for file in files[: len(files) // 2]:
            os.remove(file)
