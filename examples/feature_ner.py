"""Names with a BERT that stays as it is: the paper's feature-based way.

    python -m examples.feature_ner TRAIN HELD_OUT MODEL FOLDER [--cased]

TRAIN and HELD_OUT hold words and their labels in columns, as for run_ner.py;
MODEL is a folder with a checkpoint, bert_config.json and vocab.txt.

    words -> extract_features.py: the last four layers, concatenated
          -> two layers of BiLSTM, 768 wide -> a label for each word

Section 5.3 of the paper (Devlin et al. 2018, arXiv:1810.04805) reaches 96.1
on the CoNLL-2003 development set so, 0.3 less than fine-tuning all of BERT.
The vectors are made once and lie in FOLDER.
"""

import os
import sys
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

import extract_features
from data.text import tokenization
from tasks.ner import conll, entities, metrics

S = 128  # pieces of a row; longer sentences are cut into several
SEED = 12345
LAYERS = 4


class Row(NamedTuple):
    """Words whose vectors are made together.

    Attributes:
        words: of a sentence, or of a part of it.
        places: of the first piece of each word, `[CLS]` being 0.
        labels: in BIO.
    """

    words: list[str]
    places: list[int]
    labels: list[str]


def rows_of(path: str, tokenizer: tokenization.FullTokenizer) -> list[Row]:
    """Reads a file and cuts what is too long."""
    rows = []
    sentences = conll.read(path, conll.Columns())
    assert conll.has_entities(sentences, path)
    for sentence in sentences:
        labels = entities.to_bio(sentence.labels)
        row, room = Row([], [], []), S - 2
        for word, label in zip(sentence.words, labels):
            size = len(tokenizer.tokenize(word))
            if not 0 < size < S // 2:  # no piece, or far too many
                word, size = "?", 1
            if size > room:
                rows.append(row)
                row, room = Row([], [], []), S - 2
            row.words.append(word)
            row.places.append(S - 1 - room)
            row.labels.append(label)
            room -= size
        rows.append(row)
    return rows


def make_vectors(rows: list[Row], model: str, stem: str, cased: bool) -> str:
    """Writes the vectors of all pieces; returns the file."""
    with open(f"{stem}.lines", "w", encoding="utf-8") as file:
        # Tabs, for ` ||| ` would part two segments.
        file.writelines("\t".join(row.words) + "\n" for row in rows)
    path = f"{stem}.tfrecord"
    extract_features.main(
        [
            "extract_features.py",
            f"--input_file={stem}.lines",
            f"--output_file={path}",
            f"--vocab_file={model}/vocab.txt",
            f"--bert_config_file={model}/bert_config.json",
            f"--init_checkpoint={model}",
            f"--do_lower_case={not cased}",
            f"--max_seq_length={S}",
            "--layers=-1,-2,-3,-4",
            "--mix_layers=concat",
            "--output_format=tfrecord",
        ]
    )
    return path


def dataset(path: str, rows: list[Row], label_ids: dict) -> tf.data.Dataset:
    """Vectors of words, label ids and weights of each row.

    Args:
        path: of the vectors.
        rows: whose they are.
        label_ids: label -> id.

    Returns:
        float32 [W, D], int32 [W] and float32 [W] each.
    """
    signature = tf.TensorSpec([None], tf.int32)

    def words():
        for row in rows:
            yield row.places, [label_ids.get(x, 0) for x in row.labels]

    def join(record, places, labels):
        example = tf.io.parse_single_example(
            record,
            {
                "tokens": tf.io.VarLenFeature(tf.string),
                "values": tf.io.VarLenFeature(tf.float32),
            },
        )
        pieces = tf.size(example["tokens"].values)
        vectors = tf.reshape(example["values"].values, [pieces, -1])
        weights = tf.ones(tf.shape(labels), tf.float32)
        return tf.gather(vectors, places), labels, weights

    known = tf.data.Dataset.from_generator(
        words, output_signature=(signature, signature)
    )
    records = tf.data.TFRecordDataset(path)
    return tf.data.Dataset.zip(records, known).map(
        lambda record, known: join(record, *known)
    )


def build_model(width: int, units: int, labels: int) -> keras.Model:
    """Two layers of BiLSTM and a classifier: [B, W, D] -> [B, W, C]."""
    x = inputs = keras.Input((None, width))
    x = keras.layers.Masking()(x)
    for _ in range(2):
        lstm = keras.layers.LSTM(units, return_sequences=True)
        x = keras.layers.Bidirectional(lstm)(x)
    return keras.Model(inputs, keras.layers.Dense(labels)(x))


def run(
    train: str,
    held_out: str,
    model: str,
    folder: str,
    cased: bool = False,
    units: int = 768,
    epochs: int = 10,
    batch_size: int = 32,
    learning_rate: float = 1e-3,
) -> dict[str, float]:
    """Makes vectors, trains on them and scores the held-out words.

    Args:
        train, held_out: files of words and labels.
        model: folder of the checkpoint.
        folder: where the vectors are written.
        cased: the model keeps capitals.
        units: width of the BiLSTM, in each direction.
        epochs, batch_size, learning_rate: of its training.

    Returns:
        see `tasks.ner.metrics.score_entities`.
    """
    os.makedirs(folder, exist_ok=True)
    keras.utils.set_random_seed(SEED)
    tokenizer = tokenization.FullTokenizer(f"{model}/vocab.txt", not cased)
    rows = {"train": rows_of(train, tokenizer)}
    rows["held_out"] = rows_of(held_out, tokenizer)
    types = {x[2:] for row in rows["train"] for x in row.labels if x[2:]}
    labels = entities.bio_labels(types)
    ids = {label: i for i, label in enumerate(labels)}
    data = {
        name: dataset(
            make_vectors(some, model, os.path.join(folder, name), cased),
            some,
            ids,
        )
        for name, some in rows.items()
    }
    (vectors, *_), *_ = data["train"].take(1)
    network = build_model(vectors.shape[-1], units, len(labels))
    network.compile(
        keras.optimizers.Adam(learning_rate),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    shuffled = data["train"].shuffle(1000, SEED).padded_batch(batch_size)
    network.fit(shuffled, epochs=epochs, verbose=2)
    best = [
        row
        for vectors, *_ in data["held_out"].padded_batch(batch_size)
        for row in np.argmax(network(vectors), -1)
    ]
    guesses = [
        entities.to_bio([labels[i] for i in row[: len(x.labels)]])
        for row, x in zip(best, rows["held_out"], strict=True)
    ]
    return metrics.score_entities([x.labels for x in rows["held_out"]], guesses)


def main() -> None:
    """Prints the scores."""
    cased = "--cased" in sys.argv
    train, held_out, model, folder = (x for x in sys.argv[1:] if x != "--cased")
    for name, score in run(train, held_out, model, folder, cased).items():
        print(f"{name} = {score:.4f}")


if __name__ == "__main__":
    main()
