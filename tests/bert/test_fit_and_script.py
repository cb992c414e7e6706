"""`TextClassifier.fit` and run_classifier.py train the same model."""

import random

import numpy as np
import pytest

import bert
import run_classifier
from bert.modeling import task_models

SIZE, LENGTH, EPOCHS, RATE = 1000, 16, 12, 3e-3
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


@pytest.mark.long
def test_without_dropout_and_order_both_are_equal(
    tmp_path, run_script, monkeypatch
):
    """Each batch is all texts: all that may differ is the order of sums."""
    monkeypatch.setattr(task_models, "POOLED_DROPOUT", 0.0)
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
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
    )
    path = str(tmp_path / "model")
    tokenizer = bert.Tokenizer(str(tmp_path / "vocab.txt"))
    bert.save(bert.new_encoder(config), path, tokenizer)

    code, _, err = run_script(
        run_classifier,
        *("--do_train", "--do_eval", "--task_name=tsv"),
        *("--text_column=a", "--text_b_column=b", "--label_column=label"),
        train_file=tmp_path / "train.tsv",
        eval_file=tmp_path / "dev.tsv",
        labels=",".join(LABELS),
        init_checkpoint=path,
        output_dir=tmp_path / "run",
        max_seq_length=LENGTH,
        train_batch_size=SIZE,
        learning_rate=RATE,
        num_train_epochs=EPOCHS,
        random_seed=1,
    )
    assert code == 0, err
    lines = (tmp_path / "run" / "eval_results.txt").read_text().splitlines()
    scores = dict(line.split(" = ") for line in lines)
    script = [float(scores[name]) for name in ("eval_loss", "eval_accuracy")]

    model = bert.TextClassifier(path, LABELS, max_length=LENGTH, seed=1)
    model.fit(*train, SIZE, EPOCHS, learning_rate=RATE, verbose=0)
    fit = model.evaluate(*dev, verbose=0)
    np.testing.assert_allclose(fit, script, rtol=1e-4)
