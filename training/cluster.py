"""The processes that train together: who they are, and that all are there.

TF_CONFIG names them in each process, as TensorFlow has it; the first one, the
chief, is the only one that writes:

    {"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]},
     "task": {"type": "worker", "index": 0}}

TensorFlow waits for a process that is missing in silence. So all of them
meet here first: each reports to the chief, which knows who is missing.
"""

import dataclasses
import json
import os
import re
import select
import socket
import time

from common.errors import UserError
from common.progress import say
from training import preemption

VARIABLE = "TF_CONFIG"
_FORM = '{"cluster": {"worker": ["host:port", ...]}, "task": {"type": ' + (
    '"worker", "index": 0}}'
)
_TASK = re.compile(r"/job:(\w+)/(?:replica:0/)?task:(\d+)")
_PASSED_ON = re.compile(rf"from remote target {_TASK.pattern}")
_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_OF_SILENCE = 30.0  # after which the chief is taken for dead


class WorkerLostError(Exception):
    """Another process is gone; the message says which."""

    exit_code = preemption.RUN_AGAIN


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The processes of a run.

    Attributes:
        tasks: names such as "worker 1", the chief's first.
        addresses: "host:port" of each.
        index: which of them this process is.
    """

    tasks: tuple[str, ...]
    addresses: tuple[str, ...]
    index: int

    @property
    def is_chief(self) -> bool:
        """Whether this process is the one that writes."""
        return self.index == 0

    @property
    def port(self) -> int:
        """Where this process is reached."""
        return _split(self.addresses[self.index])[1]

    def describe(self, index: int) -> str:
        """`worker 1 (10.0.0.2:2222)`."""
        return f"{self.tasks[index]} ({self.addresses[index]})"

    def refusing(self) -> list[str]:
        """The other processes that are not there: nothing answers."""
        return [
            self.describe(i)
            for i, address in enumerate(self.addresses)
            if i != self.index and not _answers(address)
        ]

    def named_in(self, message: str) -> list[str]:
        """The other processes that TensorFlow names in a message.

        One that has only passed it on is not meant, if another is named.
        """
        found = _TASK.findall(_PASSED_ON.sub("", message))
        found = found or _TASK.findall(message)
        names = {f"{job} {number}" for job, number in found}
        return [
            self.describe(i)
            for i, task in enumerate(self.tasks)
            if task in names and i != self.index
        ]


def read(text: str) -> Cluster:
    """Reads what TF_CONFIG holds.

    Args:
        text: JSON, see above; a "chief" may stand beside the workers.

    Raises:
        UserError: it is not as TensorFlow expects it.
    """

    def wrong(found: str, expected: str = _FORM) -> UserError:
        return UserError(f"{VARIABLE}: {found}", expected=expected)

    try:
        config = json.loads(text)
    except ValueError as error:
        raise wrong(f"not JSON: {error}") from None
    if not isinstance(config, dict):
        raise wrong("not an object")
    cluster, task = config.get("cluster"), config.get("task")
    if not cluster or not isinstance(cluster, dict):
        raise wrong("no cluster")
    if not isinstance(task, dict) or not {"type", "index"} <= set(task):
        raise wrong("no task with type and index")
    named = {}
    for job, addresses in cluster.items():
        if job not in ("chief", "worker"):
            raise wrong(f"a job {job!r}", "chief and worker only")
        if not isinstance(addresses, list):
            raise wrong(f"{job} is not a list")
        for i, address in enumerate(addresses):
            if _split(address) is None:
                raise wrong(f"address {address!r}", "host:port")
            named[f"{job} {i}"] = address
    tasks = tuple(sorted(named, key=lambda x: x.startswith("worker")))
    if len(set(named.values())) < len(named):
        raise wrong("the same address twice", "one for each process")
    me = f"{task['type']} {task['index']}"
    if me not in named:
        raise wrong(f"the task is {me}", f"one of {', '.join(tasks)}")
    return Cluster(tasks, tuple(named[x] for x in tasks), tasks.index(me))


def of_flags(distribution: str, use_tpu: bool) -> Cluster | None:
    """The cluster that a run belongs to; None: it is one process.

    Args:
        distribution, use_tpu: the flags.

    Raises:
        UserError: TF_CONFIG is not as it should be.
    """
    text = os.environ.get(VARIABLE)
    if distribution == "multi_worker":
        if not text:
            raise UserError(
                f"--distribution=multi_worker without {VARIABLE}",
                expected=f"the environment variable {VARIABLE}: {_FORM}",
            )
        return read(text)
    if distribution != "auto" or use_tpu or not text:
        return None
    found = read(text)
    return found if len(found.tasks) > 1 else None


def meet(cluster: Cluster, timeout: float) -> None:
    """Waits until all processes of the cluster have come.

    Their ports are free again when it returns.

    Args:
        cluster: this process and the others.
        timeout: seconds to wait at most.

    Raises:
        UserError: the port of this process is in use.
        WorkerLostError: not all came in time; the message says who did not.
    """
    wait = _Wait(cluster, timeout)
    try:
        server = socket.create_server(("", cluster.port))
    except OSError as error:
        raise UserError(
            f"port {cluster.port} of {cluster.tasks[cluster.index]}: "
            f"{os.strerror(error.errno)}",
            expected="a port that no process uses",
            fix=f"end the process that uses it, or change {VARIABLE}",
        ) from None
    with server:
        if cluster.is_chief:
            _gather(server, wait)
        else:
            while not _report(wait):
                time.sleep(0.2)


class _Wait:
    """A wait for others that says for whom, and ends.

    Args:
        cluster: this process and the others.
        timeout: seconds.

    Attributes:
        missing: numbers of those who have not come, as far as is known.
    """

    def __init__(self, cluster: Cluster, timeout: float):
        self.cluster, self._timeout = cluster, timeout
        self.missing = [0]
        self._start = self._logged = time.monotonic()

    def check(self) -> None:
        """Logs who is missing, now and then; gives up after the timeout."""
        now = time.monotonic()
        names = ", ".join(map(self.cluster.describe, self.missing))
        if now - self._start > self._timeout:
            raise WorkerLostError(
                f"{names} did not start within {self._timeout:g} s "
                "(--cluster_timeout)"
            )
        if now - self._logged > _SECONDS_BETWEEN_LINES:
            self._logged = now
            say(f"waiting for {names}")


def _gather(server: socket.socket, wait: _Wait) -> None:
    """The chief's part: reports to all who is missing, until nobody is."""
    here: dict[int, socket.socket] = {}
    count = len(wait.cluster.tasks)
    try:
        while True:
            wait.missing = [i for i in range(1, count) if i not in here]
            line = json.dumps(wait.missing).encode() + b"\n"
            for number, connection in list(here.items()):
                if not _send(connection, line):
                    here.pop(number).close()
                    line = None
            if line and not wait.missing:
                return
            wait.check()
            ready, _, _ = select.select([server, *here.values()], [], [], 1.0)
            for number, connection in list(here.items()):
                if connection in ready:  # it says nothing more: it has left
                    here.pop(number).close()
            if server in ready:
                connection, _ = server.accept()
                number = _read_number(connection)
                if number in wait.missing:
                    here[number] = connection
                else:
                    connection.close()
    finally:
        for connection in here.values():
            connection.close()


def _report(wait: _Wait) -> bool:
    """Another worker's part: reports to the chief; whether all are there."""
    wait.missing = [0]
    wait.check()
    try:
        address = _split(wait.cluster.addresses[0])
        with socket.create_connection(address, 5.0) as connection:
            connection.sendall(b"%d\n" % wait.cluster.index)
            connection.settimeout(_SECONDS_OF_SILENCE)
            with connection.makefile("rb") as lines:
                for line in lines:
                    wait.missing = [int(x) for x in json.loads(line)]
                    if not wait.missing:
                        return True
                    wait.check()
    # An old chief's TensorFlow, on its way out, answers in another language.
    except (OSError, ValueError, TypeError):
        pass
    return False


def _read_number(connection: socket.socket) -> int | None:
    """The number that a process reports; None: it is none of ours."""
    connection.settimeout(1.0)
    try:
        return int(connection.recv(16))
    except (OSError, ValueError):
        return None


def _answers(address: str) -> bool:
    try:
        socket.create_connection(_split(address), 1.0).close()
        return True
    except ConnectionRefusedError:
        return False
    except OSError:  # a network that is slow proves nothing
        return True


def _send(connection: socket.socket, line: bytes) -> bool:
    try:
        connection.sendall(line)
        return True
    except OSError:
        return False


def _split(address) -> tuple[str, int] | None:
    """Host and port; None: it is no address."""
    match = re.fullmatch(r"(.+):(\d{1,5})", str(address))
    return (match[1].strip("[]"), int(match[2])) if match else None
