"""Models by name, and versions that appear while requests come."""

import concurrent.futures
import contextlib
import os
import re
import shutil
import threading
import time

import pytest

from benchmarks.soak import resident_mb
from bert.common.errors import UserError
from bert.modeling.engines import openvino_engine
from bert.serving import server, versions
from tests.helpers import http_server
from tests.helpers.http_server import opened
from tests.helpers.predictors import predictor_of

BODY = {"instances": ["a"]}


class File:
    """In the place of `Predictor`: the answer is the weights' file."""

    @classmethod
    def open(cls, folder, engine):
        path = os.path.join(folder, openvino_engine.WEIGHTS)
        if not os.path.exists(path):
            raise UserError("no such file", path=path)
        with open(path, encoding="utf-8") as file:
            answer = file.read()
        if answer == "odd":
            raise KeyError("logits")
        stalls, may_end = threading.Event(), threading.Event()

        def predict(example):
            if example["text"] == "stall":
                stalls.set()
                assert may_end.wait(300)
            return {"text": answer}

        predictor = predictor_of(predict)
        predictor.answer = answer
        predictor.stalls, predictor.may_end = stalls, may_end
        return predictor


def served(model):
    """The predictor of a model's version."""
    return model.served.predict.predictor


@pytest.fixture
def write(tmp_path, monkeypatch):
    """A function that writes a version of a model of `File`s."""
    monkeypatch.setattr(versions, "Predictor", File)

    def write(name, answer=None):
        folder = tmp_path / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / openvino_engine.FILE).touch()
        if answer:
            (folder / openvino_engine.WEIGHTS).write_text(answer)

    return write


def test_a_version_is_tried_once_its_files_have_settled(
    write, tmp_path, capsys
):
    """Half of a copy is not taken, and is tried again when it has changed."""
    write("mails/1", "one")
    models, _ = opened(tmp_path / "mails")
    model = models["mails"]

    def look(expected, warnings=0):
        capsys.readouterr()
        model.refresh()
        assert served(model).answer == expected
        assert capsys.readouterr().err.count("warning: ") == warnings

    look("one")
    write("mails/2")
    look("one")
    look("one", warnings=1)
    look("one")
    write("mails/2", "two")
    look("one")
    look("two")
    assert model.served.number == 2

    # Without the newest version the one before it answers, as at the start.
    (tmp_path / "mails/2").rename(tmp_path / "aside")
    look("two")
    look("one")
    (tmp_path / "aside").rename(tmp_path / "mails/2")
    look("one")
    look("two")
    shutil.rmtree(tmp_path / "mails")
    look("two")
    look("two", warnings=1)


def test_a_version_that_fails_in_any_way_is_named(write, tmp_path, capsys):
    """Before, errors that are no mistake of the user ended the server."""
    write("mails/1", "one")
    write("mails/2", "odd")
    models, _ = opened(tmp_path / "mails")
    model = models["mails"]
    warning = f"warning: {tmp_path / 'mails/2'}: KeyError('logits')"
    assert model.served.number == 1 and warning in capsys.readouterr().err
    for _ in range(2):
        model.refresh()
    assert model.served.number == 1 and warning in capsys.readouterr().err
    shutil.rmtree(tmp_path / "mails/1")
    with pytest.raises(UserError, match="mails/2: KeyError"):
        opened(tmp_path / "mails")


def test_a_new_version_returns_the_memory_of_the_one_before(write, tmp_path):
    write("mails/1", "one")
    models, _ = opened(tmp_path / "mails")
    model = models["mails"]
    # Each is of many pages: holes between small objects would not be returned.
    held = [b"x" * 100_003 for _ in range(1009)]
    kept = held[::97]  # between which glibc would keep what is freed
    served(model).held = held
    del held

    write("mails/2", "two")
    model.refresh()
    before = resident_mb(os.getpid())
    model.refresh()
    assert served(model).answer == "two" and kept
    assert resident_mb(os.getpid()) < before - 80


def test_a_new_version_fails_no_request(write, tmp_path, monkeypatch):
    """Not those that come meanwhile, nor one that the old one computes."""
    monkeypatch.setattr(versions, "_SECONDS", 0.01)
    write("mails/1", "one")
    models, app = opened(tmp_path / "mails")
    model, end = models["mails"], threading.Event()
    first, has_begun = served(model), threading.Semaphore(0)

    def ask_until_the_second(port):
        answers = []
        limit = time.monotonic() + 60
        while answers[-1:] != [two] and time.monotonic() < limit:
            code, answer = http_server.ask(
                port, "/v1/models/mails:predict", BODY
            )
            answers.append(answer["predictions"] if code == 200 else code)
            has_begun.release()
        return answers

    one, two = [{"text": "one"}], [{"text": "two"}]
    with (
        concurrent.futures.ThreadPoolExecutor(7) as pool,
        http_server.running(app) as port,
        contextlib.ExitStack() as after,
    ):
        after.callback(end.set)
        after.callback(first.may_end.set)
        watching = pool.submit(versions.watch, models.values(), end)
        clients = [pool.submit(ask_until_the_second, port) for _ in range(5)]
        for _ in range(11):
            has_begun.acquire()
        stalled = pool.submit(
            http_server.ask,
            port,
            "/v1/models/mails/versions/1:predict",
            {"instances": ["stall"]},
        )
        assert first.stalls.wait(60)
        write("mails/2")
        write("mails/2", "two")
        while model.served.number == 1:
            time.sleep(0.01)
        first.may_end.set()
        answers = [client.result() for client in clients]
        assert stalled.result() == (200, {"predictions": one})
        old = http_server.ask(port, "/v1/models/mails/versions/1")
        end.set()
        watching.result()
    for own in answers:
        assert own == [one] * (len(own) - 1) + [two]
    assert old[0] == 404


def test_models_answer_by_their_names(write, tmp_path, capsys):
    write("mails/1", "one")
    write("other/5", "five")
    folders = tmp_path / "mails", f"sports games={tmp_path / 'other'}"
    _, app = opened(*folders, access_log=True)
    client = app.test_client()
    names = {"mails": "one", "sports games": "five"}
    for name, answer in names.items():
        found = client.post(f"/v1/models/{name}:predict", json=BODY)
        assert found.json == {"predictions": [{"text": answer}]}
        line = rf"POST /v1/models/{name}:predict: 200 in \d+\.\d ms"
        assert re.fullmatch(line, capsys.readouterr().err.splitlines()[-1])
    path = "/v1/models/sports%20games/versions/5"
    assert client.get(path).status_code == 200
    error = client.get("/v1/models/mails:predict").json["error"]
    assert error == (
        "no GET /v1/models/mails:predict; this server has POST "
        "/v1/models/mails:predict, /v1/models/sports games:predict"
    )
    text = client.get("/metrics").text
    assert 'bert_predict_seconds_count{model="sports games"} 1.0' in text


def test_the_queue_is_measured_by_request():
    metrics, now = server.Metrics(), time.perf_counter()
    metrics.begin("mails", 3, [now - 3, now - 5])
    value = metrics.registry.get_sample_value
    of_mails = {"model": "mails"}
    assert value("bert_batch_size_sum", of_mails) == 3
    assert value("bert_queue_seconds_count", of_mails) == 2
    assert value("bert_queue_seconds_sum", of_mails) == pytest.approx(8, abs=1)
