r"""GLUE scores of run_classifier.py and of transformers on the same examples.

    python -m benchmarks.glue TASK DATA_DIR MODEL_FOLDER EPOCHS SEEDS \
        [PEER_PYTHON PEER_FOLDER] [--FLAG=VALUE ...]

DATA_DIR has the task's train.tsv and dev.tsv, MODEL_FOLDER a checkpoint with
bert_config.json and vocab.txt, PEER_FOLDER the same weights for transformers.
SEEDS is 3 for the seeds 1 to 3, or 2-3 for 2 and 3. The batch size is 32, the
learning rate 5e-5, and a tenth of the steps are warm-up. Flags are those of
run_classifier.py; the peer follows --precision. It trains on the examples that
our run encodes, so on the same tokens. Our seconds are those of the whole
command, the peer's those of training; its command_seconds include its start
and its predictions.
"""

from collections.abc import Iterable

import run_classifier
from benchmarks import by_seed, encoded, transformers_trainer
from bert.data import feature_names, postprocessing
from bert.tasks.classification import scores
from bert.tasks.classification.files import labels_of
from bert.tasks.classification.glue import GLUE_TASKS
from bert.tasks.task import DEV, TRAIN

MAX_SEQ_LENGTH = 128


def theirs(
    task: str,
    data_dir: str,
    model: str,
    seed: int,
    epochs: float,
    peer: tuple[str, str],
    bf16: bool,
) -> dict[str, float]:
    """Times, see `transformers_trainer.logits`, and metrics of the peer.

    Args:
        task: key of `tasks.classification.glue.GLUE_TASKS`.
        data_dir: folder of its files.
        model: folder of our weights, whose vocabulary is used.
        seed: seed of the peer.
        epochs: epochs of training.
        peer: Python of the peer and folder of its weights.
        bf16: whether it trains in mixed precision.
    """
    made, files = encoded.classified(task, data_dir, model, MAX_SEQ_LENGTH)
    train, held_out = files[TRAIN][0].rows, files[DEV][0].rows

    times, logits = transformers_trainer.logits(
        peer,
        list(made.records(train)),
        list(made.records(held_out)),
        {feature_names.LABEL_IDS: "labels"},
        model_class="BertForSequenceClassification",
        num_labels=made.num_outputs,
        epochs=epochs,
        seed=seed,
        bf16=bf16,
    )
    answers = postprocessing.predictions(logits, made.labels.kind)
    gold = labels_of(held_out)
    return times | scores.compute(made.metrics, gold, answers)


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
        task: key of `tasks.classification.glue.GLUE_TASKS`.
        data: folder of its files.
        model: folder of our weights.
        epochs: epochs of training.
        seeds: the seeds.
        peer: Python of the peer and folder of the same weights, or None.
        flags: further flags of run_classifier.py.
    """
    names = GLUE_TASKS[task].metrics
    bf16 = flags.get("precision") == "bfloat16"

    def ours(seed: int, folder: str) -> dict[str, float]:
        results = by_seed.train(
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
        scores = {name: results[f"eval_{name}"] for name in names}
        return {**results, **scores}

    sides = {"ours": ours}
    if peer:
        sides["transformers"] = lambda seed, folder: theirs(
            task, data, model, seed, epochs, peer, bf16
        )
    what = by_seed.describe(task, data, epochs, flags)
    return by_seed.compare(what, names, sides, seeds)


if __name__ == "__main__":
    by_seed.main(measure)
