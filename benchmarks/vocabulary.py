"""Time and memory of create_vocab beside the trainer of Hugging Face.

    python -m benchmarks.vocabulary CORPUS

Both learn 30,522 tokens in separate processes. Ours counts with two processes;
the peer reads an uncompressed copy with its default number of threads. Runs
alternate.
"""

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import tokenizers

from bert.common import text_lines

ROOT = pathlib.Path(__file__).parents[1]
PEER = """
import sys, tokenizers
trained = tokenizers.BertWordPieceTokenizer(lowercase=True)
trained.train(sys.argv[1], vocab_size=int(sys.argv[2]), show_progress=False)
trained.save_model(sys.argv[3])
"""


def run(command: list[str], every: float = 0.02) -> tuple[float, float]:
    """Runs a command: (seconds, peak MB of it and its children together).

    Resident memory is read every `every` seconds; shared memory is counted
    for each process.
    """
    peak, start = 0, time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while process.returncode is None:
        peak = max(peak, _memory(process.pid))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(every)
    seconds = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return seconds, peak / 1e6


def measure(source: str, folder: str, vocab_size: int, runs: int = 3) -> dict:
    """Measures the median times of both, and their ratio."""
    plain = os.path.join(folder, "plain.txt")
    with open(plain, "w", encoding="utf-8") as file:
        file.writelines(
            f"{line.strip()}\n" for _, line in text_lines.lines(source)
        )
    ours = [
        sys.executable,
        str(ROOT / "create_vocab.py"),
        f"--input_file={source}",
        f"--output_file={folder}/ours.txt",
        f"--vocab_size={vocab_size}",
        "--num_processes=2",
    ]
    peer = [sys.executable, "-c", PEER, plain, str(vocab_size), folder]
    pairs = [(run(ours), run(peer)) for _ in range(runs)]
    ratios = sorted(a[0] / b[0] for a, b in pairs)
    return {
        "what": "create_vocab, two processes",
        "megabytes": round(os.path.getsize(plain) / 1e6, 2),
        "seconds": round(statistics.median(a[0] for a, _ in pairs), 2),
        "peer_seconds": round(statistics.median(b[0] for _, b in pairs), 2),
        "ratio": round(statistics.median(ratios), 3),
        "ratio_min_max": [round(ratios[0], 3), round(ratios[-1], 3)],
        "peak_megabytes": round(max(a[1] for a, _ in pairs)),
        "peer_peak_megabytes": round(max(b[1] for _, b in pairs)),
        "tokenizers": tokenizers.__version__,
        "python": sys.version.split()[0],
    }


def _memory(pid: int) -> int:
    """Resident bytes of a process and its descendants; 0 if it ended."""
    folder, size = pathlib.Path(f"/proc/{pid}"), 0
    # Threads may end meanwhile; the ones read so far count.
    with contextlib.suppress(OSError):
        pages = int((folder / "statm").read_text().split()[1])
        size = pages * os.sysconf("SC_PAGE_SIZE")
        for thread in (folder / "task").iterdir():
            children = (thread / "children").read_text().split()
            size += sum(_memory(int(child)) for child in children)
    return size


def main() -> None:
    """Prints one JSON line."""
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(sys.argv[1], folder, 30522)))


if __name__ == "__main__":
    main()
