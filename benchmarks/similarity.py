r"""Scores of run_similarity.py and of sentence-transformers on the same pairs.

    python -m benchmarks.similarity TRAIN DEV MODEL_FOLDER EPOCHS SEEDS \
        [PEER_PYTHON PEER_FOLDER] [--loss=ranking] [--FLAG=VALUE ...]

TRAIN and DEV have the columns sentence1, sentence2 and score, as in STS-B; for
--loss=ranking TRAIN needs no scores, and `neighbours` writes it:

    python -m benchmarks.similarity neighbours CORPUS.txt COUNT > pairs.tsv

A student of some layers, whose teacher is the model with all of them:
--teacher=MODEL_FOLDER --keep_layers=0,2,5.

MODEL_FOLDER has a checkpoint with bert_config.json and vocab.txt, PEER_FOLDER
the same weights for sentence-transformers. SEEDS is 3 for the seeds 1 to 3. The
batch size is 32, the learning rate 2e-5, and a tenth of the steps are warm-up.
Our seconds are those of the whole command, the peer's those of training;
step_seconds are those of training by the number of steps, ours without the
first; peak_mb is the memory of the process.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator

import run_similarity
from benchmarks import by_seed
from bert.modeling.task_heads import COSENT
from bert.runs import opening
from bert.tasks.similarity import inputs
from bert.tasks.similarity.settings import Settings
from bert.tasks.task import DEV, TRAIN

MAX_SEQ_LENGTH, RATE = 64, 2e-5
METRICS = ("pearson_cosine", "spearman_cosine")
_COLUMNS = ("sentence1", "sentence2")
_SCRIPT = os.path.join(
    os.path.dirname(__file__), "peers", "sentence_transformers_training.py"
)


def theirs(
    files: dict[str, str],
    loss: str,
    epochs: float,
    seed: int,
    peer: tuple[str, str],
    rate: float = RATE,
    keep_layers: str = "",
) -> dict[str, float]:
    """Times, memory and metrics of the peer.

    Args:
        files: of training and evaluation, as in `Settings`.
        loss: name of a loss of ours.
        epochs: epochs of training.
        seed: seed of the peer.
        peer: Python of the peer and folder of its weights.
        rate: learning rate.
        keep_layers: layers of a student, such as "0,2,4", whose teacher is the
            model with all layers; "" without a teacher.
    """
    read = Settings(
        do_train=True,
        do_eval=True,
        dry_run=True,
        init_checkpoint=peer[1],
        text_columns=_COLUMNS,
        loss=loss,
        **files,
    )
    with opening.open_run(read) as run:
        _, found = inputs.read(run)
    tables = {}
    for name, part in (("train_file", TRAIN), ("eval_file", DEV)):
        rows = found[part][0].rows
        scores = [row.score for row in rows]
        tables[name] = {
            "texts": [row.texts for row in rows],
            "scores": None if None in scores else scores,
        }
    settings = {
        **tables,
        "folder": peer[1],
        "loss": loss,
        "max_seq_length": MAX_SEQ_LENGTH,
        "batch_size": by_seed.BATCH_SIZE,
        "learning_rate": rate,
        "keep_layers": [int(x) for x in keep_layers.split(",") if x],
        "epochs": epochs,
        "seed": seed,
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(settings, file)
        file.flush()
        command = [peer[0], _SCRIPT, file.name]
        printed = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True
        )
    return json.loads(printed.stdout.splitlines()[-1])


def measure(
    train: str,
    dev: str,
    model: str,
    epochs: float,
    seeds: Iterable[int],
    peer: tuple[str, str] | None = None,
    **flags: str,
) -> dict:
    """Measures scores and times of both sides.

    Args:
        train, dev: the files.
        model: folder of our weights.
        epochs: epochs of training.
        seeds: the seeds.
        peer: Python of the peer and folder of the same weights, or None.
        flags: further flags of run_similarity.py.
    """
    files = {"train_file": train, "eval_file": dev}
    rate = float(flags.get("learning_rate", RATE))

    def ours(seed: int, folder: str) -> dict[str, float]:
        results = by_seed.train(
            run_similarity.__file__,
            folder,
            model,
            **files,
            text_columns=",".join(_COLUMNS),
            max_seq_length=MAX_SEQ_LENGTH,
            num_train_epochs=epochs,
            random_seed=seed,
            **{"learning_rate": rate, **flags},
        )
        scores = {name: results[f"eval_{name}"] for name in METRICS}
        return {**results, **scores}

    sides = {"ours": ours}
    if peer:
        sides["sentence-transformers"] = lambda seed, folder: theirs(
            files,
            flags.get("loss", COSENT),
            epochs,
            seed,
            peer,
            rate,
            flags.get("keep_layers", ""),
        )
    start = os.path.basename(model.rstrip("/"))
    what = by_seed.describe(f"vectors from {start}", train, epochs, flags)
    return by_seed.compare(what, METRICS, sides, seeds)


def neighbours(corpus: str, count: int) -> Iterator[tuple[str, str]]:
    """Yields pairs of neighbouring sentences, of which each is in one pair.

    Args:
        corpus: file of a sentence a line, with empty lines between documents.
        count: number of pairs.
    """
    with open(corpus, encoding="utf-8") as file:
        lines = [line.strip().replace("\t", " ") for line in file]
    pairs = (
        pair
        for is_text, group in itertools.groupby(lines, bool)
        for document in [[*group]]
        for pair in zip(document[::2], document[1::2])
        if is_text
    )
    yield from itertools.islice(pairs, count)


if __name__ == "__main__":
    if sys.argv[1:2] == ["neighbours"]:
        print("\t".join(_COLUMNS))
        for pair in neighbours(sys.argv[2], int(sys.argv[3])):
            print("\t".join(pair))
    else:
        by_seed.main(measure)
