"""Requests over HTTP: TF Serving's paths, batches, limits, mistakes."""

import base64
import concurrent.futures
import copy
import gzip
import math
import threading
import tracemalloc

import pytest
import tensorflow as tf

from bert.common.errors import UserError
from bert.inference.predictor import Predictor, json_values
from bert.modeling.formats import saved_models
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


def test_rows_and_columns_are_answered_as_by_predict(client, predictor):
    """The JSON of predict.py, in TF Serving's envelope."""
    named = [{"text": text} for text in TEXTS[:5]]
    expected = json_values(predictor(named))
    for path, instances in (
        (PREDICT, TEXTS[:5]),
        ("/v1/models/mails/versions/7:predict", named),
        (PREDICT, [{"b64": base64_of(x)} for x in TEXTS[:5]]),
        (PREDICT, [{"text": {"b64": base64_of(x)}} for x in TEXTS[:5]]),
    ):
        found = client.post(path, json={"instances": instances}).json
        assert found == {"predictions": expected}
    for columns in (TEXTS[:5], {"text": TEXTS[:5]}):
        found = client.post(PREDICT, json={"inputs": columns}).json
        columns = {key: [x[key] for x in expected] for key in expected[0]}
        assert found == {"outputs": columns}
    assert list(expected[0]) == ["label", "probabilities"]
    assert list(expected[0]["probabilities"]) == ["no", "yes", "maybe"]


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


def test_requests_at_once_share_batches_and_none_spoils_another(predictor):
    """Nothing is lost or mixed up, with a failing one in many batches."""
    texts = [TEXTS[i % len(TEXTS)] for i in range(41)]
    expected = json_values(predictor([{"text": x} for x in texts]))
    texts[::8] = ["bad"] * 6
    task, batches = predictor.task, []

    def encode(examples):
        if {"text": "bad"} in examples:
            raise UserError("a bad example")
        return task.encode(examples)

    spoiled = Predictor(copy.copy(task), predictor._engine)
    spoiled.task.encode = encode
    queue = http_server.queue_of(
        spoiled,
        lambda *batch: batches.append(batch),
        max_batch_size=5,
        max_delay_ms=20.0,
    )
    bodies = [{"instances": [text]} for text in texts]
    bodies[1] = b'{"instances": [3]}'
    with http_server.running(app_of(queue)) as port:
        answers = http_server.ask_all(port, PREDICT, bodies)
    for number, (code, answer) in enumerate(answers):
        if number == 1 or number % 8 == 0:
            assert (code, list(answer)) == (400, ["error"])
            continue
        (found,) = answer["predictions"]
        assert found["label"] == expected[number]["label"]
        assert found["probabilities"] == pytest.approx(
            expected[number]["probabilities"], abs=1e-5
        )
    assert sum(size for size, _ in batches) == 34
    size, came = max(batches)
    assert size == len({*came}) == 5


def test_a_full_queue_is_answered_by_503():
    may_end, started = threading.Event(), threading.Event()

    def stall(example):
        started.set()
        assert may_end.wait(30)
        return example

    # The first example of the metadata is answered at once.
    may_end.set()
    queue = http_server.queue_of(
        predictor_of(stall), max_batch_size=1, max_queued_batches=2
    )
    app = app_of(queue)
    may_end.clear()
    started.clear()
    with (
        concurrent.futures.ThreadPoolExecutor(17) as pool,
        http_server.running(app) as port,
    ):
        body = {"instances": ["a"]}
        answers = [pool.submit(http_server.ask, port, PREDICT, body)]
        started.wait()
        answers += [
            pool.submit(http_server.ask, port, PREDICT, body) for _ in range(16)
        ]
        # One is computed and two wait; no other can be answered yet.
        rejected = []
        for answer in concurrent.futures.as_completed(answers, 30):
            rejected.append(answer.result())
            if len(rejected) == 14:
                may_end.set()
        assert [code for code, _ in rejected[:14]] == [503] * 14
        assert sorted(x.result()[0] for x in answers) == [200] * 3 + [503] * 14


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
