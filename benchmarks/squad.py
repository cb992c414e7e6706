r"""Scores of SQuAD 1.1: run_squad.py, and transformers on the same windows.

    python -m benchmarks.squad TRAIN.json DEV.json MODEL_FOLDER EPOCHS SEEDS \
        [PEER_PYTHON PEER_FOLDER]

MODEL_FOLDER has a checkpoint with bert_config.json and vocab.txt, PEER_FOLDER
the same weights for transformers. Batches of 16 windows of at most 384 pieces,
rate 1e-4, a tenth of the steps warm up. The peer learns from the windows that
our run wrote, and its logits become answers as ours do. Our seconds are those
of the whole command, the peer's those of training.
"""

import itertools
import json
import os
import sys
import tempfile

import run_squad
from benchmarks import by_seed, transformers_trainer
from data import features, squad, squad_windows, task_records
from evaluation import spans
from evaluation import squad as scoring

MAX_SEQ_LENGTH, DOC_STRIDE, MAX_QUERY_LENGTH = 384, 128, 64
N_BEST, MAX_ANSWER_LENGTH = 20, 30


def theirs(
    dataset: squad.Dataset, records: str, seed: int, epochs: float, peer
) -> tuple[float, float, float]:
    """Seconds of training, exact match and F1 of the peer.

    Args:
        dataset: what is answered.
        records: folder of the windows.
        seed: of the peer.
        epochs: of training.
        peer: its Python, and the folder of its weights.
    """
    windows = {
        name: list(
            task_records.read(
                f"{records}/{name}.tf_record", schema, MAX_SEQ_LENGTH
            )
        )
        for name, schema in (
            ("train", squad_windows.TRAINING_SCHEMA),
            ("eval", squad_windows.PREDICTION_SCHEMA),
        )
    }
    with tempfile.TemporaryDirectory() as folder:
        paths = {x: os.path.join(folder, f"{x}.npz") for x in windows}
        transformers_trainer.write_rows(
            paths["train"],
            windows["train"],
            {
                features.START_POSITIONS: "start_positions",
                features.END_POSITIONS: "end_positions",
            },
        )
        transformers_trainer.write_rows(paths["eval"], windows["eval"], {})
        seconds, logits = transformers_trainer.logits(
            peer,
            model_class="BertForQuestionAnswering",
            rows=paths["train"],
            held_out=paths["eval"],
            epochs=epochs,
            seed=seed,
        )
    found = scoring.scores_1(
        dataset.examples, answers(dataset, windows["eval"], *logits)
    )
    return seconds, found["exact_match"], found["f1"]


def answers(dataset: squad.Dataset, rows: list[dict], starts, ends) -> dict:
    """Question -> answer.

    Args:
        dataset: of the questions.
        rows: of `squad_windows.PREDICTION_SCHEMA`, in order.
        starts, ends: float32 [N, S] logits.
    """
    grouped = itertools.groupby(
        zip(rows, starts, ends, strict=True),
        lambda x: int(x[0][features.EXAMPLE_INDEX][0]),
    )
    found = {}
    for index, group in grouped:
        windows = []
        for row, start, end in group:
            length = len(row[features.INPUT_IDS])
            windows.append(
                spans.Window(
                    start[:length],
                    end[:length],
                    row[features.PIECE_STARTS],
                    row[features.PIECE_LIMITS],
                    row[features.TOKEN_IS_MAX_CONTEXT],
                )
            )
        example = dataset.examples[index]
        text_of = spans.offsets_text(example.context, windows)
        best = spans.extract(
            windows, text_of, N_BEST, MAX_ANSWER_LENGTH, False
        ).best
        found[example.id] = best.text if best else ""
    return found


def measure(train, dev, model, seeds, epochs, peer=None) -> dict:
    """Scores and times of both sides, means over seeds.

    Args:
        train, dev: files of version 1.1.
        model: folder of our weights.
        seeds: how many.
        epochs: of training.
        peer: its Python, and the folder of the same weights, or None.
    """
    dataset = squad.read(dev, squad.TEXTS)

    def ours(seed: int, folder: str) -> tuple[float, float, float]:
        found = by_seed.train(
            run_squad.__file__,
            folder,
            model,
            train_file=train,
            predict_file=dev,
            max_seq_length=MAX_SEQ_LENGTH,
            doc_stride=DOC_STRIDE,
            max_query_length=MAX_QUERY_LENGTH,
            num_train_epochs=epochs,
            random_seed=seed,
        )
        return found["seconds"], found["exact_match"], found["f1"]

    sides = {"ours": ours}
    if peer:
        sides["transformers"] = lambda seed, folder: theirs(
            dataset, folder, seed, epochs, peer
        )
    return {
        "what": f"SQuAD 1.1, {epochs} epochs, {seeds} seeds",
        "metrics": ["exact_match", "f1"],
        **by_seed.compare(sides, seeds),
    }


def main() -> None:
    """Prints one JSON line."""
    train, dev, model, epochs, seeds, *peer = sys.argv[1:]
    result = measure(
        train, dev, model, int(seeds), float(epochs), tuple(peer) or None
    )
    print(json.dumps(result))


if __name__ == "__main__":
    main()
