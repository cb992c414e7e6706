r"""GLUE scores of run_classifier.py and of transformers on the same examples.

    python -m benchmarks.glue TASK DATA_DIR MODEL_FOLDER EPOCHS SEEDS \
        [PEER_PYTHON PEER_FOLDER] [--FLAG=VALUE ...]

DATA_DIR has the task's train.tsv and dev.tsv, MODEL_FOLDER a checkpoint with
bert_config.json and vocab.txt, PEER_FOLDER the same weights for transformers.
SEEDS is 3 for the seeds 1 to 3, or 2-3 for 2 and 3. The batch size is 32, the
learning rate 5e-5, and a tenth of the steps are warm-up. Flags are those of
run_classifier.py; the peer follows --precision. It trains on the records that
our run wrote, so on the same tokens. Our seconds are those of the whole
command, the peer's those of training; its command_seconds include its start
and its predictions.
"""

from collections.abc import Iterable

import numpy as np

import run_classifier
from benchmarks import by_seed, transformers_trainer
from bert.data import features
from bert.data.records import example_files
from bert.tasks.classification import examples, metrics
from bert.tasks.classification.tasks import TASKS

MAX_SEQ_LENGTH = 128


def theirs(
    task: str,
    records: str,
    seed: int,
    epochs: float,
    peer: tuple[str, str],
    bf16: bool,
) -> dict[str, float]:
    """Times, see `transformers_trainer.logits`, and metrics of the peer.

    Args:
        task: key of `tasks.classification.tasks.TASKS`.
        records: folder of the records.
        seed: seed of the peer.
        epochs: epochs of training.
        peer: Python of the peer and folder of its weights.
        bf16: whether it trains in mixed precision.
    """
    kind = TASKS[task].labels.kind
    number = kind == examples.REGRESSION
    label = example_files.Feature("float32" if number else "int64")
    train, held_out = (
        list(
            example_files.read(
                f"{records}/{name}.tf_record",
                {features.LABEL_IDS: label},
                MAX_SEQ_LENGTH,
            )
        )
        for name in ("train", "eval")
    )
    learned, labels = (
        np.array([x[features.LABEL_IDS][0] for x in part])
        for part in (train, held_out)
    )
    times, logits = transformers_trainer.logits(
        peer,
        train,
        held_out,
        {features.LABEL_IDS: "labels"},
        model_class="BertForSequenceClassification",
        num_labels=1 if number else int(learned.max()) + 1,
        epochs=epochs,
        seed=seed,
        bf16=bf16,
    )
    found = metrics.answers(logits, kind)
    names = TASKS[task].metrics
    return {**times, **metrics.scores(names, labels, found)}


def measure(
    task: str,
    data: str,
    model: str,
    epochs: float,
    seeds: Iterable[int],
    peer: tuple[str, str] | None = None,
    **flags: str,
) -> dict:
    """Measures scores and times of both sides.

    Args:
        task: key of `tasks.classification.tasks.TASKS`.
        data: folder of its files.
        model: folder of our weights.
        epochs: epochs of training.
        seeds: the seeds.
        peer: Python of the peer and folder of the same weights, or None.
        flags: further flags of run_classifier.py.
    """
    names = TASKS[task].metrics
    bf16 = flags.get("precision") == "bfloat16"

    def ours(seed: int, folder: str) -> dict[str, float]:
        found = by_seed.train(
            run_classifier.__file__,
            folder,
            model,
            task_name=task,
            data_dir=data,
            max_seq_length=MAX_SEQ_LENGTH,
            num_train_epochs=epochs,
            random_seed=seed,
            **flags,
        )
        return {**found, **{name: found[f"eval_{name}"] for name in names}}

    sides = {"ours": ours}
    if peer:
        sides["transformers"] = lambda seed, folder: theirs(
            task, folder, seed, epochs, peer, bf16
        )
    what = by_seed.describe(task, data, epochs, flags)
    return by_seed.compare(what, names, sides, seeds)


if __name__ == "__main__":
    by_seed.main(measure)
