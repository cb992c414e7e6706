"""Peak memory of scripts on files that are made to fill it.

    python -m benchmarks.bombs /tmp/bombs
    python -m benchmarks.bombs /tmp/bombs line.txt.gz squad.json.gz

Prints a table: script, file, its size, exit code, seconds and the peak memory
of the largest process. The folder needs 5 GB.
"""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import time

MEGABYTE = 1 << 20
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
SCRIPTS = {  # script -> flags; {bomb} is the file
    "create_vocab.py": ["--input_file={bomb}", "--output_file={out}"],
    "create_pretraining_data.py": [
        "--input_file={bomb}",
        "--output_file={out}",
        "--vocab_file={folder}/vocab.txt",
    ],
    "prepare_corpus.py": ["--input_file={bomb}", "--output_file={out}"],
    "run_classifier.py": [
        "--task_name=tsv",
        "--do_train",
        "--text_column=0",
        "--label_column=-1",
        "--noheader",
        "--train_file={bomb}",
        "--vocab_file={folder}/vocab.txt",
        "--bert_config_file={folder}/bert_config.json",
        "--output_dir={out}",
    ],
    "run_ner.py": [
        "--do_train",
        "--train_file={bomb}",
        "--vocab_file={folder}/vocab.txt",
        "--bert_config_file={folder}/bert_config.json",
        "--output_dir={out}",
    ],
    "run_squad.py": [
        "--do_train",
        "--train_file={bomb}",
        "--vocab_file={folder}/vocab.txt",
        "--bert_config_file={folder}/bert_config.json",
        "--output_dir={out}",
    ],
    "doctor.py": ["--bert_config_file={bomb}"],
}
TEXT = ("create_vocab.py", "create_pretraining_data.py", "prepare_corpus.py")
TABLES = ("run_classifier.py", "run_ner.py")
BOMBS = {  # file -> the text that is repeated, megabytes, scripts
    "line.txt.gz": (b"a b ", 6000, (*TEXT, "run_ner.py")),
    "rows.txt.gz": (b"a b\n", 6000, (*TEXT, "run_ner.py")),
    "row.tsv.gz": (b"a b ", 6000, ("run_classifier.py",)),
    "rows.tsv.gz": (b"a\tb\n", 6000, ("run_classifier.py",)),
    "squad.json.gz": (b"[" + b"[], " * 9, 6000, ("run_squad.py",)),
    "line.jsonl": (b'{"text": "a"}, ', 200, ("prepare_corpus.py",)),
    "line.json": (b'{"a": 1}, ', 200, ("run_squad.py", "doctor.py")),
    "lists.json": (b"[], ", 30, ("run_squad.py", "doctor.py")),
    "document.txt": (b"a b a b a b a\n", 4096, TEXT[:2]),
}


def write(path: pathlib.Path, text: bytes, megabytes: int) -> None:
    """Writes a text again and again."""
    block = text * (MEGABYTE // len(text))
    start = b"[" if path.suffixes[0] == ".json" else b""
    if path.suffix == ".gz":
        # Members of a gzip file follow each other.
        member = gzip.compress(block)
        first = gzip.compress(start)
        path.write_bytes(first + member * megabytes)
        return
    with path.open("wb") as file:
        file.write(start)
        for _ in range(megabytes):
            file.write(block)


def measure(command: list[str]) -> tuple[int, float, float, str]:
    """Runs a command: code, seconds, megabytes and its last line."""
    start = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    lines = process.stderr.read().splitlines()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    megabytes = usage.ru_maxrss / 1024
    return process.returncode, seconds, megabytes, (lines or [""])[-1]


def main(argv: list[str]) -> None:
    """Runs each script on its files."""
    folder = pathlib.Path(argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n")
    config = {"vocab_size": len(TOKENS), "hidden_size": 12}
    (folder / "bert_config.json").write_text(json.dumps(config))
    print("| script | file | MB | code | seconds | peak MB |")
    print("|---|---|---|---|---|---|")
    for name in argv[2:] or BOMBS:
        text, megabytes, scripts = BOMBS[name]
        path = folder / name
        write(path, text, megabytes)
        size = path.stat().st_size / 1e6
        for script in scripts:
            values = {"bomb": path, "folder": folder, "out": folder / "out"}
            flags = [flag.format(**values) for flag in SCRIPTS[script]]
            code, seconds, peak, line = measure(
                [sys.executable, script, *flags]
            )
            print(
                f"| {script} | {name} | {size:.0f} | {code} | {seconds:.0f} "
                f"| {peak:.0f} |",
                flush=True,
            )
            print(line[-300:], file=sys.stderr, flush=True)
        path.unlink()


if __name__ == "__main__":
    main(sys.argv)
