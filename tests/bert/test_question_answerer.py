"""bert.QuestionAnswerer: questions and contexts in, answers out."""

import json
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pandas
import pytest

import bert
import run_squad
from bert.common.errors import UserError
from bert.inference.predictor import Predictor
from bert.tasks.squad import examples as squad
from bert.tasks.squad.examples import Answer
from tests.helpers import model_files, run_folders, squad_files

S = 19
X = ["where?", "who?"], ["anna lives in rome .", "bob lives in rome ."]
Y = ["rome", "bob"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, and files of questions."""
    folder = tmp_path_factory.mktemp("squad")
    config = model_files.write_sizes(
        folder,
        "bert_config.json",
        squad_files.VOCABULARY,
        hidden_size=30,
        max_position_embeddings=S,
    )
    tokenizer = bert.Tokenizer(str(folder / "vocab.txt"))
    bert.save(bert.new_encoder(config), str(folder / "model"), tokenizer)
    for name, seed, count in (("train", 1, 97), ("dev", 2, 31)):
        squad_files.write(folder / f"{name}.json", count, seed)
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return bert.QuestionAnswerer(str(folder / "model"))


def read(path):
    """A tuple of questions and contexts, and answers as strings."""
    examples = squad.read(str(path), squad.SPANS).examples
    x = [x.question for x in examples], [x.context for x in examples]
    return x, [x.answers[0].text if x.answers else "" for x in examples]


LOAD = """
import bert, keras, json, sys
model = keras.saving.load_model(sys.argv[1])
answers = model.predict(tuple(json.load(sys.stdin)), verbose=0)
json.dump([model.null_threshold, answers["answer"]], sys.stdout)
"""


@pytest.mark.slow
def test_class_and_script_are_equal(folder, tmp_path, run_script):
    path = str(folder / "model")
    sizes = {"doc_stride": 3, "max_answer_length": 2, "n_best_size": 7}
    model = bert.QuestionAnswerer(path, 0.25, seed=1, **sizes)
    x, y = read(folder / "train.json")
    size = len(model._training_columns(x, y, None)[0])
    assert size > len(y)  # windows of long contexts
    code, _, err = run_script(
        run_squad,
        *("--do_train", "--do_eval", "--do_predict"),
        "--version_2_with_negative",
        train_file=folder / "train.json",
        predict_file=folder / "dev.json",
        init_checkpoint=folder / "model",
        output_dir=tmp_path / "run",
        null_score_diff_threshold=0.25,
        max_seq_length=S,
        max_query_length=S // 2,
        **sizes,
        train_batch_size=size,
        learning_rate=1e-2,
        num_train_epochs=24,
        random_seed=1,
    )
    assert code == 0, err
    dev = read(folder / "dev.json")
    history = model.fit(  # the same steps in one epoch, to validate once
        *(tuple(part * 24 for part in x), y * 24, size),
        learning_rate=1e-2,
        shuffle=False,
        validation_data=dev,
        verbose=0,
    ).history
    scores = model.evaluate(*dev, verbose=0)
    assert history["val_f1"][-1] == scores["f1"] > 50
    script = run_folders.results(tmp_path / "run")
    for name in ("exact", "f1"):
        assert scores[name] == pytest.approx(script[name], 1e-3), name

    # The fine-tuned model answers as the script, the export and the file do,
    # without an argument.
    model = bert.QuestionAnswerer(str(tmp_path / "run"))
    for name, value in model.evaluate(*dev, verbose=0).items():
        assert value == pytest.approx(script[name], 1e-3, 1e-3), name
    answers = model.predict(dev[0], verbose=0)
    predictions = (tmp_path / "run" / "predictions.json").read_text()
    assert answers["answer"] == list(json.loads(predictions).values())
    odds = np.sort(answers["null_odds"])  # halfway, as they are rounded
    threshold = float(odds[15:17].mean())
    model.null_threshold = threshold
    answers = model.predict(dev[0], verbose=0)
    assert sum(not text for text in answers["answer"]) == len(dev[1]) // 2
    for i, context in enumerate(dev[0][1]):
        text = context[answers["start"][i] : answers["end"][i]]
        assert text == answers["answer"][i]
    model.save(tmp_path / "answers.keras")
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(tmp_path / "answers.keras")],
        input=json.dumps(dev[0]),
        capture_output=True,
        text=True,
        cwd=pathlib.Path(__file__).parents[2],
    )
    assert json.loads(done.stdout) == [threshold, answers["answer"]], (
        done.stderr
    )
    model.export(tmp_path / "export")
    predictor = Predictor.open(str(tmp_path / "export"))
    found = predictor(
        [{"question": a, "context": b} for a, b in zip(*dev[0], strict=True)]
    )
    assert [x["answer"] for x in found] == answers["answer"]
    for name in ("probability", "start", "end", "null_odds"):
        values = [x[name] for x in found]
        np.testing.assert_allclose(values, answers[name], 1e-4, 1e-4)


def arguments(model):
    """The numbers among the arguments of a model."""
    config = model.get_config()
    return {k: x for k, x in config.items() if isinstance(x, int | float)}


def test_a_fine_tuned_model_keeps_its_settings(folder, tmp_path):
    sizes = {
        "doc_stride": 2,
        "max_query_length": 5,
        "max_answer_length": 3,
        "n_best_size": 4,
    }
    model = bert.QuestionAnswerer(
        str(folder / "model"), -0.5, max_length=13, **sizes
    )
    model.null_threshold = 0.75
    bert.save(model.network, str(tmp_path / "saved"), model.tokenizer)
    task = json.loads((tmp_path / "saved" / "task.json").read_text())
    assert task == {
        "kind": "spans",
        "labels": [],
        "max_seq_length": 13,
        **sizes,
        "version_2_with_negative": True,
        "null_score_diff_threshold": 0.75,
    }

    again = bert.QuestionAnswerer(str(tmp_path / "saved"))
    assert arguments(again) == arguments(model)
    x = X[0], ["anna lives in rome . " * 4, X[1][1]]
    assert (
        again.predict(x, verbose=0)["answer"]
        == (model.predict(x, verbose=0)["answer"])
    )
    given = {"doc_stride": 9, "max_length": 11}
    other = bert.QuestionAnswerer(str(tmp_path / "saved"), 0.5, **given)
    given["null_threshold"] = 0.5
    assert arguments(other) == arguments(model) | given


def test_a_model_without_threshold_is_saved_with_its_settings(folder, tmp_path):
    path, sizes = str(folder / "model"), {"max_length": 11, "doc_stride": 2}
    model = bert.QuestionAnswerer(path, **sizes)
    bert.save(model, str(tmp_path / "saved"))
    model.export(str(tmp_path / "export"))
    expected = model.predict(X, verbose=0)
    for name in ("saved", "export"):
        predictor = Predictor.open(str(tmp_path / name))
        assert predictor.task.max_length == 11
        found = predictor(
            [dict(zip(("question", "context"), x)) for x in zip(*X)]
        )
        assert [x["answer"] for x in found] == expected["answer"]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"doc_stride": 0}, "^doc_stride=0; expected 1 or more$"),
        ({"max_query_length": 16}, "^max_query_length=16; expected at most 15"),
    ],
)
def test_sizes_are_possible(folder, sizes, message):
    with pytest.raises(UserError, match=message):
        bert.QuestionAnswerer(str(folder / "model"), max_length=S, **sizes)


LISTS = {"text": np.array(["in", "in"], object), "answer_start": [3, 9]}


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["rome", None], [(Answer("rome", 14),), ()]),
        (np.array(["rome", ""], object), [(Answer("rome", 14),), ()]),
        (pandas.Series(["bob", np.nan]), [(Answer("bob", -1),), ()]),
        ([LISTS, []], [(Answer("in", 3), Answer("in", 9)), ()]),
        (
            pandas.DataFrame({"answers": [["anna", "lives"], None]}),
            [(Answer("anna", 0), Answer("lives", 5)), ()],
        ),
        (
            [{"text": "rome", "answer_start": np.int64(14)}, ""],
            [(Answer("rome", 14),), ()],
        ),
        (
            iter([[{"text": "rome", "answer_start": 14}], [""]]),
            [(Answer("rome", 14),), ()],
        ),
    ],
)
def test_answers_of_every_kind(folder, answers, expected):
    model = bert.QuestionAnswerer(str(folder / "model"), 0.0)
    examples = model._examples((pandas.Series(X[0]), X[1]), answers)
    assert [x.answers for x in examples] == expected
    assert [x.impossible for x in examples] == [False, True]


def test_strange_texts_and_single_batches(model, folder):
    contexts = ["", "\u200b", "Łódź 😀 rome", "rome " * 97, X[1][0]]
    questions = ["", "where?", "\ud800", "who? " * 97, "where?"]
    answers = model.predict((questions, contexts), 3, verbose=0)
    assert answers["answer"][:2] == ["", ""] and answers["answer"][2]
    for i, context in enumerate(contexts):
        text = context[answers["start"][i] : answers["end"][i]]
        assert text == answers["answer"][i]
    at_once = model.predict_on_batch((questions, contexts))
    assert at_once["answer"] == answers["answer"]
    assert model.predict(([], []), verbose=0)["answer"] == []

    model = bert.QuestionAnswerer(str(folder / "model"))
    model.compile(keras.optimizers.Adam(1e-2))
    losses = [model.train_on_batch(X, Y) for _ in range(48)]
    assert losses[-1] < 0.1 < losses[0]
    assert model.predict(X, verbose=0)["answer"] == Y


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X[0], Y, "x is a list; expected a tuple of two columns, questions"),
        ((X[0], X[1][:1]), Y, "2 questions, 1 contexts, 2 answers"),
        (X, Y[:1], "2 questions, 2 contexts, 1 answers"),
        ((X[0], [None, "a"]), Y, r"contexts\[0\] is None; expected a str"),
        (X, [None, "bob"], r"answers\[0\] is None; .* null_threshold=0.0 to"),
        (X, [5, "bob"], r"answers\[0\] is 5; expected a string, or a dict"),
        (X, [{"text": "a"}, "bob"], r"answers\[0\] is {'text': 'a'}; expected"),
        (X, None, "y is None; expected the labels of the texts"),
    ],
)
def test_mistakes_are_one_line(model, x, y, message):
    for call in (model.fit, model.evaluate):
        with pytest.raises(UserError, match=message):
            call(x, y, verbose=0)


def test_answers_to_train_on_are_in_their_contexts(model, folder, capsys):
    message = r"^answers\[1\] is 'lima': answer.answer_start -1 is outside of"
    with pytest.raises(UserError, match=message):
        model.fit(X, ["rome", "lima"])
    with pytest.raises(UserError, match="max_length=7; expected 8 to 19"):
        bert.QuestionAnswerer(str(folder / "model"), max_length=7)
    assert model.evaluate(X, ["rome", "lima"], verbose=0)["f1"] >= 0
