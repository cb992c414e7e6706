"""Times the second pass of a classifier over a file of texts."""

import json
import time
from collections.abc import Callable


def report(
    make: Callable[[list[str]], Callable[[], list[int]]], path: str
) -> None:
    """Prints one JSON line: seconds of the second pass, numbers of the labels.

    Args:
        make: lines -> a function that returns the number of each line's label.
        path: file with one text per line.
    """
    with open(path, encoding="utf-8") as file:
        run = make(file.read().splitlines())
    run()
    start = time.perf_counter()
    labels = run()
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "labels": labels}))
