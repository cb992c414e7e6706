r"""Share of useful steps in a run that is preempted, restarts included.

    python -m benchmarks.preemptions RECORDS CONFIG STEPS PREEMPTIONS \
        [--FLAG=VALUE ...]

Runs run_pretraining.py; each preemption is SIGTERM at a random step of its part
of the run, and then the same command again. Flags are those of
run_pretraining.py. The steps are useful for as long as they take at the median
rate of the log; all other time is that of starting, compiling and ending.
Prints a JSON line.
"""

import json
import os
import random
import re
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

from benchmarks.startup import timed
from bert.training.preemption import RUN_AGAIN

BATCH_SIZE = 32
_STEP = re.compile(r"step (\d+)/")


def reaches(stop: int) -> Callable[[str], bool]:
    """Returns whether a line of the log is of step `stop` or a later one."""

    def is_last(line: str) -> bool:
        step = _STEP.match(line)
        return step is not None and int(step[1]) >= stop

    return is_last


def measure(
    records: str, config: str, steps: int, preemptions: int, *flags: str
) -> dict:
    """Times a run with preemptions.

    Args:
        records, config: files of the run.
        steps: steps of the run.
        preemptions: number of them, spread over the run at random.
        flags: others of run_pretraining.py.

    Returns:
        seconds in all and of a step, share of the useful ones, slowest end.
    """
    rng, part = random.Random(1), steps / (preemptions + 1)
    stops = [int((i + rng.random()) * part) + 1 for i in range(preemptions)]
    ends, start = [], time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        words = [
            *("run_pretraining.py", "--do_train", "--noreport"),
            f"--input_file={records}",
            f"--bert_config_file={config}",
            f"--output_dir={folder}/run",
            f"--num_train_steps={steps}",
            f"--train_batch_size={BATCH_SIZE}",
            *("--log_steps=1", "--iterations_per_loop=1"),
            *flags,
        ]
        for stop in stops:
            _, end, _ = timed(words, reaches(stop), signal.SIGTERM, RUN_AGAIN)
            ends.append(end)
        timed(words)
        seconds = time.perf_counter() - start
        with open(os.path.join(folder, "run", "metrics.jsonl")) as file:
            logged = [json.loads(line) for line in file]
    times = [
        BATCH_SIZE / line["examples_per_second"]
        for line in logged
        if line.get("examples_per_second")
    ]
    step = statistics.median(times)
    return {
        "what": f"{preemptions} preemptions in {steps} steps",
        "seconds": round(seconds, 1),
        "step_seconds": round(step, 4),
        "useful": round(steps * step / seconds, 4),
        "seconds_per_start": round(
            (seconds - steps * step) / (preemptions + 1), 2
        ),
        "slowest_end": round(max(ends), 2),
    }


def main() -> None:
    """Prints a JSON line."""
    records, config, steps, preemptions, *flags = sys.argv[1:]
    found = measure(records, config, int(steps), int(preemptions), *flags)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
