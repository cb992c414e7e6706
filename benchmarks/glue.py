r"""Scores of GLUE tasks: run_classifier.py, and transformers on the same rows.

    python -m benchmarks.glue DATA_DIR MODEL_FOLDER EPOCHS SEEDS TASK \
        [PEER_PYTHON PEER_FOLDER]

DATA_DIR has the task's train.tsv and dev.tsv, MODEL_FOLDER a checkpoint with
bert_config.json and vocab.txt, PEER_FOLDER the same weights for transformers.
Batches of 32 rows, rate 5e-5, a tenth of the steps warm up. The peer trains on
the records that our run wrote, so on the same pieces.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import run_classifier
from benchmarks import transformers_trainer
from data import classification, features, task_records
from evaluation import glue

RATE = 5e-5
BATCH_SIZE = 32
MAX_SEQ_LENGTH = 128


def ours(task: str, data: str, model: str, seed: int, epochs: float, out: str):
    """Seconds and scores of run_classifier.py; its records stay in `out`."""
    start = time.perf_counter()
    subprocess.run(
        [
            sys.executable,
            run_classifier.__file__,
            "--do_train",
            "--do_eval",
            f"--task_name={task}",
            f"--data_dir={data}",
            f"--vocab_file={model}/vocab.txt",
            f"--bert_config_file={model}/bert_config.json",
            f"--init_checkpoint={model}/bert_model.ckpt",
            f"--output_dir={out}",
            f"--train_batch_size={BATCH_SIZE}",
            f"--eval_batch_size={BATCH_SIZE}",
            f"--learning_rate={RATE}",
            f"--num_train_epochs={epochs}",
            f"--random_seed={seed}",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    seconds = time.perf_counter() - start
    with open(f"{out}/eval_results.txt", encoding="utf-8") as file:
        found = dict(line.strip().split(" = ") for line in file)
    metric = run_classifier.TASKS[task].metrics[0]
    return seconds, float(found[f"eval_{metric}"])


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
        logits = os.path.join(folder, "logits.npy")
        printed = transformers_trainer.run(
            peer[0],
            model_class="BertForSequenceClassification",
            folder=peer[1],
            rows=paths["train"],
            held_out=paths["eval"],
            logits=logits,
            num_labels=1 if number else int(labels["train"].max()) + 1,
            batch_size=BATCH_SIZE,
            learning_rate=RATE,
            epochs=epochs,
            warmup_proportion=0.1,
            seed=seed,
        )
        found = glue.answers(np.load(logits), kind)
    metric = run_classifier.TASKS[task].metrics[0]
    score = glue.scores((metric,), labels["eval"], found)[metric]
    return printed["seconds"], score


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
    found: dict[str, list] = {"ours": []}
    for seed in range(1, seeds + 1):
        with tempfile.TemporaryDirectory() as out:
            found["ours"].append(ours(task, data, model, seed, epochs, out))
            if peer:
                found.setdefault("transformers", []).append(
                    theirs(task, out, seed, epochs, peer)
                )
    return {
        "what": f"{task}, {epochs} epochs, {seeds} seeds",
        "metric": run_classifier.TASKS[task].metrics[0],
        **{
            side: {
                "scores": [round(score, 4) for _, score in runs],
                "mean": round(statistics.mean(score for _, score in runs), 4),
                "seconds": round(statistics.median(s for s, _ in runs), 1),
            }
            for side, runs in found.items()
        },
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
