"""Killed runs, and checks of their files."""

import hashlib
import importlib
import itertools
import os
import pydoc
import signal
import threading

import numpy as np

from tests.helpers import run_folders

MODULES = (  # all that a run imports, also late
    "run_pretraining",
    "bert.data.pretraining.dynamic_masking",
    "bert.data.records.reader",
    "bert.data.records.shard_check",
    "bert.modeling.checkpoints",
    "bert.modeling.networks",
    "bert.modeling.losses",
    "bert.training.trainer",
    "bert.training.distribution",
)


def write_files(folder) -> None:
    """Writes records and the config of a network with dropout."""
    from tests.helpers import pretraining_runs

    pretraining_runs.write(folder, num_hidden_layers=1)


def flags(folder, output, steps: int, **changed) -> list[str]:
    """Flags of a run on the files of `write_files`."""
    from tests.helpers import pretraining_runs

    sizes = {
        "num_train_steps": steps,
        "num_warmup_steps": 5,
        "learning_rate": 0.003,
        "save_checkpoints_steps": 4,
        "log_steps": 3,
        "iterations_per_loop": 2,
    }
    named = pretraining_runs.flags_of(folder, output, **{**sizes, **changed})
    words = [f"--{name}={x}" for name, x in named.items()]
    return ["--do_train", "--noreport", "--dynamic_masking", *words]


def pretrain(argv: list[str], replicas: int = 1) -> int:
    """Runs run_pretraining in this process; returns its exit code."""
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * replicas
    )
    return _run("run_pretraining", argv)


def classify(argv: list[str]) -> int:
    """Runs run_classifier in this process; returns its exit code."""
    return _run("run_classifier", argv)


def predict(argv: list[str]) -> int:
    """Runs predict in this process; returns its exit code."""
    return _run("predict", argv)


def extract(argv: list[str]) -> int:
    """Runs extract_features in this process; returns its exit code."""
    return _run("extract_features", argv)


def create(argv: list[str], partition_bytes: int) -> int:
    """Runs create_pretraining_data in this process; returns its exit code.

    Args:
        argv: flags.
        partition_bytes: text of a partition.
    """
    from bert.data.corpus import documents

    documents.PARTITION_BYTES = partition_bytes
    return _run("create_pretraining_data", argv)


def _run(script: str, argv: list[str]) -> int:
    from bert.common import main as main_lib

    main = importlib.import_module(script).main
    return main_lib.run(main, [script, *argv])


def die(
    argv: list[str],
    script: str,
    function: str,
    word: str,
    number: int = 1,
    *more,
) -> int:
    """Runs a script up to a call that kills the process.

    Args:
        argv: flags.
        script: name of the function of this module that runs it.
        function: its name, with module and class.
        word: the process dies at a call with it in an argument; at any if it
            is empty. In the thread of training it dies between two checkpoints.
        number: of that call, from 1.
        *more: further arguments of the function that runs the script.
    """
    owner, _, name = function.rpartition(".")
    owner = pydoc.locate(owner)
    original, calls = getattr(owner, name), itertools.count(1)

    def call(*args, **named):
        is_meant = not word or any(word in str(x) for x in args)
        if is_meant and next(calls) == number:
            if threading.current_thread() is threading.main_thread():
                for thread in threading.enumerate():
                    if thread.name.startswith("checkpoint"):
                        thread.join()
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **named)

    setattr(owner, name, call)
    return globals()[script](argv, *more)


def save_for_ever(folder: str, first: int, megabytes: int) -> None:
    """Saves checkpoints whose every number is their step."""
    from bert.training.saver import Saver

    saver = Saver(folder, keep_max=2)
    saver.sweep()
    step = first
    while True:
        values = {
            f"{i}": np.full(1 << 18, step, "f4") for i in range(megabytes)
        }
        saver.save(step, values, {"step": step}, {"step": step})
        print("saved", flush=True)
        step += 1


def digest(folder, step: int) -> str:
    """sha256 over the names and bits of weights, moments and step."""
    from bert.common.formats import tensor_files

    values = tensor_files.read(os.path.join(folder, f"model.ckpt-{step}"))
    found = hashlib.sha256()
    for name in sorted(values):
        found.update(name.encode() + values[name].tobytes())
    return found.hexdigest()


def losses(folder) -> list[tuple]:
    """(step, kind, losses and accuracies as hex) of each line."""
    return [
        (
            line["step"],
            line["kind"],
            *(
                line[name].hex()
                for name in sorted(line)
                if name.endswith(("loss", "accuracy"))
            ),
        )
        for line in run_folders.points(folder)
    ]


def leftovers(folder) -> list[str]:
    """Files that only an active run may have."""
    names = sorted(os.listdir(folder))
    described = {n.removesuffix("json") for n in names if n.endswith(".json")}
    return [
        name
        for name in names
        if "partial" in name
        or "temp" in name
        or (
            name.startswith("model.ckpt-")
            and not any(name.startswith(prefix) for prefix in described)
        )
    ]
