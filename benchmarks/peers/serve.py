"""Runs on demand, so that several systems can take turns.

Each system is a process that holds its network in memory and waits. A line on
standard input has the arguments of a run as JSON. The answer is a JSON line:
seconds, the value that the run returned, and the peak memory: that of the GPU
if there is one, else that of the process.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable


def serve(make: Callable, gpu_peak: Callable[[], int] = int) -> None:
    """Answers until the end of standard input.

    Args:
        make: () -> a function that runs once and returns a number, and a dict
            of versions, which is the first answer.
        gpu_peak: () -> most bytes held on the GPU, 0 without one.
    """
    # The output of libraries goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(values: dict) -> None:
        answers.write(json.dumps(values) + "\n")
        answers.flush()

    run, versions = make()
    answer(versions)
    for line in sys.stdin:
        arguments = json.loads(line)
        start = time.perf_counter()
        value = float(run(*arguments))
        seconds = time.perf_counter() - start
        usage = resource.getrusage(resource.RUSAGE_SELF)
        peak = gpu_peak() / 1e6 or usage.ru_maxrss / 1024
        answer(
            {
                "seconds": seconds,
                "value": value,
                "peak_megabytes": peak,
            }
        )
