"""One query with a list of texts is predicted as their order."""

import io
import json

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from bert.data.labels import CLASSES, REGRESSION
from bert.inference import jsonl, ranking
from bert.tasks.classification.task import TextClassification
from tests.helpers import http_server
from tests.helpers.classifier_files import classifier_of
from tests.helpers.predictors import predictor_of

QUERY = {"text": "the cat", "texts": ["a dog", "", "the cat", "tree " * 23]}
OTHER = {"text": "a bird", "texts": ["the red fish", "zzz", "the old house"]}
PAIR = predictor_of(
    lambda x: {"value": len(x["text_b"]) * 1.0},
    *("text", "text_b"),
    can_rank=True,
)
FILTER = predictor_of(lambda x: {"label": "spam"})
SIMILAR = predictor_of(lambda x: {"label": "same"}, "text", "text_b")
VECTOR = strategies.lists(strategies.integers(-3, 3), min_size=2, max_size=2)


@hypothesis.given(strategies.lists(VECTOR, min_size=2))
def test_texts_are_ordered_by_their_scores(vectors):
    """The best first, and equal ones in the order of the texts."""
    texts = [f"text {i % 3}" for i in range(len(vectors) - 1)]
    scores = np.array(vectors[1:]) @ np.array(vectors[0])
    expected = [
        {"index": i, "text": texts[i], "score": scores[i]}
        for i in np.argsort(-scores, kind="stable")
    ]
    for predictions in (
        [{"vector": x} for x in vectors],
        [{"value": x} for x in scores],
        [{"label": "0", "probabilities": {"0": 0, "1": x}} for x in scores],
    ):
        query = {"text": "a", "texts": texts}
        assert ranking.order(query, predictions) == expected


def ask(model, lines, capsys):
    """Predictions of lines of JSON, as printed by predict.py."""
    printer = jsonl.PredictionPrinter(model, batch_size=2, strict=False)
    stream = io.BytesIO(b"\n".join(json.dumps(x).encode() for x in lines))
    for examples in jsonl.read_examples(
        stream, model.task, True, model.task.inputs
    ):
        printer.print(examples)
    return [json.loads(x) for x in capsys.readouterr().out.splitlines()]


def post(model, instances):
    """Status, and predictions or error, of serve.py."""
    queue = http_server.queue_of(model)
    app = http_server.app_of(queue, max_batch_size=11)
    body = {"instances": instances}
    answer = app.test_client().post("/v1/models/mails:predict", json=body)
    queue.close()
    return answer.status_code, [*answer.json.values()][0]


@pytest.mark.parametrize(
    ("model", "query", "message"),
    [
        (PAIR, QUERY | {"texts": []}, "length >= 1 - at `$"),
        (PAIR, QUERY | {"texts": "a"}, "Expected `array`, got `str` - at `$"),
        (PAIR, QUERY | {"texts": ["a", 1]}, "got `int` - at `$"),
        (PAIR, {"texts": ["a"]}, "missing required field `text`"),
        (FILTER, QUERY, "cannot rank texts; expected a pair classifier "),
        (SIMILAR, QUERY, "cannot rank texts; expected a pair classifier "),
        (
            FILTER,
            {"text": "a", "text_b": "b"},
            "the field text_b; expected only text: the model ",
        ),
        (SIMILAR, {"text": "a"}, "missing required field `text_b`"),
    ],
)
def test_a_wrong_query_is_one_line_and_fails_alone(
    model, query, message, capsys
):
    good = {"id": 7} | dict.fromkeys(model.task.inputs, "a")
    if model is PAIR:
        good = {"id": 7} | QUERY
    error, answer = ask(model, [query, good], capsys)
    assert message in error["error"] and error["line"] == 1
    assert [*answer][0] == "id" and "error" not in answer
    code, error = post(model, [query])
    assert code == 400 and message in error
    if model is PAIR:
        assert "expected text, and texts, a list of strings" in error


def test_a_pair_with_more_fields_is_no_query(capsys):
    (answer,) = ask(PAIR, [QUERY | {"text_b": "abc"}], capsys)
    assert answer == {"texts": QUERY["texts"], "value": 3.0}


def test_each_text_of_a_query_is_an_example():
    code, (first, _, third) = post(PAIR, [QUERY, QUERY, OTHER])
    assert code == 200
    assert [x["index"] for x in first["ranking"]] == [3, 2, 0, 1]
    assert [x["index"] for x in third["ranking"]] == [2, 0, 1]
    code, error = post(PAIR, [QUERY] * 3)
    assert code == 400 and error == "12 examples; expected 1 to 11"


@pytest.mark.parametrize(
    ("labels", "can_rank"),
    [
        ((CLASSES, ("1", "0"), True), True),
        ((CLASSES, ("yes", "no"), True), False),
        ((CLASSES, ("1", "0"), False), False),
        ((REGRESSION, (), True), True),
    ],
)
def test_a_classifier_that_gives_scores(tmp_path, labels, can_rank):
    task = TextClassification.from_model(classifier_of(tmp_path, *labels))
    assert task.can_rank == can_rank
