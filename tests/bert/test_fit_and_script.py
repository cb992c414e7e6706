"""`TextClassifier.fit` and run_classifier.py train the same model."""

import random

import keras
import numpy as np
import pytest

import bert
import run_classifier
from bert.modeling import task_models

SIZE, LENGTH, SEEDS = 1000, 16, 3
LABELS = ["bad", "good"]
SIGNALS = ["awful dull poor weak".split(), "fine great nice super".split()]
OTHERS = "the a film plot ending cast was seemed felt very rather".split()
WORDS = SIGNALS[0] + SIGNALS[1] + OTHERS
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def write_pairs(path, seed):
    """Pairs of texts; the second has a word that tells the label.

    It tells the wrong one in 15 of 100: no accuracy above 0.85 can be learnt.
    """
    rng = random.Random(seed)
    rows = []
    for _ in range(SIZE):
        a, b = (rng.choices(OTHERS, k=rng.randrange(3, 7)) for _ in "ab")
        label = rng.randrange(2)
        signal = SIGNALS[label != (rng.random() < 0.15)]
        b[rng.randrange(3)] = rng.choice(signal)
        rows.append((" ".join(a), " ".join(b), LABELS[label]))
    lines = [("a", "b", "label"), *rows]
    path.write_text("".join("\t".join(row) + "\n" for row in lines))
    a, b, labels = map(list, zip(*rows))
    return (a, b), labels


@pytest.fixture
def both(tmp_path, run_script):
    """Trains with both; returns accuracy and loss of each seed, [2, N, 2]."""

    def train(seeds, batch_size, epochs, rate, dropout):
        train = write_pairs(tmp_path / "train.tsv", 1)
        dev = write_pairs(tmp_path / "dev.tsv", 2)
        vocabulary = "".join(f"{word}\n" for word in SPECIAL + WORDS)
        (tmp_path / "vocab.txt").write_text(vocabulary)
        config = bert.BertConfig(
            vocab_size=len(SPECIAL + WORDS),
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=LENGTH,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
            initializer_range=0.1,
        )
        path = str(tmp_path / "model")
        tokenizer = bert.Tokenizer(str(tmp_path / "vocab.txt"))
        bert.save(bert.new_encoder(config), path, tokenizer)
        named = {
            "task_name": "tsv",
            "train_file": tmp_path / "train.tsv",
            "eval_file": tmp_path / "dev.tsv",
            "text_column": "a",
            "text_b_column": "b",
            "label_column": "label",
            "labels": ",".join(LABELS),
            "init_checkpoint": path,
            "output_dir": tmp_path / "run",
            "max_seq_length": LENGTH,
            "train_batch_size": batch_size,
            "learning_rate": rate,
            "num_train_epochs": epochs,
            "num_seeds": seeds,
            "random_seed": 1,
        }
        words = ("--do_train", "--do_eval")
        code, _, err = run_script(run_classifier, *words, **named)
        assert code == 0, err
        scripts, fits = [], []
        for seed in range(1, seeds + 1):
            folder = tmp_path / "run" / (f"seed_{seed}" if seeds > 1 else "")
            lines = (folder / "eval_results.txt").read_text().splitlines()
            scores = dict(line.split(" = ") for line in lines)
            names = ("eval_accuracy", "eval_loss")
            scripts.append([float(scores[name]) for name in names])
            keras.utils.set_random_seed(seed)  # of dropout
            model = bert.TextClassifier(
                path, LABELS, max_length=LENGTH, seed=seed
            )
            model.fit(*train, batch_size, epochs, learning_rate=rate, verbose=0)
            loss, accuracy = model.evaluate(*dev, verbose=0)
            fits.append((accuracy, loss))
        return np.array([fits, scripts])

    return train


@pytest.mark.long
def test_without_dropout_and_order_both_are_equal(both, monkeypatch):
    """Each batch is all texts: all that may differ is the order of sums."""
    monkeypatch.setattr(task_models, "POOLED_DROPOUT", 0.0)
    fit, script = both(1, SIZE, epochs=12, rate=3e-3, dropout=0.0)
    np.testing.assert_allclose(fit, script, rtol=1e-4)
