r"""Time of an epoch: length buckets, padding to the maximum, and a peer.

    python -m benchmarks.finetuning TASK RECORDS MODEL_FOLDER MAX_SEQ_LENGTH \
        [EXAMPLES [PEER_PYTHON PEER_FOLDER]]

TASK is `classifier` or `span`. RECORDS is a train.tf_record that
run_classifier.py or run_squad.py wrote; its first EXAMPLES (10,000) are trained
on, in batches of 32. MODEL_FOLDER holds a checkpoint and bert_config.json,
PEER_FOLDER the same weights for transformers. All sides run in turns, A B C A B
C; PRECISION=bfloat16 in the environment sets the precision, RUNS (3) the number
of turns. Start-up, compilation and reading are not counted.
"""

import itertools
import json
import os
import statistics
import sys
import tempfile
import time

import tensorflow as tf

from benchmarks import transformers_trainer
from bert.data import batching, features
from bert.data.records import example_files
from bert.modeling import (
    checkpoints,
    fused_ops,
    losses,
    precision,
    task_losses,
    task_models,
)
from bert.modeling.config import BertConfig
from bert.training import optimization, steps

BATCH_SIZE = 32
RUNS = int(os.environ.get("RUNS", "3"))
PRECISION = os.environ.get("PRECISION", "float32")
_INT = example_files.Feature()
TASKS = {
    "classifier": (
        {features.LABEL_IDS: _INT, features.IS_REAL_EXAMPLE: _INT},
        lambda config: task_models.build_classifier(config, 2),
        (task_losses.LABELS, task_losses.label_weights, task_losses.class_sums),
        "BertForSequenceClassification",
        {features.LABEL_IDS: "labels"},
    ),
    "span": (
        {features.START_POSITIONS: _INT, features.END_POSITIONS: _INT},
        task_models.build_span_model,
        (task_losses.SPAN, task_losses.span_weights, task_losses.span_sums),
        "BertForQuestionAnswering",
        {
            features.START_POSITIONS: "start_positions",
            features.END_POSITIONS: "end_positions",
        },
    ),
}


class OwnTraining:
    """Training with this project.

    Args:
        task: entry of `TASKS`.
        examples: `example_files.Examples` to train on.
        model: folder of the weights.
        lengths: values of S that batches may have.
    """

    def __init__(self, task, examples, model: str, lengths: list[int]):
        _, build, (name, weights, sums), _, _ = task
        self._examples, self._lengths = examples, lengths
        config = BertConfig.from_json_file(f"{model}/bert_config.json")
        self._steps = len(examples) // BATCH_SIZE
        rate = optimization.WarmupLinearDecay(2e-5, 10**9, 0)
        with precision.computing_in(PRECISION):
            network = build(config)
        optimizer = optimization.AdamWeightDecay(rate)
        optimizer.build(network.trainable_variables)
        path = checkpoints.resolve(model)
        named = checkpoints.model_variables(network)
        checkpoints.assign(named, checkpoints.read(path), path)
        self._taken = steps.Steps(
            steps.StepTask(
                network,
                (name,),
                weights,
                sums,
                fused_ops.step_scope(config, remat=False),
                losses.batch_tokens,
            ),
            optimizer,
            tf.distribute.OneDeviceStrategy("CPU:0"),
            1,
        )
        # Each length is compiled when it first occurs.
        self._train(2 if len(lengths) == 1 else self._steps)

    def seconds(self) -> float:
        """Trains another epoch and returns its time."""
        start = time.perf_counter()
        self._train(self._steps)
        return time.perf_counter() - start

    def _train(self, count: int) -> None:
        batches = batching.training_batches(
            self._examples,
            self._lengths,
            BATCH_SIZE,
            1,
            self._taken.optimizer.step,
        )
        self._taken.train(iter(batches), tf.constant(count)).numpy()


def measure(
    task_name: str,
    records: str,
    model: str,
    max_seq_length: int,
    count: int,
    peer: tuple[str, str] | None = None,
    runs: int = RUNS,
) -> dict:
    """Times all sides in turns.

    Args:
        task_name: key of `TASKS`.
        records: path of the training records.
        model: folder of the weights.
        max_seq_length: S of the records.
        count: number of examples of an epoch.
        peer: Python of the peer and folder of the same weights, or None.
        runs: number of runs of each side.
    """
    task = TASKS[task_name]
    found = example_files.read(records, task[0], max_seq_length)
    chosen = list(itertools.islice(found, count))
    examples = example_files.Examples(chosen, task[0])
    by_length = batching.bucket_lengths(max_seq_length)
    sides = {
        "by length": OwnTraining(task, examples, model, by_length).seconds,
        "padded": OwnTraining(task, examples, model, [max_seq_length]).seconds,
    }
    with tempfile.TemporaryDirectory() as folder:
        if peer:
            path = os.path.join(folder, "examples.npz")
            transformers_trainer.write_examples(path, chosen, task[-1])
            sides["transformers"] = lambda: transformers_trainer.run(
                peer[0],
                model_class=task[3],
                folder=peer[1],
                examples=path,
                bf16=PRECISION == "bfloat16",
            )["seconds"]
        seconds: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(runs):
            for side, run in sides.items():
                seconds[side].append(run())
    ours = seconds.pop("by length")
    return {
        "what": f"an epoch of {task_name}",
        "precision": PRECISION,
        "examples": len(examples),
        "max_seq_length": max_seq_length,
        "full": round(float(examples.lengths.mean()) / max_seq_length, 3),
        "seconds": round(statistics.median(ours), 1),
        "examples_per_second": round(
            len(examples) / statistics.median(ours), 1
        ),
        "beside": {side: _beside(ours, x) for side, x in seconds.items()},
        "tensorflow": tf.__version__,
    }


def _beside(ours: list[float], theirs: list[float]) -> dict:
    ratios = sorted(b / a for a, b in zip(ours, theirs, strict=True))
    return {
        "seconds": round(statistics.median(theirs), 1),
        "ratio": round(statistics.median(ratios), 2),
        "min_max": [round(ratios[0], 2), round(ratios[-1], 2)],
    }


def main() -> None:
    """Prints one JSON line."""
    task, records, model, length, *rest = sys.argv[1:]
    count = int(rest[0]) if rest else 10_000
    peer = (rest[1], rest[2]) if len(rest) > 1 else None
    print(json.dumps(measure(task, records, model, int(length), count, peer)))


if __name__ == "__main__":
    main()
