r"""Time of an epoch: length buckets, padding to the maximum, and a peer.

    python -m benchmarks.finetuning TASK DATA MODEL_FOLDER MAX_SEQ_LENGTH \
        [EXAMPLES [PEER_PYTHON PEER_FOLDER]]

TASK is a task of GLUE with labels, and DATA its folder; or TASK is `squad`, and
DATA a file to train on. The first EXAMPLES (10,000) that run_classifier.py or
run_squad.py would make are trained on, in batches of 32. MODEL_FOLDER holds a
checkpoint, bert_config.json and vocab.txt, PEER_FOLDER the same weights for
transformers. All sides run in turns, A B C A B C; PRECISION=bfloat16 in the
environment sets the precision, RUNS (3) the number of turns. Start-up,
compilation and reading are not counted.
"""

import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import keras
import tensorflow as tf

from benchmarks import encoded, transformers_trainer
from bert.data import batching, bucketing, feature_names
from bert.data.records.encoding import RecordSchema
from bert.data.records.examples import Examples
from bert.modeling import (
    checkpoints,
    fused_ops,
    losses,
    networks,
    precision,
    task_heads,
    task_losses,
)
from bert.modeling.config import BertConfig
from bert.modeling.formats import checkpoint_files
from bert.tasks.squad import examples as squad
from bert.tasks.squad import question_windows
from bert.tasks.task import TRAIN
from bert.training import distribution, optimization, train_step
from bert.training.objective import Objective

BATCH_SIZE = 32
RUNS = int(os.environ.get("RUNS", "3"))
PRECISION = os.environ.get("PRECISION", "float32")
SQUAD = "squad"


class Training(NamedTuple):
    """What is trained.

    Attributes:
        build: function. () -> the network.
        objective: its losses.
        rows: examples, as in `data.records.examples`.
        schema: their features besides the encoder's inputs.
        model_class: the network's name in transformers.
        names: our feature name of a label -> the peer's.
    """

    build: Callable[[], keras.Model]
    objective: Objective
    rows: Iterator[dict]
    schema: RecordSchema
    model_class: str
    names: dict[str, str]


def training_of(
    name: str, data: str, model: str, max_seq_length: int
) -> Training:
    """The training of a task, on all its examples.

    Args:
        name: key of `tasks.classification.glue.GLUE_TASKS`, or `SQUAD`.
        data: folder or file of the examples.
        model: folder of the weights.
        max_seq_length: S.
    """
    config = BertConfig.from_json_file(f"{model}/bert_config.json")
    if name == SQUAD:
        maker = encoded.window_maker(model, max_seq_length=max_seq_length)
        questions = squad.read(data, squad.SPANS).rows
        return Training(
            lambda: networks.build(config, task_heads.SPANS, 2),
            Objective((task_losses.SpanLoss(),), None),
            maker.training_records(questions),
            question_windows.TRAINING_SCHEMA,
            "BertForQuestionAnswering",
            {
                feature_names.START_POSITIONS: "start_positions",
                feature_names.END_POSITIONS: "end_positions",
            },
        )

    task, files = encoded.classified(name, data, model, max_seq_length)
    return Training(
        lambda: networks.build(config, task_heads.CLASSIFIER, task.num_outputs),
        Objective((task_losses.of_labels(task.num_outputs),), None),
        task.records(files[TRAIN][0].rows),
        task.schema,
        "BertForSequenceClassification",
        {feature_names.LABEL_IDS: "labels"},
    )


class OwnTraining:
    """Training with this project.

    Args:
        training: network and losses.
        examples: to train on.
        model: folder of the weights.
        lengths: values of S that batches may have.
    """

    def __init__(
        self,
        training: Training,
        examples: Examples,
        model: str,
        lengths: list[int],
    ):
        self._examples, self._lengths = examples, lengths
        self._count = len(examples) // BATCH_SIZE
        with precision.computing_in(PRECISION):
            network = training.build()
        path = checkpoint_files.resolve(model)
        named = checkpoints.model_variables(network)
        checkpoints.assign(named, checkpoints.read(path), path)

        rate = optimization.WarmupLinearDecay(2e-5, 10**9, 0)
        optimizer = optimization.AdamWeightDecay(rate)
        optimizer.build(network.trainable_variables)
        config = BertConfig.from_json_file(f"{model}/bert_config.json")
        self._steps = train_step.TrainStep(
            network,
            training.objective,
            optimizer,
            distribution.make_strategy("one_device"),
            1,
            fused_ops.step_scope(config, remat=False),
            losses.batch_tokens,
        )
        # Each length is compiled when it first occurs.
        self._train(2 if len(lengths) == 1 else self._count)

    def seconds(self) -> float:
        """Trains another epoch and returns its time."""
        start = time.perf_counter()
        self._train(self._count)
        return time.perf_counter() - start

    def _train(self, count: int) -> None:
        batches = batching.training_batches(
            self._examples,
            self._lengths,
            BATCH_SIZE,
            1,
            self._steps.optimizer.step,
        )
        self._steps.train(iter(batches), tf.constant(count)).numpy()


def measure(
    name: str,
    data: str,
    model: str,
    max_seq_length: int,
    count: int,
    peer: tuple[str, str] | None = None,
    runs: int = RUNS,
) -> dict:
    """Times all sides in turns.

    Args:
        name, data, model, max_seq_length: as for `training_of`.
        count: number of examples of an epoch.
        peer: Python of the peer and folder of the same weights, or None.
        runs: number of runs of each side.
    """
    training = training_of(name, data, model, max_seq_length)
    rows = list(itertools.islice(training.rows, count))
    examples = Examples(rows, training.schema)
    parts = training, examples, model
    by_length = bucketing.bucket_lengths(max_seq_length)
    sides = {
        "by length": OwnTraining(*parts, by_length).seconds,
        "padded": OwnTraining(*parts, [max_seq_length]).seconds,
    }
    with tempfile.TemporaryDirectory() as folder:
        if peer:
            path = os.path.join(folder, "examples.npz")
            transformers_trainer.write_examples(path, rows, training.names)
            sides["transformers"] = lambda: transformers_trainer.run(
                peer[0],
                model_class=training.model_class,
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
        "what": f"an epoch of {name}",
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
    name, data, model, length, *rest = sys.argv[1:]
    count = int(rest[0]) if rest else 10_000
    peer = (rest[1], rest[2]) if len(rest) > 1 else None
    print(json.dumps(measure(name, data, model, int(length), count, peer)))


if __name__ == "__main__":
    main()
