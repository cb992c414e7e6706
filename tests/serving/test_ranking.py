"""One query with a list of texts is answered by their order."""

import io
import json
import types

import numpy as np
import pytest

from bert.common import flags
from bert.data.label_kinds import CLASSES, REGRESSION
from bert.data.text.tokenizer import Tokenizer
from bert.modeling import task_models
from bert.modeling.formats import conversion
from bert.modeling.formats.sentence_files import TextVectors
from bert.serving import answer_lines, asking, graphs, openvino_export
from bert.serving.http import openvino_servable, rest, servable
from bert.serving.http.settings import Settings
from bert.serving.predict_settings import Settings as PredictSettings
from bert.tasks.similarity import export
from bert.tasks.similarity.settings import Settings as Similarity
from tests.helpers import http_server, model_files
from tests.helpers.classifier_files import write_export

QUERY = {"text": "the cat", "texts": ["a dog", "", "the cat", "tree " * 23]}
OTHER = {"text": "a bird", "texts": ["the red fish", "zzz", "the old house"]}
TEXT = rest.Spec(np.dtype(object), (None,))


def write_vectors(folder, part):
    """Exports a model of vectors with random weights; returns its folder."""
    config = model_files.write_sizes(folder)
    model = task_models.build_similarity_model(config, "mean")
    weights = model_files.random_values(model, 0.5)
    tokenizer = Tokenizer(str(folder / "vocab.txt")).with_max_length(13)
    vectors = TextVectors("mean", True)
    source = types.SimpleNamespace(
        config=config, tokenizer=tokenizer, vectors=vectors
    )
    settings = flags.replace(Similarity(), max_seq_length=13)
    path = str(folder / "export")
    if not part:
        graphs.save(export.Embedder(source, settings, weights), path)
        return path
    bert = conversion.Bert("", config, weights, [], tokenizer, vectors=vectors)
    openvino_export.write(path, bert, "float32")
    return path + part


def write_pairs(folder, part, *labels):
    """Exports a classifier of two texts; returns its folder."""
    precision = "float32" if part else None
    return write_export(folder, *labels, True, precision) + part


LABELS, NUMBERS = (CLASSES, ("1", "0")), (REGRESSION, ())
NETWORK = "/openvino"


def scores_of(model, query):
    """Scores of the single texts, each asked alone."""

    def one(*row):
        return asking.answer(model, [[*row]], 1)[0]

    for text in query["texts"]:
        if model.inputs == ["text"]:
            yield np.dot(one(query["text"])["vector"], one(text)["vector"])
        else:
            answer = one(query["text"], text)
            yield answer.get("value", answer.get("probabilities", {}).get("1"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "part", "labels"),
    [
        (write_pairs, "", LABELS),
        (write_vectors, NETWORK, ()),
        pytest.param(write_pairs, NETWORK, LABELS, marks=pytest.mark.long),
        pytest.param(write_pairs, NETWORK, NUMBERS, marks=pytest.mark.long),
        pytest.param(write_vectors, "", (), marks=pytest.mark.long),
    ],
)
def test_texts_are_ordered_by_their_scores(
    write, part, labels, tmp_path, capsys
):
    folder = write(tmp_path, part, *labels)
    settings = PredictSettings(model=folder, trust_model=True)
    model = asking.load(settings)
    printed = ask(model, [{"id": 7} | QUERY, {"text": "x"}, OTHER], capsys)
    assert list(printed[0]) == ["id", "ranking"]
    kind = openvino_servable if part else servable
    served = kind.Servable(settings.model, Settings(model="mails"), [].append)
    code, body = post(served, [QUERY, OTHER])
    assert code == 200
    for query, line, answer in zip((QUERY, OTHER), printed[::2], body):
        scores = np.array([*scores_of(model, query)])
        order = np.argsort(-scores)
        assert np.diff(np.sort(scores)).min() > 1e-5
        for ranked in (line["ranking"], answer):
            assert [x["index"] for x in ranked] == order.tolist()
            texts = [query["texts"][i] for i in order]
            assert [x["text"] for x in ranked] == texts
            found = [x["score"] for x in ranked]
            np.testing.assert_allclose(found, scores[order], atol=1e-5)


def ask(model, lines, capsys, batch_size=2):
    """Answers of predict.py to lines of JSON."""
    printer = answer_lines.AnswerPrinter(model, batch_size, strict=False)
    stream = io.BytesIO(b"\n".join(json.dumps(x).encode() for x in lines))
    for examples in answer_lines.read_examples(stream, model, True):
        printer.print_answers(examples)
    return [json.loads(x) for x in capsys.readouterr().out.splitlines()]


def post(model, instances):
    """Status, and predictions or error, of serve.py."""
    app = http_server.app_of(model, max_batch_size=11)
    body = {"instances": instances}
    answer = app.test_client().post("/v1/models/mails:predict", json=body)
    return answer.status_code, [*answer.json.values()][0]


class Fake:
    """Answers the length of the second text, or as a spam filter."""

    def __init__(self, *inputs):
        self.inputs = [*inputs]
        self.signatures = {rest.DEFAULT: dict.fromkeys(inputs, TEXT)}

    def call(self, *args):
        columns = args[-1]
        count = len(columns["text"])
        if "text_b" in columns:
            return {
                "value": np.array([len(x) * 1.0 for x in columns["text_b"]])
            }
        return {
            "label_names": np.array([[b"spam", b"mail"]] * count),
            "probabilities": np.full((count, 2), 0.5),
        }


PAIR, FILTER = Fake("text", "text_b"), Fake("text")


@pytest.mark.parametrize(
    ("model", "query", "message"),
    [
        (PAIR, QUERY | {"texts": []}, "length >= 1 - at `$"),
        (PAIR, QUERY | {"texts": "a"}, "Expected `array`, got `str` - at `$"),
        (PAIR, QUERY | {"texts": ["a", 1]}, "got `int` - at `$"),
        (PAIR, {"texts": ["a"]}, "missing required field `text`"),
        (FILTER, QUERY, "cannot order texts; expected a model of two texts"),
    ],
)
def test_what_is_wrong_is_one_line(model, query, message, capsys):
    good = {"text": "a"} if model is FILTER else QUERY
    served = asking.ServedModel(model.call, model.inputs)
    error, answer = ask(served, [query, good], capsys)
    assert message in error["error"] and error["line"] == 1
    assert "error" not in answer
    code, error = post(model, [query])
    assert code == 400 and message in error
    if model is PAIR:
        assert "expected text, and texts, a list of strings" in error


def test_equal_scores_keep_the_order_of_the_texts_and_all_rows_count():
    code, ((first, *rest),) = post(PAIR, [{"text": "a", "texts": [*"bcdefgh"]}])
    assert code == 200 and [x["text"] for x in [first, *rest]] == [*"bcdefgh"]
    code, error = post(PAIR, [QUERY] * 3)
    assert code == 400 and error == "12 examples; expected 1 to 11"
