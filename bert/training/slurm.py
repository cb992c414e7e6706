"""SLURM's environment variables, which `srun` sets for each process.

    SLURM_STEP_NODELIST=node[9-10],gpu1    the hosts
    SLURM_STEP_TASKS_PER_NODE=2(x2),1      number of tasks on each host
    SLURM_PROCID=3                         this task: the second of node10

TensorFlow's resolver needs nvidia-smi, and sorts these hosts as text, so that
node10 would get the ranks of node9.
"""

import itertools
import json
import os
import re
import time

from bert.common.errors import UserError

# Jobs on the same host get different ports, below Linux' ephemeral ports.
_FIRST_PORT, _PORTS_OF_A_STEP, _STEPS = 12_288, 64, 320
_SECONDS_TO_SAVE = 60.0


def num_tasks() -> int:
    """Number of processes that `srun` has started, including this one."""
    return int(os.environ.get("SLURM_STEP_NUM_TASKS", 1))


def tf_config() -> str | None:
    """TF_CONFIG of this process; None if `srun` has started only one.

    Raises:
        UserError: a variable is missing or malformed, or the tasks are not
            numbered host by host.
    """
    if num_tasks() < 2:
        return None
    try:
        return _tf_config()
    except (KeyError, IndexError, ValueError) as error:
        raise UserError(
            f"SLURM: {type(error).__name__}: {error}",
            expected="the variables that srun sets, such as "
            "SLURM_STEP_NODELIST=node[9-10]",
            fix="start with srun, or set TF_CONFIG",
        ) from None


def _tf_config() -> str:
    """TF_CONFIG if there are several processes."""
    names = ("PROCID", "NODEID", "LOCALID", "JOB_ID", "STEP_ID")
    index, host, local, job, step = (
        int(os.environ[f"SLURM_{name}"]) for name in names
    )

    hosts = _hosts(os.environ["SLURM_STEP_NODELIST"])
    counts = _counts(os.environ["SLURM_STEP_TASKS_PER_NODE"])
    slot = (job + 31 * step) % _STEPS
    port = _FIRST_PORT + _PORTS_OF_A_STEP * slot
    workers = [
        f"{name}:{port + i}"
        for name, count in zip(hosts, counts, strict=True)
        for i in range(count)
    ]

    if workers[index] != f"{hosts[host]}:{port + local}":
        raise UserError(
            f"SLURM: task {index} is on {hosts[host]}",
            expected="tasks that are numbered host by host",
            fix="pass --distribution=block to srun",
        )
    task = {"type": "worker", "index": index}
    return json.dumps({"cluster": {"worker": workers}, "task": task})


def seconds_left() -> float | None:
    """Seconds until this job has to save; None if its end is unknown."""
    end = os.environ.get("SLURM_JOB_END_TIME")
    if end is None:
        return None
    return max(0.0, float(end) - time.time() - _SECONDS_TO_SAVE)


def _hosts(names: str) -> list[str]:
    """`node[09-10],gpu1` -> node09, node10, gpu1."""
    hosts: list[str] = []
    for name in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", names):
        # Texts and lists of numbers alternate.
        parts = re.split(r"\[([^\]]*)\]", name)
        parts = [_numbers(x) if i % 2 else [x] for i, x in enumerate(parts)]
        hosts += map("".join, itertools.product(*parts))
    return hosts


def _numbers(ranges: str) -> list[str]:
    """`09-10,12` -> 09, 10, 12."""
    numbers = []
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        for number in range(int(first), int(last or first) + 1):
            numbers.append(f"{number:0{len(first)}}")
    return numbers


def _counts(tasks: str) -> list[int]:
    """`2(x3),1` -> 2, 2, 2, 1."""
    counts: list[int] = []
    for count, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", tasks):
        counts += [int(count)] * int(times or 1)
    return counts
