"""Rare labels: weights in the loss, thresholds, temperature, for professions.

    python -m benchmarks.rare_labels CORPUS MODEL FOLDER

CORPUS is that of `benchmarks.long_texts`. The first 40 words after the first
sentence of an article on a person are the text of two tables:

    classes  player, musician, soldier: 90, 8 and 2 %
    labels   all professions that the first sentence tells

Three seeds each, three epochs. Prints a line of JSON for each command.
"""

import csv
import json
import pathlib
import random
import subprocess
import sys

from benchmarks import long_texts

_COUNTS = {"player": 0.90, "musician": 0.08, "soldier": 0.02}
_SIZES = {"train": 800, "dev": 400}
_WORDS = 40
_FLAGS = (
    "--task_name=csv --text_column=text --label_column=label --do_train "
    "--do_eval --num_seeds=3 --learning_rate=1e-4 --train_batch_size=16 "
    "--max_seq_length=64 --precision=bfloat16 --noreport --recipe=original"
).split()
_SEVERAL = "--multi_label --label_separator=+"
_RUNS = (  # folder, table, flags; a folder that is trained is evaluated again
    ("plain", "classes", "--calibrate"),
    ("balanced", "classes", "--class_weights=balanced"),
    ("balanced", "classes", "--class_weights=balanced --calibrate"),
    ("several", "labels", _SEVERAL),
    ("several", "labels", f"{_SEVERAL} --tune_thresholds"),
)


def write_tables(corpus: str, folder: pathlib.Path) -> None:
    """Writes train and dev of both tables."""
    rows = long_texts.articles(corpus, range(_WORDS, sys.maxsize))
    random.Random(1).shuffle(rows)
    rows = [(" ".join(text.split()[:_WORDS]), names) for text, names in rows]

    first = 0
    for split, size in _SIZES.items():
        left = {name: round(share * size) for name, share in _COUNTS.items()}
        classes = []
        for number, (text, (name, *_)) in enumerate(rows[first:], first):
            if left.get(name):
                left[name] -= 1
                classes.append((text, name))
                last = number + 1
        several = [
            (text, "+".join(dict.fromkeys(names)))
            for text, names in rows[first : first + size]
        ]
        first = last

        for table, part in (("classes", classes), ("labels", several)):
            path = folder / f"{table}_{split}.csv"
            with path.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([("text", "label"), *part])


def calibration_errors(folder: pathlib.Path) -> list[list[float]]:
    """Expected calibration errors of each seed, before and after."""
    errors = []
    for path in sorted(folder.glob("seed_*/eval_report.json")):
        curves = json.loads(path.read_text()).get("calibration")
        if curves:
            errors.append([curves[x]["error"] for x in ("before", "after")])
    return errors


def main(corpus: str, model: str, output: str) -> None:
    """Makes the tables, trains, and prints the results."""
    folder = pathlib.Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    write_tables(corpus, folder)
    for name, table, more in _RUNS:
        command = [
            *(sys.executable, "run_classifier.py", *_FLAGS, *more.split()),
            f"--train_file={folder}/{table}_train.csv",
            f"--eval_file={folder}/{table}_dev.csv",
            f"--output_dir={folder}/{name}",
            f"--init_checkpoint={model}",
        ]
        subprocess.run(command, check=True, stdout=sys.stderr)

        lines = (folder / name / "eval_results.txt").read_text().splitlines()
        scores = dict(line.split(" = ") for line in lines)
        result = {"what": f"rare labels, {table}", "flags": more}
        result |= {key: float(value) for key, value in scores.items()}
        result["calibration_errors"] = calibration_errors(folder / name)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
