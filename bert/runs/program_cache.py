"""Cache of the programs that XLA compiles for a CPU.

A training step on a CPU runs a few small programs for each length of its
batches. Compiling the programs of a new length takes a second or more. With the
cache, a later command with the same network, batch size and lengths reads them.
"""

import hashlib
import importlib.metadata
import os
import platform
import shutil
import sys

from bert.common import processes
from bert.modeling.config import SMALLEST_HIDDEN_SIZE, BertConfig

FLAGS = "TF_XLA_FLAGS"
_CPU = ("vendor_id", "model name", "flags", "Features", "CPU part")
_MOST = 5000  # programs, of about 70 kB each
_FREE = 2**30  # bytes; TensorFlow ends a run if it cannot write a program


def use(config: BertConfig) -> None:
    """Enables the cache of this process, before TensorFlow is imported.

    Small networks have no fused operations, and do not use it. It is not used
    either if TF_XLA_FLAGS is set, or if the disk is read-only or nearly full.

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
        os.makedirs(path, exist_ok=True)
        _remove_oldest(path)
        if shutil.disk_usage(path).free < _FREE or not os.access(path, os.W_OK):
            return
    except (OSError, importlib.metadata.PackageNotFoundError):
        return
    os.environ[FLAGS] = (
        f"--tf_xla_persistent_cache_directory='{path}' "
        "--tf_xla_persistent_cache_device_types=CPU"
    )


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
    programs = [*os.scandir(path)]
    if len(programs) > _MOST:
        programs.sort(key=lambda x: x.stat().st_mtime)
        for program in programs[: len(programs) // 2]:
            os.remove(program.path)
