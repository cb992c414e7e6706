"""Speed and memory of create_pretraining_data on a corpus.

    python -m benchmarks.records CORPUS VOCABULARY [ORIGINAL] [PROCESSES ...] \
        [--FLAG=VALUE ...]

Runs the script once for each number of processes (1 and 2) into a temporary
folder, and prints a digest of the records. ORIGINAL is a folder with
`create_pretraining_data.py` and `tokenization.py` of bert-tensorflow 1.0.4,
which import `tensorflow.compat.v1`: its script runs before and after ours,
with the same flags except `--do_whole_word_mask`, which it does not have.
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from benchmarks import commands
from bert.data.corpus import documents
from bert.data.records import shard_check

ROOT = pathlib.Path(__file__).parents[1]


def measure(
    script: pathlib.Path, source: str, words: list[str], output: str
) -> dict:
    """Times one run.

    Args:
        script: create_pretraining_data.py, ours or the original's.
        source: the corpus.
        words: flags of the script.
        output: path of the records.

    Returns:
        seconds, rates, the memory of the largest process, and a digest.
    """
    command = [
        sys.executable,
        str(script),
        f"--input_file={source}",
        f"--output_file={output}",
        *words,
    ]
    seconds, _, peak = commands.run(command, stderr=subprocess.DEVNULL)
    instances, damage = shard_check.scan(output)
    assert damage is None, damage
    with open(output, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    _, size = documents.count_documents(source)
    return {
        "seconds": round(seconds, 1),
        "instances": instances,
        "instances_per_second": round(instances / seconds),
        "megabytes_per_second": round(size / 1e6 / seconds, 3),
        "peak_megabytes_of_a_process": peak,
        "sha256": digest,
    }


def main() -> None:
    """Prints one JSON line for each run."""
    source, vocab_file, *words = sys.argv[1:]
    flags = [f"--vocab_file={os.path.abspath(vocab_file)}"]
    flags += [word for word in words if word.startswith("--")]
    processes = [word for word in words if word.isdigit()] or ["1", "2"]
    folders = [word for word in words if word not in (*flags, *processes)]
    known = [word for word in flags if "whole_word" not in word]
    runs = [(ROOT, [*flags, f"--num_processes={n}"]) for n in processes]
    original = [(pathlib.Path(folder), known) for folder in folders]
    with tempfile.TemporaryDirectory() as temporary:
        for folder, own in (*original, *runs, *original):
            script = folder.resolve() / "create_pretraining_data.py"
            output = f"{temporary}/records.tfrecord"
            found = measure(script, source, own, output)
            shown = {"what": " ".join([str(folder), *own[1:]]), **found}
            print(json.dumps(shown), flush=True)


if __name__ == "__main__":
    main()
