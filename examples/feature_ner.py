"""Named entities from a frozen BERT: the feature-based approach of the paper.

    python -m examples.feature_ner TRAIN HELD_OUT MODEL FOLDER [--cased]

TRAIN and HELD_OUT hold words and labels in columns, as for run_ner.py. MODEL is
a folder with a checkpoint, bert_config.json and vocab.txt.

    words -> extract_features.py: the last four layers, concatenated
          -> two layers of BiLSTM, 768 wide -> a label for each word

In section 5.3 of the paper (Devlin et al. 2018, arXiv:1810.04805) this reaches
96.1 on the CoNLL-2003 development set, 0.3 less than fine-tuning all of BERT.
The vectors are computed once and saved in FOLDER.
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

S = 128  # tokens of a sequence; longer sentences are split
SEED = 12345


class Chunk(NamedTuple):
    """A sentence, or a part of one that fits into a sequence.

    Attributes:
        words: words of the sentence.
        positions: position of the first token of each word; `[CLS]` is 0.
        labels: labels in BIO.
    """

    words: list[str]
    positions: list[int]
    labels: list[str]


def read_chunks(
    path: str, tokenizer: tokenization.FullTokenizer
) -> list[Chunk]:
    """Reads a file and splits long sentences."""
    chunks = []
    sentences = conll.read(path, conll.Columns())
    assert conll.has_entities(sentences, path)
    for sentence in sentences:
        labels = entities.to_bio(sentence.labels)
        chunk, space = Chunk([], [], []), S - 2
        for word, label in zip(sentence.words, labels):
            size = len(tokenizer.tokenize(word))
            if not 0 < size < S // 2:  # no token, or far too many
                word, size = "?", 1
            if size > space:
                chunks.append(chunk)
                chunk, space = Chunk([], [], []), S - 2
            chunk.words.append(word)
            chunk.positions.append(S - 1 - space)
            chunk.labels.append(label)
            space -= size
        chunks.append(chunk)
    return chunks


def make_vectors(
    chunks: list[Chunk], model: str, stem: str, cased: bool
) -> str:
    """Writes the vectors of all tokens, and returns the path."""
    with open(f"{stem}.lines", "w", encoding="utf-8") as file:
        # Tabs, since ` ||| ` would separate two segments.
        file.writelines("\t".join(x.words) + "\n" for x in chunks)
    path = f"{stem}.npz"
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
            "--output_format=npz",
        ]
    )
    return path


def dataset(path: str, chunks: list[Chunk], label_ids: dict) -> tf.data.Dataset:
    """Creates a data set of word vectors, label ids and weights.

    Args:
        path: path of the vectors.
        chunks: the words and labels.
        label_ids: label -> id.

    Returns:
        for each chunk float32 [W, D], int32 [W] and float32 [W].
    """
    with np.load(path) as found:
        values, splits = found["values"], found["row_splits"]

    def words():
        for chunk, first in zip(chunks, splits[:-1], strict=True):
            labels = [label_ids.get(x, 0) for x in chunk.labels]
            vectors = values[first + np.array(chunk.positions)]
            yield vectors, labels, np.ones(len(labels))

    return tf.data.Dataset.from_generator(
        words,
        output_signature=(
            tf.TensorSpec([None, values.shape[-1]], tf.float32),
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([None], tf.float32),
        ),
    )


def build_model(width: int, units: int, labels: int) -> keras.Model:
    """Builds two layers of BiLSTM and a classifier, [B, W, D] -> [B, W, C]."""
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
    """Computes vectors, trains on them and scores the held-out words.

    Args:
        train, held_out: paths of files of words and labels.
        model: folder of the checkpoint.
        folder: folder for the vectors.
        cased: the model is cased.
        units: width of the BiLSTM in each direction.
        epochs, batch_size, learning_rate: settings of its training.

    Returns:
        the metrics of `tasks.ner.metrics.score_entities`.
    """
    os.makedirs(folder, exist_ok=True)
    keras.utils.set_random_seed(SEED)
    tokenizer = tokenization.FullTokenizer(f"{model}/vocab.txt", not cased)
    chunks = {"train": read_chunks(train, tokenizer)}
    chunks["held_out"] = read_chunks(held_out, tokenizer)
    types = {x[2:] for chunk in chunks["train"] for x in chunk.labels if x[2:]}
    labels = entities.bio_labels(types)
    ids = {label: i for i, label in enumerate(labels)}
    data = {
        name: dataset(
            make_vectors(some, model, os.path.join(folder, name), cased),
            some,
            ids,
        )
        for name, some in chunks.items()
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
        found
        for vectors, *_ in data["held_out"].padded_batch(batch_size)
        for found in np.argmax(network(vectors), -1)
    ]
    guesses = [
        entities.to_bio([labels[i] for i in found[: len(x.labels)]])
        for found, x in zip(best, chunks["held_out"], strict=True)
    ]
    return metrics.score_entities(
        [x.labels for x in chunks["held_out"]], guesses
    )


def main() -> None:
    """Prints the scores."""
    cased = "--cased" in sys.argv
    train, held_out, model, folder = (x for x in sys.argv[1:] if x != "--cased")
    for name, score in run(train, held_out, model, folder, cased).items():
        print(f"{name} = {score:.4f}")


if __name__ == "__main__":
    main()
