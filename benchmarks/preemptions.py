r"""Share of useful steps in a run that is preempted, restarts included.

    python -m benchmarks.preemptions RECORDS CONFIG [STEPS [PREEMPTIONS]] \
        [--FLAG=VALUE ...]

Runs run_pretraining.py; each preemption is SIGTERM at a random step of its part
of the run, and then the same command again. By default there are 20 in 2,000
steps. Flags are those of run_pretraining.py. The steps are useful for as long
as they take at the median rate of the log; all other time is that of starting,
compiling and ending. Prints a JSON line.
"""

import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.startup import ROOT

BATCH_SIZE = 32
_STEP = re.compile(r"step (\d+)/")


def attempt(words: list[str], stop_at: int | None) -> float:
    """Runs the script to its end, or preempts it.

    Args:
        words: the arguments of Python.
        stop_at: step from which SIGTERM is sent, or None.

    Returns:
        the seconds from SIGTERM to the end, or 0.
    """
    sent, printed = 0.0, []
    with subprocess.Popen(
        [sys.executable, *words], stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        for line in process.stderr:
            printed.append(line)
            step = _STEP.match(line)
            if stop_at and step and not sent and int(step[1]) >= stop_at:
                process.send_signal(signal.SIGTERM)
                sent = time.perf_counter()
    if process.returncode != (75 if sent else 0):
        raise SystemExit(f"{words[0]} failed:\n{''.join(printed[-20:])}")
    return time.perf_counter() - sent if sent else 0.0


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
        for stop_at in [*stops, None]:
            ends.append(attempt(words, stop_at))
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
        "seconds_per_preemption": round(
            (seconds - steps * step) / (preemptions + 1), 2
        ),
        "slowest_end": round(max(ends), 2),
    }


def main() -> None:
    """Prints a JSON line."""
    flags = [word for word in sys.argv[1:] if word.startswith("--")]
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    records, config, *numbers = words
    steps, preemptions = [*map(int, numbers), *(2000, 20)[len(numbers) :]]
    print(json.dumps(measure(records, config, steps, preemptions, *flags)))


if __name__ == "__main__":
    main()
