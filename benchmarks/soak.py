"""An hour of serve.py under load: memory, failed requests, a new version.

    python -m benchmarks.soak FOLDER LINES [--minutes=60] [--wait=1]

FOLDER is an export, LINES a file with one text per line. 64 clients, each on a
connection that it keeps, send a text, wait for the answer and then --wait
seconds. In the middle FOLDER is copied beside the served copy, as version 2.
Prints a JSON line: the server's resident memory each minute, the requests,
those that failed, and the seconds after which version 2 answered.
"""

import argparse
import concurrent.futures
import contextlib
import http.client
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

_SCRIPT = Path(__file__).parents[1] / "serve.py"
_MINUTE = 60.0


@contextlib.contextmanager
def server(model: str) -> Iterator[tuple[int, int]]:
    """Runs serve.py; yields its process and port, and ends it."""
    command = [sys.executable, _SCRIPT, f"--model=soak={model}", "--port=0"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr:
            if found := re.search(r"http://127.0.0.1:(\d+)", line):
                break
        else:
            raise RuntimeError("serve.py has ended")

        # A pipe without a reader would stop the server.
        log = threading.Thread(
            target=sys.stderr.writelines, args=[process.stderr]
        )
        log.start()
        try:
            yield process.pid, int(found[1])
        finally:
            process.terminate()
            log.join()


def ask(client: http.client.HTTPConnection, path: str, body=None) -> dict:
    """Sends a request; raises a RuntimeError if it fails."""
    client.request("GET" if body is None else "POST", path, body)
    answer = client.getresponse()
    text = answer.read().decode()
    if answer.status != 200:
        raise RuntimeError(f"{answer.status} {text}")
    return json.loads(text)


def resident_mb(pid: int) -> float:
    """Memory of a process in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s*(\d+)", status)[1]) / 1000


def soak(
    folder: str, lines: str, minutes: float, wait: float, clients: int = 64
) -> dict:
    """Runs a server and its clients.

    Args:
        folder: of the export.
        lines: path of the texts.
        minutes: duration.
        wait: seconds of a client between an answer and its next request.
        clients: number of clients.

    Returns:
        the figures.
    """
    texts = Path(lines).read_text(encoding="utf-8").splitlines()
    latencies, failed, memory = [], [], []
    end = threading.Event()

    def send(number, port):
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        end.wait(wait * number / clients)  # else they would ask in bursts
        for text in itertools.islice(itertools.cycle(texts), number, None):
            start = time.perf_counter()
            try:
                body = json.dumps({"instances": [text]})
                ask(client, "/v1/models/soak:predict", body)
                latencies.append(time.perf_counter() - start)
            except (OSError, RuntimeError, http.client.HTTPException) as error:
                failed.append(repr(error))
                client.close()
            if end.wait(wait):
                return

    def reload(model, port):
        if end.wait(minutes * _MINUTE / 2):
            return 0
        start = time.perf_counter()
        shutil.copytree(folder, f"{model}/2")
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while not end.wait(0.1):
            (state,) = ask(client, "/v1/models/soak")["model_version_status"]
            if state["version"] == "2":
                return round(time.perf_counter() - start, 1)
        return 0

    with tempfile.TemporaryDirectory() as model:
        shutil.copytree(folder, f"{model}/1")
        with (
            server(model) as (pid, port),
            concurrent.futures.ThreadPoolExecutor(clients + 1) as pool,
        ):
            others = [pool.submit(send, i, port) for i in range(clients)]
            second = pool.submit(reload, model, port)
            limit = time.monotonic() + minutes * _MINUTE
            while (left := limit - time.monotonic()) > 0:
                time.sleep(min(left, _MINUTE))
                memory.append(round(resident_mb(pid)))
                print(f"{memory[-1]} MB, {len(latencies)}", file=sys.stderr)
            end.set()
            for other in others:
                other.result()

    p50, p99 = np.percentile(latencies, [50, 99]) * 1000
    return {
        "minutes": minutes,
        "clients": clients,
        "wait": wait,
        "requests": len(latencies),
        "failed": len(failed),
        "failures": sorted({*failed})[:5],
        "p50_ms": round(p50, 2),
        "p99_ms": round(p99, 2),
        "seconds_to_version_2": second.result(),
        "memory_mb": memory,
        "cores": os.cpu_count(),
    }


def main() -> None:
    """Prints the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("lines")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--wait", type=float, default=1.0)
    print(json.dumps(soak(**vars(parser.parse_args()))), flush=True)


if __name__ == "__main__":
    main()
