r"""SQuAD scores of run_squad.py and of transformers on the same windows.

    python -m benchmarks.squad TRAIN.json DEV.json MODEL_FOLDER EPOCHS SEEDS \
        [PEER_PYTHON PEER_FOLDER] [--FLAG=VALUE ...]

The files are of version 1.1, or both of 2.0. MODEL_FOLDER has a checkpoint with
bert_config.json and vocab.txt, PEER_FOLDER the same weights for transformers.
SEEDS is 3 for the seeds 1 to 3, or 2-3 for 2 and 3. Batches of 32 windows of at
most 384 tokens, rate 5e-5, a tenth of the steps warm up. Flags are those of
run_squad.py; the peer follows --precision. It learns from the windows that our
run makes, and its logits become answers as ours do. Our seconds are those of
the whole command, the peer's those of training; its command_seconds include
its start and its predictions.
"""

import itertools
from collections.abc import Iterable

import run_squad
from benchmarks import by_seed, encoded, transformers_trainer
from bert.data import feature_names
from bert.tasks.squad import answers, examples
from bert.tasks.squad import metrics as scoring

WINDOWS = {"max_seq_length": 384, "doc_stride": 128, "max_query_length": 64}
N_BEST, MAX_ANSWER_LENGTH = 20, 30


def theirs(
    train: examples.QuestionFile,
    dataset: examples.QuestionFile,
    model: str,
    seed: int,
    epochs: float,
    peer: tuple[str, str],
    bf16: bool,
) -> dict[str, float]:
    """Times, see `transformers_trainer.logits`, and metrics of the peer.

    Args:
        train: questions to learn from.
        dataset: questions to answer.
        model: folder of our weights, whose vocabulary is used.
        seed: seed of the peer.
        epochs: epochs of training.
        peer: Python of the peer and folder of its weights.
        bf16: whether it trains in mixed precision.
    """
    maker = encoded.window_maker(model, **WINDOWS)
    held_out = list(maker.prediction_windows(dataset.rows))
    times, logits = transformers_trainer.logits(
        peer,
        list(maker.training_records(train.rows)),
        [*itertools.chain.from_iterable(held_out)],
        {
            feature_names.START_POSITIONS: "start_positions",
            feature_names.END_POSITIONS: "end_positions",
        },
        model_class="BertForQuestionAnswering",
        epochs=epochs,
        seed=seed,
        bf16=bf16,
    )
    return {**times, **scores(dataset, held_out, *logits)}


def scores(
    dataset: examples.QuestionFile, windows: list[dict], starts, ends
) -> dict[str, float]:
    """Computes the official metrics with the defaults of run_squad.py.

    Args:
        dataset: the questions.
        windows: of `WindowMaker.prediction_windows`.
        starts, ends: float32 [N, S] logits of the windows of all questions.
    """
    best, odds = {}, {}
    version_2 = dataset.has_impossible
    logits = zip(starts, ends, strict=True)
    for example, records in zip(dataset.rows, windows, strict=True):
        own = [
            answers.WindowLogits.of_record(record, *next(logits))
            for record in records
        ]
        text_of = answers.offsets_text(example.context, own)
        found = answers.extract(
            own, text_of, N_BEST, MAX_ANSWER_LENGTH, version_2
        )
        best[example.id] = found.best.text if found.best else ""
        odds[example.id] = found.null_odds
    if version_2:
        return scoring.scores_2(dataset.rows, best, odds, 0.0)
    return scoring.scores_1(dataset.rows, best)


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
        train, dev: paths of two files of one version.
        model: folder of our weights.
        epochs: epochs of training.
        seeds: the seeds.
        peer: Python of the peer and folder of the same weights, or None.
        flags: further flags of run_squad.py.
    """
    bf16 = flags.get("precision") == "bfloat16"
    dataset = examples.read(dev, examples.TEXTS)
    version_2 = dataset.has_impossible

    def ours(seed: int, folder: str) -> dict[str, float]:
        return by_seed.train(
            run_squad.__file__,
            folder,
            model,
            train_file=train,
            predict_file=dev,
            version_2_with_negative=version_2,
            num_train_epochs=epochs,
            random_seed=seed,
            **WINDOWS,
            **flags,
        )

    sides = {"ours": ours}
    if peer:
        questions = examples.read(train, examples.SPANS)
        sides["transformers"] = lambda seed, folder: theirs(
            questions, dataset, model, seed, epochs, peer, bf16
        )
    task = f"SQuAD {'2.0' if version_2 else '1.1'}"
    what = by_seed.describe(task, train, epochs, flags)
    metrics = ("exact", "f1", "best_f1") if version_2 else ("exact_match", "f1")
    return by_seed.compare(what, metrics, sides, seeds)


if __name__ == "__main__":
    by_seed.main(measure)
