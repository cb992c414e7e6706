"""Real processes on this machine that train together."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def free_ports(count: int) -> list[int]:
    """Ports that no process uses."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def start(
    ports: list[int], command: list, only: list[int] | None = None
) -> list[subprocess.Popen]:
    """Starts a command once for each port.

    Args:
        ports: of the workers.
        command: arguments of `python`.
        only: numbers of those that are started; None: all.

    Returns:
        the processes; their output is text in pipes.
    """
    addresses = [f"127.0.0.1:{port}" for port in ports]
    started = []
    for index in range(len(ports)) if only is None else only:
        config = {
            "cluster": {"worker": addresses},
            "task": {"type": "worker", "index": index},
        }
        environment = {**os.environ, "TF_CONFIG": json.dumps(config)}
        environment.pop("TF_CPP_MIN_LOG_LEVEL", None)  # as users have it
        started.append(
            subprocess.Popen(
                [sys.executable, *map(str, command)],
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    return started


def wait_for_step(process, step):
    """Reads a worker's log up to a step."""
    log = ""
    for line in process.stderr:
        log += line
        found = re.match(r"step (\d+)/", line)
        if found and int(found[1]) >= step:
            return
    raise AssertionError(log)
