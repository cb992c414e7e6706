"""Time, memory and bytes of create_pretraining_data as the corpus grows.

    python -m benchmarks.records_growth CORPUS VOCABULARY MEGABYTES,... \
        [PROCESSES,...] [beam] [killed]

Each size is made of CORPUS: it is cut, or repeated with the number of the
repetition in each document, so that all documents are distinct; the sizes run
one after the other with `--dupe_factor=1`. For each size all numbers of
processes (default 2) run, and with `beam` Beam's DirectRunner on two processes
after them; all have to write the same bytes. With `killed` another run gets
SIGKILL after 80 % of the time of the last one, and the same command is timed.
"""

import contextlib
import hashlib
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks import commands
from bert.data.corpus import documents

ROOT = pathlib.Path(__file__).parents[1]
SHARDS = 4
KILLED_AFTER = 0.8  # of the time
BEAM = (
    "--runner=DirectRunner",
    "--",
    "--direct_running_mode=multi_processing",
    "--direct_num_workers=2",
)


def measure(
    source: str,
    vocab_file: str,
    megabytes: int,
    processes: list[int],
    beam: bool = False,
    killed: bool = False,
) -> Iterator[dict]:
    """Measures one size of the corpus.

    Args:
        source: text, with blank lines between documents.
        vocab_file: the vocabulary.
        megabytes: size of the corpus.
        processes: numbers of processes.
        beam: also run on Beam.
        killed: also run after a kill.

    Yields:
        the figures of each run; all have the same digest.
    """
    digests = set()
    with tempfile.TemporaryDirectory() as folder:
        corpus = f"{folder}/corpus.txt"
        write_corpus(source, corpus, megabytes)
        ways = {f"{n} processes": [f"--num_processes={n}"] for n in processes}
        last = [*ways][-1]  # of our own processes
        if beam:
            ways["Beam"] = list(BEAM)
        if killed:
            ways["continued after a kill"] = ways[last]
        taken = {}
        for way, words in ways.items():
            output = f"{folder}/out"
            command = _command(corpus, vocab_file, output, words)
            if way == "continued after a kill":
                _kill(command, KILLED_AFTER * taken[last])
            seconds, cpu_seconds, peak = commands.run(command)
            taken[way] = seconds
            found = _digest(output)
            digests.add(found)
            yield {
                "what": "create_pretraining_data",
                "megabytes": megabytes,
                "way": way,
                "seconds": round(seconds, 2),
                "cpu_seconds": round(cpu_seconds, 2),
                "peak_megabytes_of_a_process": peak,
                "sha256": found,
                "share_of_the_first_time": round(
                    seconds / next(iter(taken.values())), 3
                ),
            }
            if len(digests) > 1:
                raise SystemExit(f"{way}: other bytes than before")


def write_corpus(source: str, path: str, megabytes: int) -> None:
    """Writes a corpus of distinct documents.

    Args:
        source: text to cut or to repeat.
        path: file of the corpus.
        megabytes: its size, about.
    """
    with open(path, "wb") as file:
        for number in itertools.count():
            for text in documents.documents(source):
                start = b"%d .\n" % number if number else b""
                file.write(start + text + b"\n")
                if file.tell() >= megabytes * 1_000_000:
                    return


def _command(
    corpus: str, vocab_file: str, output: str, words: list[str]
) -> list[str]:
    files = (f"{output}/{number}.tfrecord" for number in range(SHARDS))
    return [
        sys.executable,
        str(ROOT / "create_pretraining_data.py"),
        f"--input_file={corpus}",
        f"--vocab_file={vocab_file}",
        f"--output_file={','.join(files)}",
        "--dupe_factor=1",
        *words,
    ]


def _kill(command: list[str], seconds: float) -> None:
    """Starts a command and kills its first process after some seconds."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
        raise SystemExit("the run ended before it was killed")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def _digest(folder: str) -> str:
    """Digest of the shards, which are removed."""
    digest = hashlib.sha256()
    for path in sorted(pathlib.Path(folder).iterdir()):
        if path.suffix == ".tfrecord":
            with open(path, "rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        path.unlink()
    return digest.hexdigest()


def main() -> None:
    """Prints one JSON line for each run."""
    source, vocab_file, sizes, *words = sys.argv[1:]
    ways = {"beam", "killed"}
    numbers = [x for x in words if x not in ways] or ["2"]
    for size in map(int, sizes.split(",")):
        for line in measure(
            source,
            vocab_file,
            size,
            [int(number) for number in numbers[0].split(",")],
            beam="beam" in words,
            killed="killed" in words,
        ):
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
