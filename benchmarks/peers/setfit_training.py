"""Trains a classifier with SetFit.

    python setfit_training.py MODEL TABLES OUTPUT SEED

MODEL is a folder of sentence-transformers; TABLES has train.csv and dev.csv
with the columns text and label. Writes the labels of dev.csv to OUTPUT, a list
in JSON. 20 pairs per row, as in the paper (arXiv:2209.11055), are made for one
epoch. Runs in an environment of its own, with setfit.
"""

import csv
import json
import pathlib
import sys
import tempfile

from datasets import Dataset
from setfit import SetFitModel, Trainer, TrainingArguments


def read(path: pathlib.Path) -> dict[str, list[str]]:
    """Reads the columns of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    return {name: [row[name] for row in rows] for name in ("text", "label")}


def main(model: str, tables: str, output: str, seed: str) -> None:
    """Trains, predicts, and writes the predictions."""
    train, dev = (
        read(pathlib.Path(tables, f"{name}.csv")) for name in ("train", "dev")
    )
    names = sorted({*train["label"]})
    with tempfile.TemporaryDirectory() as scratch:
        trainer = Trainer(
            model=SetFitModel.from_pretrained(
                model, labels=names, device="cpu"
            ),
            args=TrainingArguments(
                output_dir=scratch,
                batch_size=16,
                num_epochs=1,
                num_iterations=20,
                seed=int(seed),
                save_strategy="no",
                report_to="none",
            ),
            train_dataset=Dataset.from_dict(
                {
                    "text": train["text"],
                    "label": [names.index(x) for x in train["label"]],
                }
            ),
        )
        trainer.train()
    found = trainer.model.predict(dev["text"])
    pathlib.Path(output).write_text(json.dumps([str(x) for x in found]))


if __name__ == "__main__":
    main(*sys.argv[1:])
