"""Requests over HTTP: TF Serving's paths, batches, limits, mistakes."""

import base64
import concurrent.futures
import gc
import gzip
import json
import os
import threading
import weakref

import numpy as np
import pytest
import tensorflow as tf

from bert.modeling.formats import saved_models
from bert.serving.http import rest, servable
from bert.serving.http.settings import Settings
from tests.helpers import http_server
from tests.helpers.classifier_files import shared_export

pytestmark = pytest.mark.slow
TEXTS = [f"the {x} sees a dog" for x in ("cat", "bird", "fish", "old tree")]
TEXTS += ["", "zzz", "the warm river and the small house under a green tree"]
PREDICT = "/v1/models/mails:predict"
TOKENS = ("input_ids", "input_mask", "segment_ids")
TOKENS_BODY = (
    b'{"signature_name": "tokens", "inputs": {"input_ids": [[%s]], '
    b'"input_mask": [[1]], "segment_ids": [[0]]}}'
)
WRONG_ID = {name: [2, 5003, 3] for name in TOKENS} | {"segment_ids": [0] * 3}


def settings_of(**changes) -> Settings:
    return http_server.settings_of(**{"max_batch_size": 5} | changes)


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    return shared_export(tmp_path_factory)


@pytest.fixture(scope="module")
def signatures(export):
    return tf.saved_model.load(export).signatures


@pytest.fixture(scope="module")
def model(export):
    """A servable, and when the examples of its batches came."""
    batches = []
    settings = settings_of(max_delay_ms=20.0, max_queued_batches=89)
    return servable.Servable(export, settings, batches.append), batches


@pytest.fixture
def client(model):
    return client_of(model[0])


def client_of(model, **changes):
    return app_of(model, **changes).test_client()


def app_of(model, **changes):
    return http_server.app_of(model, **{"max_batch_size": 5} | changes)


def test_rows_and_columns_are_answered_as_by_the_bare_model(client, signatures):
    bare = signatures["serving_default"](text=tf.constant(TEXTS[:5]))
    rows = client.post(PREDICT, json={"instances": TEXTS[:5]}).json
    named = [{"text": text} for text in TEXTS[:5]]
    path = "/v1/models/mails/versions/7:predict"
    assert client.post(path, json={"instances": named}).json == rows
    columns = client.post(PREDICT, json={"inputs": {"text": TEXTS[:5]}}).json
    found = columns["outputs"]
    assert found.keys() == {"label", "label_names", "probabilities"}
    for name, values in found.items():
        assert [row[name] for row in rows["predictions"]] == values
    assert found["label_names"] == [["no", "yes", "maybe"]] * 5
    expected = bare["label"].numpy().tolist()
    assert found["label"] == [x.decode() for x in expected]
    np.testing.assert_allclose(
        found["probabilities"], bare["probabilities"], atol=1e-5
    )


def test_a_first_call_comes_before_requests_and_is_quiet(
    export, monkeypatch, capfd
):
    """TensorFlow writes notes on a graph when it is first called."""
    batched, calls = servable._batched, []

    def batched_loudly(*given):
        quiet = batched(*given)

        def loud(came, tensors):
            os.write(2, b"E0000 noise\n")
            calls.append([x.numpy().tolist() for x in tensors.values()])
            return quiet(came, tensors)

        return loud

    monkeypatch.setattr(servable, "_batched", batched_loudly)
    batches = []
    model = servable.Servable(export, settings_of(), batches.append)
    assert (calls, batches) == ([[[b""]]], [])
    assert "noise" not in capfd.readouterr().err
    texts = {"text": np.array([b"a", b"b"], object)}
    model.call(rest.DEFAULT, texts)
    assert [len(x) for x in batches] == [2]

    # Its memory is freed when another version replaces it.
    reference = weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None


def test_an_export_needs_one_operation_of_tensorflow_text(export):
    """As docs/production.md says for images of TF Serving."""
    (meta,) = saved_models.read_proto(export).meta_graphs
    operations = {node.op for node in saved_models.nodes(meta)}
    others = {x for x in operations if not hasattr(tf.raw_ops, x)}
    assert others == {"FastWordpieceTokenizeWithOffsets"}


def test_bytes_and_numbers_reach_other_signatures(client, signatures):
    ids = {name: [2, 7, 3] for name in TOKENS}
    ids |= {"input_mask": [1, 1, 1], "segment_ids": [0, 0, 0]}
    example = tf.train.Example()
    for name, values in ids.items():
        example.features.feature[name].int64_list.value.extend(values)
    b64 = base64.b64encode(example.SerializeToString()).decode()
    answers = [
        client.post(PREDICT, json={"signature_name": name, "instances": [x]})
        for name, x in (("tokens", ids), ("examples", {"b64": b64}))
    ]
    first, second = (x.json["predictions"][0] for x in answers)
    assert first == second
    bare = signatures["tokens"](**{k: tf.constant([v]) for k, v in ids.items()})
    np.testing.assert_allclose(
        first["probabilities"], bare["probabilities"][0], atol=1e-5
    )


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (b"{'a'", "JSON is malformed"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"instances": ' + b"[" * 300 + b"]" * 300 + b"}", "text is"),
        (b"[1]", '"instances" or "inputs"'),
        (b'{"instances": []}', "0 examples"),
        (b'{"inputs": {"other": ["a"]}}', "expected text"),
        (b'{"instances": ["a", 1]}', "text is ['a', 1]"),
        (b'{"instances": [["a"]]}', "string of shape"),
        (b'{"instances": "a"}', "instances is a str; expected a list"),
        (rb'{"instances": ["\ud83d"]}', "Input data was truncated"),
        (b'{"instances": [{"b64": "?"}]}', "text is"),
        (b'{"instances": ["a"], "signature_name": ["x"]}', "one of"),
        (b'{"instances": ["a", "a", "a", "a", "a", "a"]}', "6 examples"),
        (b'{"instances": ["a"], "signature_name": "tokens"}', "input_ids"),
        (
            b'{"signature_name": "tokens", "inputs": {"input_ids": [[1]], '
            b'"input_mask": [[1], [1]], "segment_ids": [[0]]}}',
            "1 and 2 examples",
        ),
        (TOKENS_BODY % b"9999", "9999 is not in [0, "),
        (TOKENS_BODY % b"1.5", "input_ids is [[1.5]]"),
        (TOKENS_BODY % b"4294967301", "input_ids is [[4294967301]]"),
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


def test_a_body_may_be_compressed_and_name_no_signature(model):
    """As for TF Serving."""
    client = client_of(model[0], max_request_bytes=300)
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
            headers={"Content-Encoding": "gzip"},
        )
        assert answer.status_code == code
        assert answer.json == expected if code == 200 else answer.json["error"]
    answer = client.post(
        PREDICT, data=body, headers={"Content-Encoding": "gzip"}
    )
    assert (answer.status_code, answer.json["error"]) == (
        400,
        "the body is not gzip",
    )


def test_other_paths_and_methods_are_answered_in_json(client):
    for path, code in (
        ("/v1/models/other:predict", 404),
        ("/v1/models/mails/versions/8:predict", 404),
        ("/v1/models/mails", 405),
    ):
        answer = client.post(path, json={"instances": ["a"]})
        assert (answer.status_code, list(answer.json)) == (code, ["error"])
        named = f"no POST {path}; this server has POST {PREDICT}"
        assert code == 405 or named == answer.json["error"]


def test_state_signatures_and_metrics_are_reported(client):
    (state,) = client.get("/v1/models/mails").json["model_version_status"]
    assert (state["version"], state["state"]) == ("7", "AVAILABLE")
    found = client.get("/v1/models/mails/versions/7/metadata").json
    assert found["model_spec"] == {"name": "mails", "version": "7"}
    described = found["metadata"]["signature_def"]["signature_def"]
    assert described.keys() == {"serving_default", "tokens", "examples"}
    inputs = described["serving_default"]["inputs"]
    assert inputs["text"]["dtype"] == "DT_STRING"
    assert inputs["text"]["tensor_shape"]["dim"] == [{"size": "-1"}]
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


def test_requests_at_once_share_batches_and_none_spoils_another(
    model, signatures
):
    """Nothing is lost or mixed up, with a failing one in many batches."""
    served, batches = model
    batches.clear()
    texts = [TEXTS[i % len(TEXTS)] for i in range(41)]
    bodies = [{"instances": [text]} for text in texts]
    good = {name: [2, 7, 3] for name in TOKENS} | {"segment_ids": [0] * 3}
    for number in range(0, 41, 4):
        ids = good if number % 8 else WRONG_ID
        bodies[number] = {"signature_name": "tokens", "instances": [ids]}
    bodies[1] = b'{"instances": [3]}'
    with http_server.running(app_of(served)) as port:
        answers = http_server.ask_all(port, PREDICT, bodies)
    bare = signatures["serving_default"](text=tf.constant(texts))
    of_ids = signatures["tokens"](**{k: [v] for k, v in good.items()})
    for number, (code, answer) in enumerate(answers):
        if number == 1 or number % 8 == 0:
            assert (code, list(answer)) == (400, ["error"])
            continue
        (found,) = answer["predictions"]
        expected = bare["probabilities"][number]
        if number % 4 == 0:
            expected = of_ids["probabilities"][0]
        np.testing.assert_allclose(found["probabilities"], expected, atol=1e-5)
    came = max(batches, key=len)  # TensorFlow's queue has batched them
    assert len(came) == len({*came.tolist()}) == 5


def test_a_full_queue_is_answered_by_503(export):
    """The queue of TensorFlow is bounded; the model stalls on purpose."""
    may_end, started = threading.Event(), threading.Event()

    def stall(size):
        started.set()
        assert may_end.wait(30)

    settings = settings_of(max_batch_size=1, max_queued_batches=2)
    app = app_of(servable.Servable(export, settings, stall))
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


def test_an_answer_that_is_not_finite_is_an_error_of_the_server(capsys):
    class Broken:
        signatures = http_server.Stalled.signatures

        def call(self, signature, tensors):
            return {"value": np.array([np.nan], np.float32)}

    answer = client_of(Broken()).post(PREDICT, json={"instances": ["a"]})
    assert answer.status_code == 500
    assert "log" in answer.json["error"]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"POST {PREDICT}: 500 ") and "JSON comp" in line


def test_lists_have_no_padding_of_other_requests():
    words = np.array([[b"a", b"b", b"", b""], [b"c", b"", b"", b""]])
    outputs = dict.fromkeys(("words", "labels"), words)
    outputs |= dict.fromkeys(("word_starts", "word_ends"), np.ones((2, 4)))
    outputs["probabilities"] = np.ones((2, 4), np.float32)
    request = rest.Request("", {}, "inputs", 2, [])
    found = json.loads(rest.to_json(outputs, request))["outputs"]
    assert found["words"] == [["a", "b"], ["c", ""]]
    assert found["probabilities"] == [[1, 1], [1, 1]]


def test_bytes_that_are_no_text_are_written_in_base64():
    request = rest.Request("", {}, "instances", 1, [])
    found = rest.to_json({"x": np.array([b"\xff"], object)}, request)
    assert json.loads(found) == {"predictions": [{"b64": "/w=="}]}
