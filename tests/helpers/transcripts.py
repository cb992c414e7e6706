r"""Transcripts: files of commands, and what each of them prints.

    # What the next command shows.
    $ python run_classifier.py --do_train ... \
    >     --output_dir=run    # killed at "saved run/model.ckpt-20"
    loading ...
    (killed)

    # Also where a file was written: # killed at "part-00001.json"

    $ python predict.py --model=run < texts.txt
    {"label": "y", "probabilities": {"n": #.#, "y": #.#}}

A command that starts with `python` runs in a process of its own. It is forked
from one of two processes that have imported TensorFlow, with different hash
seeds. Any other command is a command of bash. Numbers with a point, times,
rates and the device are masked. Paths are relative to a folder with the files
of `write_files`. A comment starts with `#`.
"""

import os
import pathlib
import random
import re
import runpy
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from bert.training import saver
from tests.helpers import (
    classifier_files,
    killed_runs,
    model_files,
    names,
    squad_files,
    swag_files,
    tables,
    text,
)
from tests.helpers.fork_server import ForkServer

FOLDER = pathlib.Path(__file__).parents[1] / "transcripts"
HASH_SEEDS = "1", "2"  # of the processes that commands are forked from
MODULES = (  # all that a command imports, also late
    *killed_runs.MODULES,
    *("bert.runs.finetuning", "bert.runs.feature_extraction"),
    *("bert.inference.row_job", "bert.export.folder"),
    *("run_classifier", "predict", "sklearn.pipeline"),
    *("bert.tasks.frozen", "bert.tasks.classification.tfidf"),
    "tensorboard.plugins.scalar.summary_v2",
)
_ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_XLA_FLAGS": "",  # without `program_cache`
    "XLA_FLAGS": "--xla_backend_optimization_level=0 "
    "--xla_disable_hlo_passes=tree_reduction_rewriter",
}
_END = re.compile(r'\s*# killed at "(.*)"$')
_MASKS = [
    (re.compile(pattern, re.MULTILINE), mask)
    for pattern, mask in (
        (r"(?<=http://)[\d.]+:\d+", "ADDRESS"),
        (r"\b\d+ threads?(, \w+)?", "# threads"),
        (r"\b\d+(\.\d+){2,}\b", "VERSION"),
        (r"\b\d[\d,.]* ([a-zA-Z]+/s)\b", r"# \1"),
        (r"\b\d[\d.]* (h|min) \d+ (min|s)\b|\b\d[\d.]* s\b", "# s"),
        (r"-?\b\d+\.\d+(e[+-]?\d+)?\b|\b\d+e-\d+\b", "#.#"),
        (r"(?<=^OpenVINO \|) .*", " ..."),
        (r"(?<=grad norm )\d+(?= )", "#.#"),
        (r" {2,}(?=#|eval_|chosen)", "  "),
        (r"(not better than a baseline|a linear model .*): .*; ", r"\1; "),
        (r"events\.out\S+", "events.out.tfevents"),
        (r"\b\d{4}-\d\d-\d\d\b", "DATE"),
        (r"\b(?=[a-f]*\d)[0-9a-f]{16,64}\b", "HASH"),
    )
]


class Shell:
    """Runs the commands of transcripts; a context manager."""

    def __init__(self):
        self._servers = [
            ForkServer(*MODULES, PYTHONHASHSEED=seed, **_ENVIRONMENT)
            for seed in HASH_SEEDS
        ]
        self._count = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for server in self._servers:
            server.__exit__(*error)

    def transcript(self, content: str, folder: pathlib.Path) -> str:
        """Runs the commands of a transcript.

        Args:
            content: str. The transcript.
            folder: path. Working directory of the commands.

        Returns:
            The transcript with the outputs of the commands.
        """
        lines: list[str] = []
        for block in _blocks(content):
            lines += block
            if block[0].startswith("$ "):
                words = [line[2:].removesuffix("\\") for line in block]
                lines += self._run("".join(words), folder)
                lines.append("")
        return "\n".join(lines).rstrip() + "\n"

    def _run(self, command: str, folder: pathlib.Path) -> list[str]:
        """Runs a command; returns the lines that it prints."""
        end = _END.search(command)
        text = end[1] if end else ""
        command = _END.sub("", command)
        log = folder / ".printed"
        if command.startswith("python "):
            # Consecutive commands have different hash seeds.
            self._count += 1
            server = self._servers[self._count % len(self._servers)]
            words, output = shlex.split(command)[1:], ""
            if ">" in words:
                words, (output,) = words[:-2], words[-1:]
            call = "tests.helpers.transcripts:run_script"
            server.start(call, words, str(folder), output, text, log=log)
            code = server.wait()
            printed = log.read_text(encoding="utf-8")
        else:
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            code, printed = done.returncode, done.stdout
        log.unlink(missing_ok=True)
        printed = printed.replace(f"{folder}/", "")
        for pattern, mask in _MASKS:
            printed = pattern.sub(mask, printed)
        lines = printed.splitlines()
        if code == -signal.SIGKILL:
            lines.append("(killed)")
        elif code:
            lines.append(f"(exit code {code})")
        return lines


def _blocks(content: str) -> list[list[str]]:
    """The comments and the commands of a transcript, without the outputs."""
    blocks: list[list[str]] = []
    for line in content.splitlines():
        if line.startswith("> ") and blocks and blocks[-1][-1].endswith("\\"):
            blocks[-1].append(line)
        elif line.startswith(("$ ", "#")):
            blocks.append([line])
    return blocks


def run_script(words: Sequence[str], folder: str, output: str, end: str) -> int:
    """Runs a script in this process.

    Args:
        words: list of str. The script, its flags, and `<` with a file.
        folder: str. Working directory.
        output: str. File for standard output; "" prints it.
        end: str. The process is killed when it logs this text, or has written
            a file with it in its path; "" never.

    Returns:
        The exit code.
    """
    os.chdir(folder)
    words = list(words)
    if "<" in words:
        os.dup2(os.open(words[-1], os.O_RDONLY), 0)
        words = words[:-2]
    if output:
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    # As on a terminal, lines are in the order in which they are printed.
    sys.stdout.reconfigure(line_buffering=True)
    _wait_for_checkpoints()
    if end:
        _kill_at(end)
    sys.argv = words
    try:
        runpy.run_path(str(FOLDER.parents[1] / words[0]), run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _wait_for_checkpoints() -> None:
    """Training waits for each checkpoint, so the order of lines is fixed."""
    save = saver.Saver.save_in_background

    def save_now(self, *args) -> None:
        save(self, *args)
        self.wait()

    saver.Saver.save_in_background = save_now


def _kill_at(text: str) -> None:
    """Kills this process when it logs a text, or has written such a file."""
    write, replace = sys.stderr.write, os.replace

    def kill_at(found: str) -> None:
        if text in found:
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGKILL)

    def watched_write(line: str) -> int:
        count = write(line)
        kill_at(line)
        return count

    def watched_replace(source: str, target: str) -> None:
        replace(source, target)
        kill_at(target)

    sys.stderr.write, os.replace = watched_write, watched_replace


def write_files(folder: pathlib.Path) -> None:
    """Writes the files that transcripts name.

    model/       a checkpoint of BERT without a head, for all tables
    mails.csv    columns id, text, label (y if there is a "cat") and author
    new.csv      columns id and text
    mnli/        the files of MNLI
    pairs.csv    pairs of texts and a score
    corpus.txt   documents, for pre-training
    names/, questions/, choices/
                 train, dev and test files of the other tasks, with a config and
                 a vocabulary
    """
    for name in ("model", "mnli", "names", "questions", "choices"):
        (folder / name).mkdir()
    classifier_files.write_model(folder / "model")
    classifier_files.write_table(folder, 60)
    text.write_corpus(folder / "corpus.txt", 53)
    rng = random.Random(3)
    _write_mnli(folder / "mnli", rng)
    pairs = [
        {"a": f"{x} {y}", "b": f"{y} {z}", "score": float(x == z)}
        for x, y, z in (rng.choices(text.WORDS[2:5], k=3) for _ in range(40))
    ]
    tables.write(folder / "pairs.csv", pairs)

    model_files.write_sizes(
        folder / "names",
        tokens=names.vocabulary(),
        max_position_embeddings=19,
    )
    for name, count in (("train", 120), ("dev", 20)):
        path = folder / "names" / f"{name}.txt"
        names.write(path, [names.sentence(rng, 2) for _ in range(count)])
    model_files.write_sizes(
        folder / "questions",
        tokens=squad_files.VOCABULARY,
        max_position_embeddings=43,
    )
    for name, count, seed in (("train", 60, 1), ("dev", 20, 2)):
        squad_files.write(folder / "questions" / f"{name}.json", count, seed)
    model_files.write_sizes(
        folder / "choices",
        tokens=swag_files.VOCABULARY,
        max_position_embeddings=swag_files.S,
    )
    for name, count, seed in (("train", 60, 1), ("val", 20, 2)):
        swag_files.write_csv(folder / "choices" / f"{name}.csv", count, seed)


def _write_mnli(folder: pathlib.Path, rng: random.Random) -> None:
    """Writes MNLI's files: a "cat" is entailment, a "dog" is neutral."""
    labels = {"cat": "entailment", "dog": "neutral", "bird": "contradiction"}
    for name, count in (
        ("train", 60),
        *(("dev_matched", 20), ("dev_mismatched", 20)),
    ):
        lines = ["\t".join(f"c{i}" for i in range(12))]
        for number in range(count):
            animal = rng.choice(list(labels))
            texts = [
                f"the {animal} sees",
                " ".join(rng.choices(text.WORDS[6:9])),
            ]
            row = [str(number), *["-"] * 7, *texts, "-", labels[animal]]
            lines.append("\t".join(row))
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")


def update(chosen: Sequence[str]) -> None:
    """Writes the outputs of transcripts again.

    Args:
        chosen: list of str. Names of transcripts; [] for all.
    """
    paths = [FOLDER / f"{name}.txt" for name in chosen]
    with Shell() as shell:
        for path in paths or sorted(FOLDER.glob("*.txt")):
            with tempfile.TemporaryDirectory() as folder:
                write_files(pathlib.Path(folder))
                content = path.read_text(encoding="utf-8")
                made = shell.transcript(content, pathlib.Path(folder))
            path.write_text(made, encoding="utf-8")
            print(f"wrote {path.name}{' (changed)' * (made != content)}")


if __name__ == "__main__":
    update(sys.argv[1:])
