r"""Scores of GLUE tasks: run_classifier.py, and transformers on the same rows.

    python -m benchmarks.glue DATA_DIR MODEL_FOLDER EPOCHS SEEDS TASK \
        [PEER_PYTHON PEER_FOLDER]

DATA_DIR has the task's train.tsv and dev.tsv, MODEL_FOLDER a checkpoint with
bert_config.json and vocab.txt, PEER_FOLDER the same weights for transformers.
Batches of 16 rows, rate 1e-4, a tenth of the steps warm up. The peer trains on
the records that our run wrote, so on the same pieces. Our seconds are those of
the whole command, the peer's those of training.
"""

import json
import os
import sys
import tempfile

import numpy as np

import run_classifier
from benchmarks import by_seed, transformers_trainer
from data import classification, features, task_records
from evaluation import glue

MAX_SEQ_LENGTH = 128


def theirs(task: str, records: str, seed: int, epochs: float, peer):
    """Seconds of training and score of the peer on the records in a folder."""
    kind = run_classifier.TASKS[task].labels.kind
    number = kind == classification.REGRESSION
    label = task_records.Feature("float32" if number else "int64")
    schema = {features.LABEL_IDS: label}
    with tempfile.TemporaryDirectory() as folder:
        paths, labels = {}, {}
        for name in ("train", "eval"):
            rows = list(
                task_records.read(
                    f"{records}/{name}.tf_record", schema, MAX_SEQ_LENGTH
                )
            )
            labels[name] = np.array([x[features.LABEL_IDS][0] for x in rows])
            paths[name] = os.path.join(folder, f"{name}.npz")
            transformers_trainer.write_rows(
                paths[name], rows, {features.LABEL_IDS: "labels"}
            )
        seconds, logits = transformers_trainer.logits(
            peer,
            model_class="BertForSequenceClassification",
            rows=paths["train"],
            held_out=paths["eval"],
            num_labels=1 if number else int(labels["train"].max()) + 1,
            epochs=epochs,
            seed=seed,
        )
    found = glue.answers(logits, kind)
    metric = run_classifier.TASKS[task].metrics[0]
    return seconds, glue.scores((metric,), labels["eval"], found)[metric]


def measure(task, data, model, seeds, epochs, peer=None) -> dict:
    """Scores and times of both sides, means over seeds.

    Args:
        task: of `run_classifier.TASKS`.
        data: folder of its files.
        model: folder of our weights.
        seeds: how many.
        epochs: of training.
        peer: its Python, and the folder of the same weights, or None.
    """
    metric = run_classifier.TASKS[task].metrics[0]

    def ours(seed: int, folder: str) -> tuple[float, float]:
        found = by_seed.train(
            run_classifier.__file__,
            folder,
            model,
            task_name=task,
            data_dir=data,
            max_seq_length=MAX_SEQ_LENGTH,
            num_train_epochs=epochs,
            random_seed=seed,
        )
        return found["seconds"], found[f"eval_{metric}"]

    sides = {"ours": ours}
    if peer:
        sides["transformers"] = lambda seed, folder: theirs(
            task, folder, seed, epochs, peer
        )
    return {
        "what": f"{task}, {epochs} epochs, {seeds} seeds",
        "metrics": [metric],
        **by_seed.compare(sides, seeds),
    }


def main() -> None:
    """Prints one JSON line."""
    data, model, epochs, seeds, task, *peer = sys.argv[1:]
    result = measure(
        task, data, model, int(seeds), float(epochs), tuple(peer) or None
    )
    print(json.dumps(result))


if __name__ == "__main__":
    main()
