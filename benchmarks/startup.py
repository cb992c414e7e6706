r"""Start-up of scripts beside the import of TensorFlow.

    python -m benchmarks.startup QUICKSTART MODEL_FOLDER

QUICKSTART is the folder of `make quickstart`; MODEL_FOLDER has a checkpoint
with bert_config.json and vocab.txt. Times an import of TensorFlow,
fill_mask.py and predict.py with one line and the models of the quickstart, and
run_classifier.py from MODEL_FOLDER until its first step is reported, in turns.
Prints a JSON line for each script.
"""

import importlib.metadata
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

ROOT = pathlib.Path(__file__).parents[1]
RUNS = 3
MAX_SEQ_LENGTH = 128
IMPORT = "import tensorflow"
_CLASSIFIER = "first step of run_classifier.py"
# Whether a line ends the time.
_UNTIL = {_CLASSIFIER: lambda line: line.startswith("step ")}
_SENTENCE = "The shape of the input [MASK] must be known.\n"


def commands(quickstart: str, model: str, output: str) -> dict[str, list[str]]:
    """The commands to time, by name.

    Args:
        quickstart: folder of `make quickstart`.
        model: folder of the weights to fine-tune.
        output: output folder of run_classifier.py.
    """
    return {
        IMPORT: ["-c", IMPORT],
        "fill_mask.py": ["fill_mask.py", f"--init_checkpoint={quickstart}/run"],
        "predict.py": [
            *("predict.py", "--engine=keras"),
            f"--model={quickstart}/packages_export",
        ],
        "predict.py, OpenVINO": [
            *("predict.py", "--engine=openvino"),
            f"--model={quickstart}/packages_export",
        ],
        _CLASSIFIER: [
            *("run_classifier.py", "--do_train", "--task_name=tsv"),
            f"--train_file={quickstart}/packages_train.tsv",
            *("--text_column=sentence", "--label_column=package"),
            f"--vocab_file={model}/vocab.txt",
            f"--bert_config_file={model}/bert_config.json",
            f"--init_checkpoint={model}/bert_model.ckpt",
            f"--max_seq_length={MAX_SEQ_LENGTH}",
            *(f"--output_dir={output}", "--noreport"),
        ],
    }


def timed(
    words: list[str],
    is_last: Callable[[str], bool] | None = None,
    number: signal.Signals = signal.SIGKILL,
    code: int = -signal.SIGKILL,
) -> tuple[float, float, float]:
    """Times a command up to a line that it prints, and from there to its end.

    Args:
        words: the arguments of Python.
        is_last: whether a line is the one; None for the end of the command.
        number: signal that the command gets after the line.
        code: exit code after the signal; without a line it is 0.

    Returns:
        the seconds up to the line, those from there to the end, and the
        peak memory in megabytes.
    """
    printed, line_at = [], 0.0
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
    ) as process:
        process.stdin.write(_SENTENCE)
        process.stdin.close()
        for line in process.stdout:
            printed.append(line)
            if is_last and not line_at and is_last(line):
                process.send_signal(number)
                line_at = time.perf_counter()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    end = time.perf_counter()
    if process.returncode != (code if is_last else 0):
        raise SystemExit(f"{words[0]} failed:\n{''.join(printed[-20:])}")
    line_at = line_at or end
    return line_at - start, end - line_at, usage.ru_maxrss / 1e3


def beyond(times: list[float], base: list[float]) -> list[float]:
    """Median, least and most of `times` minus `base` of the same turn."""
    more = [a - b for a, b in zip(times, base, strict=True)]
    found = statistics.median(more), min(more), max(more)
    return [round(x, 2) for x in found]


def measure(quickstart: str, model: str, runs: int = RUNS) -> list[dict]:
    """Times all commands in turns.

    Args:
        quickstart, model: see `commands`.
        runs: number of runs of each.

    Returns:
        for each script its seconds, and those in addition to the import of the
        same turn: medians, least and most.
    """
    found: dict[str, list[float]] = {}
    peaks: dict[str, float] = {}
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as output:
            for name, words in commands(quickstart, model, output).items():
                taken, _, peaks[name] = timed(words, _UNTIL.get(name))
                found.setdefault(name, []).append(taken)
    imports = found.pop(IMPORT)
    lines = []
    for name, times in found.items():
        median, *spread = beyond(times, imports)
        lines.append(
            {
                "what": name,
                "seconds": round(statistics.median(times), 2),
                "import_seconds": round(statistics.median(imports), 2),
                "beyond_import": median,
                "min_max": spread,
                "peak_megabytes": round(peaks[name]),
                "tensorflow": importlib.metadata.version("tensorflow"),
            }
        )
    return lines


def main() -> None:
    """Prints a JSON line for each script."""
    for line in measure(*sys.argv[1:]):
        print(json.dumps(line))


if __name__ == "__main__":
    main()
