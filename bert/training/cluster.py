"""Processes of a distributed run, and how they connect.

TF_CONFIG lists all processes in each process, as TensorFlow expects. The chief,
which comes first, is the only one that writes files:

    {"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]},
     "task": {"type": "worker", "index": 0}}

Without TF_CONFIG, the variables of SLURM are used, see `slurm_config`.

TensorFlow waits silently for a missing process, so each process first waits
until all other ports answer.
"""

import dataclasses
import itertools
import json
import os
import re
import socket
import time
from typing import Annotated

import msgspec

from bert.common.errors import UserError, reason_of
from bert.common.formats import json_files
from bert.common.progress import log
from bert.training import preemption

VARIABLE = "TF_CONFIG"
_FORM = '{"cluster": {"worker": ["host:port", ...]}, "task": {"type": ' + (
    '"worker", "index": 0}}'
)
_TASK = re.compile(r"/job:(\w+)/(?:replica:0/)?task:(\d+)")
_PASSED_ON = re.compile(rf"from remote target {_TASK.pattern}")
_SECONDS_BETWEEN_LINES = 10.0

# SLURM jobs on the same host get different ports, below Linux' ephemeral ports.
_FIRST_PORT, _PORTS_OF_A_STEP, _STEPS = 12_288, 64, 320
_SECONDS_TO_SAVE = 60.0  # before SLURM ends the job


class _Task(msgspec.Struct):
    type: str
    index: int


_Address = Annotated[str, msgspec.Meta(pattern=r"^.+:\d{1,5}\Z")]
_TRAINING, _OTHERS = ("chief", "worker"), ("ps", "evaluator")


class _Config(msgspec.Struct):
    cluster: Annotated[dict[str, list[_Address]], msgspec.Meta(min_length=1)]
    task: _Task


class WorkerLostError(Exception):
    """Another process was lost; the message names it."""

    exit_code = preemption.RUN_AGAIN


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The processes of a run.

    Attributes:
        tasks: tuple of str. Names such as "worker 1"; the chief comes first.
        addresses: tuple of str. "host:port" of each process.
        index: int. Index of this process.
    """

    tasks: tuple[str, ...]
    addresses: tuple[str, ...]
    index: int

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the files."""
        return self.index == 0

    @property
    def tf_config(self) -> str:
        """TF_CONFIG of this process, with only the chief and the workers."""
        jobs: dict[str, list[str]] = {}
        for task, address in zip(self.tasks, self.addresses):
            jobs.setdefault(task.split()[0], []).append(address)
        kind, index = self.tasks[self.index].split()
        task = {"type": kind, "index": int(index)}
        return json.dumps({"cluster": jobs, "task": task})

    def describe(self, index: int) -> str:
        """`worker 1 (10.0.0.2:2222)`."""
        return f"{self.tasks[index]} ({self.addresses[index]})"

    def unreachable(self) -> list[str]:
        """The other processes whose ports do not answer."""
        return [
            self.describe(i)
            for i, address in enumerate(self.addresses)
            if i != self.index and not _answers(address)
        ]

    def named_in(self, message: str) -> list[str]:
        """The other processes that a message of TensorFlow names.

        A process that only forwarded the message counts if no other is named.
        """
        tasks = _TASK.findall(_PASSED_ON.sub("", message))
        tasks = tasks or _TASK.findall(message)
        names = {f"{job} {number}" for job, number in tasks}
        return [
            self.describe(i)
            for i, task in enumerate(self.tasks)
            if task in names and i != self.index
        ]


def read(text: str) -> Cluster:
    """Parses TF_CONFIG.

    Args:
        text: str. JSON, see above. A "chief" beside the workers is allowed;
            other jobs are ignored.

    Raises:
        UserError: it does not have the form that TensorFlow expects.
        SystemExit: this process is a parameter server or an evaluator.
    """
    with json_files.reported(VARIABLE, _FORM):
        config = json_files.decode(text, _Config)
    me = f"{config.task.type} {config.task.index}"
    if config.task.type in _OTHERS:
        log(f"{VARIABLE}: {me} does not take part in the training")
        raise SystemExit(0)

    # The chief is first.
    named = {
        f"{job} {i}": address
        for job in _TRAINING
        for i, address in enumerate(config.cluster.get(job, []))
    }
    tasks, addresses = tuple(named), tuple(named.values())
    if len(set(addresses)) < len(addresses):
        raise UserError(
            f"{VARIABLE}: an address occurs twice",
            expected="a different address for each process",
        )

    if me not in named:
        raise UserError(
            f"{VARIABLE}: the task is {me}",
            expected=f"one of {', '.join(tasks)}",
        )
    return Cluster(tasks, addresses, tasks.index(me))


def from_flags(distribution: str, use_tpu: bool) -> Cluster | None:
    """The cluster of a run, or None for a single process.

    Args:
        distribution: str. Value of --distribution.
        use_tpu: bool. Value of --use_tpu.

    Raises:
        UserError: TF_CONFIG is missing or malformed.
        SystemExit: this process does not take part in the training.
    """
    is_asked_for = distribution == "multi_worker"
    if not is_asked_for and (distribution != "auto" or use_tpu):
        return None

    text = os.environ.get(VARIABLE) or slurm_config()
    if not text:
        if not is_asked_for:
            return None
        raise UserError(
            f"--distribution=multi_worker without {VARIABLE}",
            expected=f"srun with several tasks, or {VARIABLE}: {_FORM}",
        )

    # Some platforms set TF_CONFIG for a single process, too.
    cluster = read(text)
    return cluster if is_asked_for or len(cluster.tasks) > 1 else None


def meet(cluster: Cluster, timeout: float) -> None:
    """Waits until all processes of the cluster have started.

    Logs the names of missing processes. Meanwhile this process listens on its
    port, which is free for TensorFlow afterwards.

    Args:
        cluster: Cluster. This process and the others.
        timeout: float. Maximum number of seconds to wait.

    Raises:
        UserError: the port of this process is in use.
        WorkerLostError: some processes did not start in time; the message
            names them.
    """
    _, port = _split(cluster.addresses[cluster.index])
    try:
        server = socket.create_server(("", port))
    except OSError as error:
        raise UserError(
            f"port {port} of {cluster.tasks[cluster.index]}: "
            f"{reason_of(error)}",
            expected="a port that no process uses",
            fix=f"end the process that uses it, or change {VARIABLE}",
        ) from None

    # The port is open now, so the other processes find this one.
    start = logged = time.monotonic()
    missing = [i for i in range(len(cluster.tasks)) if i != cluster.index]
    with server:
        while missing := [
            i for i in missing if not _answers(cluster.addresses[i])
        ]:
            names = ", ".join(map(cluster.describe, missing))

            now = time.monotonic()
            if now - start > timeout:
                raise WorkerLostError(
                    f"{names} did not start within {timeout:g} s "
                    "(--cluster_timeout)"
                )

            if now - logged > _SECONDS_BETWEEN_LINES:
                logged = now
                log(f"waiting for {names}")
            time.sleep(0.2)


def _answers(address: str) -> bool:
    try:
        socket.create_connection(_split(address), 1.0).close()
        return True
    except OSError:
        return False


def _split(address: str) -> tuple[str, int]:
    """Host and port."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def num_slurm_tasks() -> int:
    """Number of processes that `srun` has started, including this one."""
    return int(os.environ.get("SLURM_STEP_NUM_TASKS", 1))


def slurm_config() -> str | None:
    """TF_CONFIG of this process; None if `srun` has started only one.

        SLURM_STEP_NODELIST=node[9-10],gpu1    the hosts
        SLURM_STEP_TASKS_PER_NODE=2(x2),1      number of tasks on each host
        SLURM_PROCID=3                         this task: the second of node10

    TensorFlow's resolver needs nvidia-smi, and sorts these hosts as text, so
    that node10 would get the ranks of node9.

    Raises:
        UserError: a variable is missing or malformed, or the tasks are not
            numbered host by host.
    """
    if num_slurm_tasks() < 2:
        return None
    try:
        return _slurm_config()
    except (KeyError, IndexError, ValueError) as error:
        raise UserError(
            f"SLURM: {type(error).__name__}: {error}",
            expected="the variables that srun sets, such as "
            "SLURM_STEP_NODELIST=node[9-10]",
            fix="start with srun, or set TF_CONFIG",
        ) from None


def _slurm_config() -> str:
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


def slurm_seconds_left() -> float | None:
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
