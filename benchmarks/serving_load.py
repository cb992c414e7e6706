"""Requests per second and latencies of serve.py beside its bare predictor.

    python -m benchmarks.serving_load EXPORT LINES [SECONDS [FLAG ...]]

EXPORT is a folder of run_classifier.py --export_dir, LINES a file with one text
per line. 1, 8 and 64 clients each send a text and wait for the answer, for
SECONDS (default 20). The bare predictor, on the same engine, is called by as
many threads of this process, without HTTP and without batches. The clients of
the server are in this process too, so that on few cores they slow it down.
FLAGs are those of serve.py, such as --engine=keras. Prints a JSON line for each
measurement.
"""

import concurrent.futures
import contextlib
import http.client
import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from bert.inference.predictor import Predictor

CLIENTS = (1, 8, 64)
SECONDS = 20.0
_SCRIPT = Path(__file__).parents[1] / "serve.py"


@contextlib.contextmanager
def server(export: str, more: tuple[str, ...]) -> Iterator[Callable]:
    """Runs serve.py; yields a function of a text, and ends the server."""
    command = [sys.executable, _SCRIPT, f"--model={export}"]
    with subprocess.Popen(
        [*command, "--port=0", *more], stderr=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr:
            if found := re.search(r"http://127.0.0.1:(\d+)(/[^\s;]+)", line):
                break
        else:
            raise RuntimeError("serve.py has ended")
        port, path = int(found[1]), f"{found[2]}:predict"

        def ask(text):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            with contextlib.closing(connection):
                body = json.dumps({"instances": [text]})
                connection.request("POST", path, body)
                answer = connection.getresponse()
                if answer.status != 200:
                    raise RuntimeError(answer.read().decode())
                return json.loads(answer.read())["predictions"][0]["label"]

        try:
            yield ask
        finally:
            process.terminate()


def load(
    ask: Callable[[str], str], lines: list[str], clients: int, seconds: float
) -> tuple[dict, dict[str, str]]:
    """Asks from several threads; each waits for its answer.

    Args:
        ask: function of a text.
        lines: texts.
        clients: number of threads.
        seconds: duration.

    Returns:
        the figures, and the label of each text that was sent.
    """
    labels, latencies, failed = {}, [], []
    end = time.perf_counter() + seconds

    def client(number):
        texts = itertools.islice(itertools.cycle(lines), number, None)
        while (start := time.perf_counter()) < end:
            text = next(texts)
            try:
                labels[text] = ask(text)
                latencies.append(time.perf_counter() - start)
            except (OSError, RuntimeError) as error:
                failed.append(error)

    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        list(pool.map(client, range(clients)))
    spent = time.perf_counter() - start
    p50, p99 = np.percentile(latencies, [50, 99]) * 1000
    return {
        "clients": clients,
        "requests_per_second": round(len(latencies) / spent, 1),
        "p50_ms": round(p50, 2),
        "p99_ms": round(p99, 2),
        "requests": len(latencies),
        "failed": len(failed),
    }, labels


def measure(
    export: str,
    lines: str,
    seconds: float = SECONDS,
    more: tuple[str, ...] = (),
    clients: tuple[int, ...] = CLIENTS,
) -> Iterator[dict]:
    """Loads both sides in turns.

    Args:
        export, lines: paths of the export and of the texts.
        seconds: duration of a measurement.
        more: flags of serve.py.
        clients: numbers of clients.

    Yields:
        the figures of a side and a number of clients.
    """
    with open(lines, encoding="utf-8") as file:
        texts = file.read().splitlines()
    engine = [x.partition("=")[2] for x in more if x.startswith("--engine=")]
    predictor = Predictor.open(export, *engine)

    def bare(text):
        return predictor([{"text": text}])[0]["label"]

    with server(export, more) as ask:
        for count in clients:
            found = {}
            for side, function in (("serve.py", ask), ("bare", bare)):
                load(function, texts, count, seconds / 10)  # warm-up
                figures, labels = load(function, texts, count, seconds)
                for text, label in labels.items():
                    found.setdefault(text, set()).add(label)
                yield {
                    "side": side,
                    **figures,
                    "flags": list(more) if side == "serve.py" else [],
                    "other_labels": sum(len(x) > 1 for x in found.values()),
                    "cores": os.cpu_count(),
                }


def main() -> None:
    """Prints the JSON lines."""
    export, lines, *more = sys.argv[1:]
    seconds = float(more[0]) if more else SECONDS
    for figures in measure(export, lines, seconds, tuple(more[1:])):
        print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
