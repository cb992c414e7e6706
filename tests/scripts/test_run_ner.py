"""run_ner on names with a known grammar."""

import contextlib
import io
import json
import random

import numpy as np
import pytest

import run_ner
from bert.common.formats import tensor_files
from bert.tasks.ner import conll
from bert.tasks.ner import metrics as scoring
from tests.helpers import model_files, names, run_folders

pytestmark = pytest.mark.slow

S = 19


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of the grammar, vocabulary and config."""
    folder = tmp_path_factory.mktemp("ner")
    model_files.write_sizes(
        folder,
        "config.json",
        names.vocabulary(),
        hidden_size=24,
        num_attention_heads=3,
        intermediate_size=37,
        max_position_embeddings=S,
    )
    rng = random.Random(1)
    for name, count, every in (("train", 3000, 2), ("eval", 211, 5)):
        sentences = [
            names.sentence(rng, rng.randint(1, 3)) for _ in range(count)
        ]
        names.write(folder / f"{name}.txt", sentences, every)
    names.write(folder / "few.txt", sentences[:61])
    return folder


def flags_of(folder, **changed):
    flags = {
        "vocab_file": folder / "vocab.txt",
        "bert_config_file": folder / "config.json",
        "output_dir": folder / "run",
        "max_seq_length": S,
        "train_batch_size": 61,
        "eval_batch_size": 29,
        "learning_rate": 4e-3,
        **changed,
    }
    return [f"--{name}={value}" for name, value in flags.items()]


@pytest.fixture(scope="module")
def trained(folder):
    """The folder, after training, evaluation and prediction."""
    run_ner.main(
        [
            "run_ner.py",
            "--do_train",
            "--do_eval",
            "--do_predict",
            "--document_context",
            *flags_of(
                folder,
                train_file=folder / "train.txt",
                eval_file=folder / "eval.txt",
                predict_file=folder / "eval.txt",
                num_train_epochs=8,
            ),
        ]
    )
    return folder


def labels_of(path, column=-1):
    sentences = conll.read(str(path), conll.Columns(label=column))
    return [x.labels for x in sentences]


def test_the_grammar_is_learned(trained):
    found = run_folders.results(trained / "run")
    assert found["eval_f1"] >= 0.99
    assert found["eval_f1_PER"] >= 0.98 and found["eval_f1_LOC"] >= 0.98
    assert 0 < found["eval_loss"] < 0.1
    report = json.loads((trained / "run" / "eval_report.json").read_text())
    words = [y for some in labels_of(trained / "eval.txt") for y in some]
    supports = {k: x["support"] for k, x in report["per_class"].items()}
    assert supports == {y: words.count(y) for y in report["labels"]}
    matrix = np.array(report["confusion_matrix"])
    assert matrix.sum() == len(words)
    assert found["eval_accuracy"] == matrix.trace() / len(words)
    wrong = len(words) - matrix.trace()
    assert len(report["worst_errors"]) == min(20, wrong)
    majority = report["references"]["eval_accuracy/majority"]
    assert majority == words.count("O") / len(words)


def test_predictions_are_a_column_and_score_the_same(trained):
    path = trained / "run" / "predictions.conll"
    source = (trained / "eval.txt").read_text().splitlines()
    lines = path.read_text().splitlines()
    assert [line.rpartition(" ")[0] for line in lines] == source
    gold, guesses = labels_of(path, -2), labels_of(path)
    scores = scoring.score_entities(gold, guesses)
    found = run_folders.results(trained / "run")
    for name, value in scores.items():
        assert found[f"eval_{name}"] == value


def test_names_in_checkpoints_and_what_is_not_trained(trained):
    (index,) = (trained / "run").glob("model.ckpt-*.index")
    values = tensor_files.read(str(index.with_suffix("")))
    assert values["cls/ner/output_weights"].shape == (5, 24)
    assert "cls/ner/output_bias/adam_v" in values
    assert "bert/pooler/dense/kernel" in values
    assert "bert/pooler/dense/kernel/adam_m" not in values
    task = json.loads((trained / "run" / "task.json").read_text())
    assert task == {
        "labels": ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"],
        "kind": "entities",
        "max_seq_length": S,
        "doc_stride": 0,
        "document_context": True,
    }


@pytest.fixture(scope="module")
def long(trained):
    """Sentences of 1 to 2,000 words, the predicted labels, and scores."""
    rng = random.Random(3)
    sentences = [
        (names.sentence(rng, count) + [("then", "O")] * count)[:count]
        for count in (1, 2, 3, 17, 18, 211, 2000)
    ]
    # Words without a token, of many tokens, and of no Latin letter.
    sentences.append([("\u200b", "O"), ("a." * 97, "O"), ("\u00e9\u5317", "O")])
    names.write(trained / "long.txt", sentences, every=97)
    names.write(trained / "odd.txt", [[("anna", "B-MISC"), ("then", "O")]])
    flags = flags_of(
        trained,
        output_dir=trained / "again",
        init_checkpoint=trained / "run",
        eval_file=trained / "odd.txt",
        predict_file=trained / "long.txt",
    )
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        run_ner.main(["run_ner.py", "--do_eval", "--do_predict", *flags])
    guesses = labels_of(trained / "again" / "predictions.conll")
    return sentences, guesses, errors.getvalue()


def test_no_word_is_without_a_prediction(long):
    sentences, guesses, _ = long
    assert [len(x) for x in guesses] == [len(x) for x in sentences]
    gold = [[label for _, label in x] for x in sentences[:-1]]
    assert scoring.score_entities(gold, guesses[:-1])["f1"] >= 0.98


def test_labels_that_training_did_not_have_count_as_wrong(trained, long):
    *_, err = long
    assert (
        "labels that are not in the training data count as errors: B-MISC"
        in err
    )
    found = run_folders.results(trained / "again")
    assert found["eval_recall_MISC"] == found["eval_precision"] == 0.0
    assert found["global_step"] == 0  # a run of its own, not trained
