"""Requests over HTTP: TF Serving's paths, batches, limits, mistakes."""

import base64
import gzip
import math
import tracemalloc

import pytest
import tensorflow as tf

from bert.inference.predictor import Predictor
from bert.modeling.formats import saved_models
from bert.serving import rest
from bert.serving.batch_queue import Busy
from tests.helpers import http_server
from tests.helpers.classifier_files import shared_export
from tests.helpers.predictors import predictor_of

pytestmark = pytest.mark.slow
TEXTS = [f"the {x} sees a dog" for x in ("cat", "bird", "fish", "old tree")]
TEXTS += ["", "zzz", "the warm river and the small house under a green tree"]
PREDICT = "/v1/models/mails:predict"


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    return shared_export(tmp_path_factory)


@pytest.fixture(scope="module")
def predictor(export):
    return Predictor.open(f"{export}/openvino")


@pytest.fixture(scope="module")
def client(predictor):
    queue = http_server.queue_of(predictor, max_batch_size=5)
    return client_of(queue)


def client_of(queue, **changes):
    return app_of(queue, **changes).test_client()


def app_of(queue, **changes):
    return http_server.app_of(queue, **{"max_batch_size": 5} | changes)


def test_texts_have_a_name_or_base64_or_neither(client):
    named = [{"text": text} for text in TEXTS[:5]]
    expected = client.post(PREDICT, json={"instances": named}).json
    assert len(expected["predictions"]) == 5
    for path, instances in (
        (PREDICT, TEXTS[:5]),
        ("/v1/models/mails/versions/7:predict", named),
        (PREDICT, [{"b64": base64_of(x)} for x in TEXTS[:5]]),
        (PREDICT, [{"text": {"b64": base64_of(x)}} for x in TEXTS[:5]]),
    ):
        found = client.post(path, json={"instances": instances}).json
        assert found == expected
    named, unnamed = (
        client.post(PREDICT, json={"inputs": columns}).json
        for columns in ({"text": TEXTS[:5]}, TEXTS[:5])
    )
    assert named == unnamed and [*named] == ["outputs"]

    # A column may be a single value.
    columns = [{"text": "the cat"}, {"text": ["the cat"]}]
    one, row = (client.post(PREDICT, json={"inputs": x}).json for x in columns)
    assert one == row


def base64_of(text):
    return base64.b64encode(text.encode()).decode()


def test_an_export_needs_one_operation_of_tensorflow_text(export):
    """As docs/production.md says for images of TF Serving."""
    (meta,) = saved_models.read_proto(export).meta_graphs
    operations = {node.op for node in saved_models.nodes(meta)}
    others = {x for x in operations if not hasattr(tf.raw_ops, x)}
    assert others == {"FastWordpieceTokenizeWithOffsets"}


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (b"{'a'", "JSON is malformed"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"instances": ' + b"[" * 300 + b"]" * 300 + b"}", "got `array`"),
        # The stack of Python 3.13 holds it, and the string is missing.
        (b'{"inputs": ' + b"[" * 900 + b"]" * 900 + b"}", ""),
        (b"[1]", '"instances" or "inputs"'),
        (b'{"instances": ["a"], "inputs": ["a"]}', '"instances" or "inputs"'),
        (b'{"instances": []}', "0 examples"),
        (b'{"inputs": {"other": ["a"]}}', "missing required field `text`"),
        (b'{"inputs": {"text": ["a"], "x": ["a", "a"]}}', "1 and 2 examples"),
        (b'{"instances": ["a", 1]}', "got `int` - at `$[1]`; expected a list"),
        (b'{"instances": [["a"]]}', "got `array` - at `$[0]`; expected a list"),
        (b'{"instances": [{"text": 1}]}', "got `int` - at `$.text`; expected"),
        (b'{"instances": "a"}', "Expected `array`, got `str`; expected a list"),
        (rb'{"instances": ["\ud83d"]}', "half of a surrogate pair"),
        (b'{"instances": [{"b64": "?"}]}', "b64 is '?'; expected base64"),
        (b'{"instances": [{"b64": 7}]}', "b64 is 7; expected base64"),
        (b'{"instances": ["a"], "signature_name": ["x"]}', "one of"),
        (b'{"instances": ["a"], "signature_name": "tokens"}', "one of"),
        (b'{"instances": ["a", "a", "a", "a", "a", "a"]}', "6 examples"),
    ],
)
def test_what_does_not_fit_is_answered_by_400_and_logged(
    client, body, part, capsys
):
    answer = client.post(PREDICT, data=body)
    assert answer.status_code == 400
    assert part in answer.json["error"]
    assert len(answer.json["error"]) < 300
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"POST {PREDICT}: 400 {answer.json['error'][:9]}")


def test_a_body_may_be_compressed_and_name_no_signature(predictor):
    """As for TF Serving."""
    queue = http_server.queue_of(predictor)
    client = client_of(queue, max_request_bytes=300)
    expected = client.post(PREDICT, json={"instances": ["a"]}).json
    body = b'{"instances": ["a"], "signature_name": ""}'
    for data, code in (
        (body.ljust(300), 200),
        (body.ljust(301), 413),
        (b"", 400),
    ):
        answer = client.post(
            PREDICT,
            data=gzip.compress(data),
            headers={"Content-Encoding": "GZIP"},
        )
        assert answer.status_code == code
        assert answer.json == expected if code == 200 else answer.json["error"]
    for encoding, code, error in (
        ("gzip", 400, "the body is not gzip"),
        ("br", 415, "Content-Encoding 'br'; expected gzip"),
    ):
        headers = {"Content-Encoding": encoding}
        answer = client.post(PREDICT, data=body, headers=headers)
        assert (answer.status_code, answer.json["error"]) == (code, error)
    headers = {"Content-Encoding": "identity"}
    assert client.post(PREDICT, data=body, headers=headers).json == expected


def test_a_compressed_body_takes_no_more_memory_than_the_limit(client):
    bomb = gzip.compress(bytes(1 << 26))
    tracemalloc.start()
    answer = client.post(
        PREDICT, data=bomb, headers={"Content-Encoding": "gzip"}
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.status_code == 413
    assert peak < 1 << 24


def test_other_paths_and_methods_are_answered_in_json(client):
    for path, code in (
        ("/v1/models/other:predict", 404),
        ("/v1/models/mails/versions/8:predict", 404),
        ("/v1/models/mails", 405),
        ("/v1/models/mails:classify", 405),
    ):
        answer = client.post(path, json={"instances": ["a"]})
        assert (answer.status_code, list(answer.json)) == (code, ["error"])
        named = f"no POST {path}; this server has POST {PREDICT}"
        assert named == answer.json["error"]


def test_state_signatures_and_metrics_are_reported(predictor):
    client = client_of(http_server.queue_of(predictor))
    (state,) = client.get("/v1/models/mails").json["model_version_status"]
    assert (state["version"], state["state"]) == ("7", "AVAILABLE")
    found = client.get("/v1/models/mails/versions/7/metadata").json
    assert found["model_spec"] == {"name": "mails", "version": "7"}
    described = found["metadata"]["signature_def"]["signature_def"]
    (signature,) = described.values()
    values = signature["inputs"] | signature["outputs"]
    assert {name: x["dtype"] for name, x in values.items()} == {
        "text": "DT_STRING",
        "label": "DT_STRING",
        "probabilities": "DT_FLOAT",
    }
    assert values["text"]["tensor_shape"]["dim"] == [{"size": "-1"}]
    assert client.get("/healthz").json == {"status": "ok"}
    client.post(PREDICT, data=b"{")
    client.post(PREDICT, json={"instances": ["a"]})
    text = client.get("/monitoring/prometheus/metrics").text
    for line in (
        'bert_answers_total{code="200"} 4.0',
        'bert_answers_total{code="400"} 1.0',
        'bert_predict_seconds_count{model="mails"} 2.0',
    ):
        assert line in text.splitlines()


def test_a_full_queue_is_answered_by_503():
    """`tests/serving/test_batch_queue.py` fills one."""

    def queue(examples):
        raise Busy

    queue.predictor = predictor_of()
    reply = client_of(queue).post(PREDICT, json={"instances": ["a"]})
    assert reply.status_code == 503
    assert reply.json == {"error": "the queue is full"}
    assert reply.headers["Retry-After"] == "1"


def test_an_empty_list_has_the_type_of_names():
    model = predictor_of(lambda _: {"entities": [], "odds": [0.5], "start": 3})
    outputs = rest.metadata_of(model)["outputs"]
    assert [x["dtype"] for x in outputs.values()] == [
        *("DT_STRING", "DT_FLOAT", "DT_INT64")
    ]


@pytest.mark.parametrize(
    ("answer", "part"),
    [({"value": math.nan}, "nan"), ({"value": object()}, "object")],
)
def test_a_prediction_that_is_not_json_is_an_error_of_the_server(
    capsys, answer, part
):
    queue = http_server.queue_of(predictor_of(lambda example: answer))
    reply = client_of(queue).post(PREDICT, json={"instances": ["a"]})
    assert reply.status_code == 500
    assert "log" in reply.json["error"] and "Retry-After" not in reply.headers
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"POST {PREDICT}: 500 ") and part in line
