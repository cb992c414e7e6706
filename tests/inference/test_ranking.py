"""One query with a list of texts is predicted as their order."""

import io
import json

import numpy as np
import pytest

from bert.data.labels import CLASSES, REGRESSION
from bert.inference import jsonl
from bert.inference.predictor import Predictor
from tests.helpers import http_server
from tests.helpers.classifier_files import (
    classifier_of,
    embedding_model_of,
    write_networks,
)
from tests.helpers.predictors import predictor_of

QUERY = {"text": "the cat", "texts": ["a dog", "", "the cat", "tree " * 23]}
OTHER = {"text": "a bird", "texts": ["the red fish", "zzz", "the old house"]}
CLASSIFIER = (CLASSES, ("1", "0"), True)
NUMBERS = (REGRESSION, (), True)


def write_embedding_model(folder):
    """Writes an embedding model with random weights; returns its folder."""
    return write_networks(folder, embedding_model_of(folder))


def write_classifier(folder, *labels):
    """Writes a classifier of pairs with random weights."""
    return write_networks(folder, classifier_of(folder, *labels))


def scores_of(model, query):
    """Scores of the single texts, each predicted alone."""
    for text in query["texts"]:
        if "text_b" not in model.task.inputs:
            pair = model([{"text": query["text"]}]) + model([{"text": text}])
            yield np.dot(*(x["vector"] for x in pair))
        else:
            (found,) = model([{"text": query["text"], "text_b": text}])
            yield found.get("value", found.get("probabilities", {}).get("1"))


@pytest.mark.parametrize(
    ("write", "given", "engine"),
    [
        (write_classifier, CLASSIFIER, "keras"),
        (write_embedding_model, (), "openvino"),
        (write_classifier, CLASSIFIER, "openvino"),
        (write_classifier, NUMBERS, "openvino"),
        (write_embedding_model, (), "keras"),
    ],
)
def test_texts_are_ordered_by_their_scores(
    write, given, engine, tmp_path, capsys
):
    model = Predictor.open(write(tmp_path, *given), engine)
    capsys.readouterr()
    printed = ask(model, [{"id": 7} | QUERY, {"text": "x"}, OTHER], capsys)
    assert list(printed[0]) == ["id", "ranking"]
    code, body = post(model, [QUERY, OTHER])
    assert code == 200
    for query, line, answer in zip((QUERY, OTHER), printed[::2], body):
        scores = np.array([*scores_of(model, query)])
        order = np.argsort(-scores)
        assert np.diff(np.sort(scores)).min() > 1e-5
        for ranked in (line["ranking"], answer["ranking"]):
            assert [x["index"] for x in ranked] == order.tolist()
            texts = [query["texts"][i] for i in order]
            assert [x["text"] for x in ranked] == texts
            found = [x["score"] for x in ranked]
            np.testing.assert_allclose(found, scores[order], atol=1e-5)


def ask(model, lines, capsys, batch_size=2):
    """Predictions of lines of JSON, as printed by predict.py."""
    printer = jsonl.PredictionPrinter(model, batch_size, strict=False)
    stream = io.BytesIO(b"\n".join(json.dumps(x).encode() for x in lines))
    for examples in jsonl.read_examples(stream, model, True, model.task.inputs):
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


PAIR = predictor_of(
    lambda x: {"value": len(x["text_b"]) * 1.0},
    *("text", "text_b"),
    can_rank=True,
)
FILTER = predictor_of(lambda x: {"label": "spam"})
SIMILAR = predictor_of(lambda x: {"label": "same"}, "text", "text_b")


@pytest.mark.parametrize(
    ("model", "query", "message"),
    [
        (PAIR, QUERY | {"texts": []}, "length >= 1 - at `$"),
        (PAIR, QUERY | {"texts": "a"}, "Expected `array`, got `str` - at `$"),
        (PAIR, QUERY | {"texts": ["a", 1]}, "got `int` - at `$"),
        (PAIR, {"texts": ["a"]}, "missing required field `text`"),
        (FILTER, QUERY, "cannot rank texts; expected a pair classifier "),
        (SIMILAR, QUERY, "cannot rank texts; expected a pair classifier "),
    ],
)
def test_a_wrong_query_is_one_line_and_fails_alone(
    model, query, message, capsys
):
    good = QUERY if model is PAIR else dict.fromkeys(model.task.inputs, "a")
    error, answer = ask(model, [query, good], capsys)
    assert message in error["error"] and error["line"] == 1
    assert "error" not in answer
    code, error = post(model, [query])
    assert code == 400 and message in error
    if model is PAIR:
        assert "expected text, and texts, a list of strings" in error


ONE, TWO = {"text": "a"}, {"text": "a", "text_b": "b"}


@pytest.mark.parametrize(
    ("pairs", "good", "wrong", "message"),
    [
        (False, ONE, TWO, "the field text_b; expected only text: the model "),
        (True, TWO, ONE, "missing required field `text_b`"),
    ],
)
def test_a_model_reads_all_texts_of_an_example(
    tmp_path, capsys, pairs, good, wrong, message
):
    folder = write_classifier(tmp_path, CLASSES, ("yes", "no"), pairs)
    model = Predictor.open(folder)
    capsys.readouterr()
    answer, error = ask(model, [good, wrong], capsys)
    assert message in error["error"] and "label" in answer
    code, error = post(model, [wrong])
    assert code == 400 and message in error
    code, (found,) = post(model, [good])
    assert (code, found) == (200, answer)


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
    model = Predictor.open(write_classifier(tmp_path, *labels))
    assert model.task.can_rank == can_rank


def test_equal_scores_keep_the_order_of_the_texts_and_all_rows_count():
    code, (found,) = post(PAIR, [{"text": "a", "texts": [*"bcdefgh"]}])
    assert code == 200
    assert [x["text"] for x in found["ranking"]] == [*"bcdefgh"]
    code, error = post(PAIR, [QUERY] * 3)
    assert code == 400 and error == "12 examples; expected 1 to 11"
