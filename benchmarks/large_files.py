r"""Predictions and embeddings of a large file, in all ways, and by a peer.

    python -m benchmarks.large_files predict.py EXPORT LINES \
        [PEER_PYTHON PEER_FOLDER PEER_LINES]
    python -m benchmarks.large_files extract_features.py EXPORT LINES ...

EXPORT has an OpenVINO network. PEER_FOLDER has the same weights, for the
pipeline of transformers or for sentence-transformers, whose two processes
compute the first PEER_LINES lines. Prints a JSON line for each way: rows, rows
a second of the whole command, and megabytes of its largest process. The files
that this project writes must have the same bytes.
"""

import hashlib
import importlib.metadata
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks import commands

ROOT = pathlib.Path(__file__).parents[1]
_PEER = ROOT / "benchmarks" / "peers" / "huggingface_large_files.py"
_BEAM = ["--runner=DirectRunner", "--"]
_BEAM += ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
WAYS = {
    "one process": ["--num_processes=1"],
    "two processes": ["--num_processes=2"],
    "Beam, two workers": _BEAM,
}
# Script -> its flags, and the ending of its output.
SCRIPTS = {
    "predict.py": (["--model={}"], ".jsonl"),
    "extract_features.py": (
        [
            *("--init_checkpoint={}", "--layers=-1", "--pooling=mean"),
            "--normalize",
        ],
        ".npy",
    ),
}


def _row(what: str, way: str, rows: int, command: list[str], **streams) -> dict:
    """Times a command."""
    seconds, cpu_seconds, megabytes = commands.run(command, **streams)
    return {
        "what": what,
        "way": way,
        "rows": rows,
        "rows_per_second": round(rows / seconds, 1),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_seconds, 2),
        "peak_megabytes": megabytes,
        "tensorflow": importlib.metadata.version("tensorflow"),
    }


def measure(
    script: str,
    model: str,
    lines: str,
    peer: tuple[str, str] | None = None,
    peer_lines: int = 0,
) -> Iterator[dict]:
    """Yields a row for each way, then those of the peer.

    Args:
        script: key of `SCRIPTS`.
        model: folder of the model.
        lines: file of texts, one on a line.
        peer: Python of the peer, and folder of its weights.
        peer_lines: number of lines that the peer computes.
    """
    with open(lines, encoding="utf-8") as file:
        rows = sum(1 for _ in file)
    flags, ending = SCRIPTS[script]
    digests = set()
    with tempfile.TemporaryDirectory() as scratch:
        for i, (way, words) in enumerate(WAYS.items()):
            path = os.path.join(scratch, f"{i}{ending}")
            command = [sys.executable, str(ROOT / script)]
            command += [flag.format(model) for flag in flags]
            command += [f"--input_file={lines}", f"--output_file={path}"]
            yield _row(
                script, way, rows, command + words, stderr=subprocess.DEVNULL
            )
            with open(path, "rb") as file:
                digests.add(hashlib.file_digest(file, "sha256").hexdigest())
        if len(digests) > 1:
            raise SystemExit(f"the ways of {script} wrote different bytes")

        if not peer:
            return
        python, folder = peer
        first = os.path.join(scratch, "first.txt")
        with open(lines, encoding="utf-8") as file, open(first, "w") as copy:
            copy.writelines(itertools.islice(file, peer_lines))
        for processes, way in enumerate(("one process", "two processes"), 1):
            command = [python, str(_PEER), script, folder, first]
            command += [os.path.join(scratch, "peer"), str(processes)]
            count = min(rows, peer_lines)
            yield _row(script, f"peer, {way}", count, command)


def main(script: str, model: str, lines: str, *peer: str) -> None:
    """Prints a JSON line for each way."""
    python, folder, count = peer or ("", "", "0")
    named = (python, folder) if peer else None
    for row in measure(script, model, lines, named, int(count)):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
