"""bert.QuestionAnswerer: questions and contexts in, answers out."""

import numpy as np
import pandas
import pytest

import bert
from bert.common.errors import UserError
from bert.inference import predictor as predictor_lib
from bert.tasks.squad.examples import Answer
from tests.helpers import trained

X = ["where?", "who?"], ["anna lives in rome .", "bob lives in rome ."]
Y = ["rome", "bob"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("squad")
    trained.write_model(folder)
    return str(folder)


@pytest.fixture(scope="module")
def model(folder):
    return bert.QuestionAnswerer(folder)


def arguments(model):
    """The numbers among the arguments of a model."""
    config = model.get_config()
    return {k: x for k, x in config.items() if isinstance(x, int | float)}


@pytest.mark.parametrize("to", ["google", "huggingface"])
def test_arguments_replace_the_settings_of_a_folder(folder, tmp_path, to):
    sizes = {"max_length": 13, "doc_stride": 2, "max_answer_length": 3}
    model = bert.QuestionAnswerer(folder, -0.5, **sizes)
    for number, threshold in enumerate((0.75, None)):
        model.null_threshold = threshold
        path = str(tmp_path / str(number))
        bert.save(model, path, to=to)
        again = bert.QuestionAnswerer(path)
        assert again.null_threshold == threshold
        assert arguments(again) == arguments(model)
        given = {"doc_stride": 9, "max_length": 11, "null_threshold": 0.5}
        other = bert.QuestionAnswerer(path, **given)
        assert arguments(other) == arguments(model) | given
        shorter = bert.QuestionAnswerer(path, max_length=9)
        assert arguments(shorter)["max_query_length"] == 5  # else 6


def test_the_length_of_transformers_is_the_default(model, tmp_path):
    bert.save(model, tmp_path / "theirs", to="huggingface")
    (tmp_path / "theirs" / "task.json").unlink()
    path = tmp_path / "theirs" / "tokenizer_config.json"
    path.write_text('{"model_max_length": 11}')
    assert bert.QuestionAnswerer(str(path.parent)).max_length == 11


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"doc_stride": 0}, "^doc_stride=0; expected at least 1$"),
        ({"doc_stride": 1.5}, "^doc_stride=1.5; expected an integer$"),
        ({"null_threshold": np.nan}, "^null_threshold=nan; expected a finite"),
        ({"null_threshold": "a"}, "^null_threshold='a'; expected a number$"),
        ({"max_query_length": 16}, "^max_query_length=16; expected at most 15"),
    ],
)
def test_sizes_are_possible(folder, sizes, message):
    with pytest.raises(UserError, match=message):
        bert.QuestionAnswerer(folder, max_length=19, **sizes)


LISTS = {"text": np.array(["in", "in"], object), "answer_start": [3, 9]}


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["rome", None], [(Answer("rome", 14),), ()]),
        (["n", None], [(Answer("n", 1),), ()]),  # the first of three
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
    model = bert.QuestionAnswerer(folder, 0.0)
    examples = model._examples((pandas.Series(X[0]), X[1]), answers)
    assert [x.answers for x in examples] == expected
    assert [x.impossible for x in examples] == [False, True]


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X[0], Y, "x is a list; expected a tuple of two columns, questions"),
        ((X[0], X[1][:1]), Y, "2 questions, 1 contexts, 2 answers"),
        (X, Y[:1], "2 questions, 2 contexts, 1 answers"),
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
        bert.QuestionAnswerer(folder, max_length=7)
    moved = [
        {"text": "rome", "answer_start": 3},
        {"text": "bob", "answer_start": 12},
    ]
    with pytest.raises(
        UserError, match="^no words or answers in 2 texts; .* answer_start$"
    ):
        model.fit(X, moved)
    assert model.evaluate(X, ["rome", "lima"], verbose=0)["f1"] >= 0
    # Training uses the first.
    rows = model._training_rows(X, [["rome", "lima"], "bob"], None)
    assert len(model._encoded(rows)) == 2


def test_the_loss_does_not_read_the_padding(model):
    batch = model.tokenizer(["where?", "who lives?"], max_length=19)
    logits = np.array(model(batch))
    is_padding = np.stack([batch["input_mask"] == 0] * 2, 1)
    assert is_padding.any() and (logits[is_padding] < -1e8).all()
    assert (np.abs(logits[~is_padding]) < 1e3).all()


def test_a_window_that_is_not_finite_has_no_answer(folder):
    sizes = {"max_length": 13, "doc_stride": 2, "n_best_size": 6}
    model = bert.QuestionAnswerer(folder, **sizes)
    predictor = model._predictor()
    examples = [{"question": "who?", "context": "anna sees bob " * 5}]
    encoded = predictor.encode(examples)
    outputs = predictor.compute_sequences(predictor_lib.sequences_of(encoded))
    assert len(outputs) > 1
    outputs[0] = outputs[0] * np.nan
    results = predictor.combine(encoded, outputs)
    (answer,) = predictor.decode(examples, encoded, results)
    assert np.isnan(answer["probability"])
