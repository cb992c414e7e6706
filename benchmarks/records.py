"""Speed and memory of create_pretraining_data on a corpus.

    python -m benchmarks.records CORPUS VOCABULARY [PROCESSES ...]

Runs the script once for each number of processes (1 and 2) into a temporary
folder, and prints a digest of the records.
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from data.corpus import documents

ROOT = pathlib.Path(__file__).parents[1]


def measure(source: str, vocab_file: str, processes: int, folder: str) -> dict:
    """Times one run; the memory is that of its largest process."""
    output = f"{folder}/{processes}.tfrecord"
    command = [
        sys.executable,
        str(ROOT / "create_pretraining_data.py"),
        f"--input_file={source}",
        f"--vocab_file={vocab_file}",
        f"--output_file={output}",
        f"--num_processes={processes}",
    ]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise SystemExit(f"{command} ended with status {status}")
    listed = pathlib.Path(f"{output}.manifest.json").read_text()
    counts = json.loads(listed)["statistics"]
    with open(output, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "what": "create_pretraining_data",
        "processes": processes,
        "seconds": round(seconds, 1),
        "instances": counts["instances"],
        "instances_per_second": round(counts["instances"] / seconds),
        "megabytes_per_second": round(
            documents.scan([source]).num_bytes / 1e6 / seconds, 3
        ),
        "peak_megabytes_of_a_process": usage.ru_maxrss // 1024,
        "sha256": digest,
    }


def main() -> None:
    """Prints one JSON line for each number of processes."""
    source, vocab_file, *processes = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for number in map(int, processes or ["1", "2"]):
            print(
                json.dumps(measure(source, vocab_file, number, folder)),
                flush=True,
            )


if __name__ == "__main__":
    main()
