"""Times the second pass of a classifier over a file of texts."""

import json
import time
from collections.abc import Callable


def timed(run: Callable[[], list]) -> dict:
    """Returns the results, as labels, and the seconds: of the clock, of CPUs.

    A machine with other work lengthens the former more.
    """
    start, cpu_start = time.perf_counter(), time.process_time()
    labels = run()
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu_start,
        "labels": labels,
    }


def report(
    make: Callable[[list[str]], Callable[[], list[int]]], path: str
) -> None:
    """Prints one JSON line: `timed` of the second pass, numbers of the labels.

    Args:
        make: lines -> a function that returns the number of each line's label.
        path: file with one text per line.
    """
    with open(path, encoding="utf-8") as file:
        run = make(file.read().splitlines())
    run()
    print(json.dumps(timed(run)))
