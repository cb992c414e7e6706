"""Connections of the server: mistakes, slow clients, limits, its end."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import re
import select
import signal
import socket
import threading
import time
from unittest import mock

import pytest
from waitress import adjustments

from bert.serving import server
from tests.helpers import http_server, threads
from tests.helpers.http_server import app_of
from tests.helpers.predictors import Stalled, predictor_of

pytestmark = pytest.mark.slow
PREDICT = "/v1/models/mails:predict"


def test_a_connection_above_the_limit_waits():
    model = Stalled()
    body = {"instances": ["a"]}
    with (
        http_server.running(app_of(model), max_connections=3) as port,
        contextlib.ExitStack() as end,
    ):
        end.callback(model.may_end.set)
        answers = [
            threads.start(http_server.ask, port, PREDICT, body)
            for _ in range(4)
        ]
        begun = [model.started.acquire(timeout=10) for _ in range(3)]
        assert all(begun) and not model.started.acquire(timeout=0.2)
        model.may_end.set()
        assert [threads.result(x)[0] for x in answers] == [200] * 4


def test_the_second_signal_has_its_default_handler(monkeypatch):
    """It ends the process, whatever a client does; nohup's SIGHUP does not."""
    numbers, handlers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP), []
    before = [signal.getsignal(number) for number in numbers]

    def run(app, opened, settings, end):
        os.kill(os.getpid(), signal.SIGTERM)
        assert end.wait(30)
        handlers.extend(map(signal.getsignal, numbers))

    monkeypatch.setattr(server, "run", run)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        server.serve(None, None, None, {})
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)
    assert handlers == [signal.SIG_DFL, signal.SIG_DFL, signal.SIG_IGN]


def test_the_end_waits_for_a_client_that_still_reads():
    size, begun = 30_000_000, threading.Event()
    queue = http_server.queue_of(predictor_of(lambda _: {"x": "y" * size}))

    def read(port):
        body = b'{"instances": ["a"]}'
        head = f"POST {PREDICT} HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(head.encode() + body)
            count = len(client.recv(1))
            begun.set()
            time.sleep(0.3)
            while part := client.recv(1 << 20):
                count += len(part)
        return count

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with http_server.running(app_of(queue)) as port:
            count = pool.submit(read, port)
            assert begun.wait(60)
        assert count.result() > size


def test_the_end_is_the_last_answer_of_a_connection():
    """Else clients that keep theirs busy would have answers for ever."""
    model, has_begun = Stalled(), threading.Event()

    def ask_until_the_end(port):
        answers = 0
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        with contextlib.suppress(OSError, http.client.HTTPException):
            while answers < 20_000:
                client.request("GET", "/healthz")
                client.auto_open = 0  # it must not connect again
                answer = client.getresponse()
                answer.read()
                has_begun.set()
                answers += 1
        model.may_end.set()
        return answers

    def ask_once(port):
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        client.request("POST", PREDICT, b'{"instances": ["a"]}')
        answer = client.getresponse()
        return answer.read(), answer.headers["Connection"]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        with http_server.running(app_of(model)) as port:
            answer = pool.submit(ask_once, port)
            model.started.acquire()
            answers = pool.submit(ask_until_the_end, port)
            has_begun.wait()
        assert answers.result() < 20_000
        assert answer.result() == (b'{"predictions": [{"text": "a"}]}', "close")


def test_the_end_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(server, "_DEADLINE", 1)
    model = Stalled()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with http_server.running(app_of(model)) as port:
            body = {"instances": ["a"]}
            answer = pool.submit(http_server.ask, port, PREDICT, body)
            model.started.acquire()
        assert isinstance(answer.exception(), http.client.RemoteDisconnected)
        model.may_end.set()


def test_a_client_that_does_not_read_is_disconnected(monkeypatch):
    monkeypatch.setattr(server, "_DEADLINE", 1)
    with (
        socket.socket() as client,
        http_server.running(app_of(Stalled())) as port,
    ):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        client.settimeout(0.5)
        with pytest.raises(TimeoutError):
            while True:
                client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n" * 1000)
        end = select.poll()
        end.register(client, 0)  # for errors only
        assert end.poll(30_000)


def test_a_slow_answer_is_not_taken_for_a_client_that_does_not_read():
    """The time to read it begins when it is there, and not anew."""
    one, other = socket.socketpair()
    with other:
        of, limits = mock.MagicMock(), adjustments.Adjustments()
        connection = server._Connection(of, one, "", limits, {})
        times = []
        connection._flush_some = lambda **_: times.append(
            connection.last_activity
        )
        for _ in range(2):
            connection.last_activity = 0
            connection.write_soon(b"answer")
        connection.drop()
        connection.drop()
    assert times[0] > 0 and times[1] == 0


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: abc\r\n\r\n", 400),
        (
            b"POST / HTTP/1.1\r\nContent-Length: 5\r\n"
            b"Content-Length: 6\r\n\r\n",
            400,
        ),
        (b"garbage\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA: " + b"a" * (1 << 20) + b"\r\n\r\n", 431),
        (
            b"POST / HTTP/1.1\r\nContent-Length: 8000000\r\n\r\n"
            + b"a" * 8000000,
            413,
        ),
    ],
)
def test_what_is_no_request_is_answered_in_json_and_disconnected(
    request_, code, capsys
):
    with (
        http_server.running(app_of(Stalled())) as port,
        socket.create_connection(("127.0.0.1", port), timeout=30) as client,
    ):
        client.sendall(request_)
        answer = client.makefile("rb").read()  # up to the server's end
        text = http_server.ask(port, "/metrics")[1]
    head, _, body = answer.partition(b"\r\n\r\n")
    assert re.match(rb"HTTP/1.. %d " % code, head)
    assert list(json.loads(body)) == ["error"]
    assert f"a request failed: {code} " in capsys.readouterr().err
    assert f'bert_answers_total{{code="{code}"}} 1.0' in text.splitlines()


def test_a_body_may_have_exactly_the_size_of_the_limit():
    model, limit = Stalled(), {"max_request_bytes": 300}
    model.may_end.set()
    body = b'{"instances": ["a"]}'
    with http_server.running(app_of(model, **limit), **limit) as port:
        for size, code in ((300, 200), (301, 413)):
            answer = http_server.ask(port, PREDICT, body.ljust(size))
            assert answer[0] == code


@pytest.mark.parametrize(
    "start",
    [
        b"GET / HTTP/1.1\r\nA: ",
        b"POST / HTTP/1.1\r\nContent-Length: 99\r\n\r\n",
    ],
)
def test_a_client_that_drips_is_disconnected_and_delays_nobody(
    start, monkeypatch
):
    """Also at the end of the server."""
    monkeypatch.setattr(server, "_DEADLINE", 1)
    with (
        http_server.running(app_of(Stalled())) as port,
        contextlib.ExitStack() as clients,
    ):
        address = ("127.0.0.1", port)
        others = [
            clients.enter_context(socket.create_connection(address))
            for _ in range(200)
        ]
        for client in others:
            client.sendall(start)
        assert http_server.ask(port, "/healthz")[0] == 200
        drip(others[0])
        last = clients.enter_context(socket.create_connection(address))
        last.sendall(start)
        assert http_server.ask(port, "/healthz")[0] == 200
        pool = clients.enter_context(concurrent.futures.ThreadPoolExecutor(1))
        ended = pool.submit(drip, last)
    ended.result()


def drip(client: socket.socket) -> None:
    """Sends a byte each 50 ms until the server ends the connection."""
    for _ in range(90):
        if select.select([client], [], [], 0.05)[0]:
            with contextlib.suppress(ConnectionError):
                assert client.recv(1) == b""
            return
        client.send(b"a")
    pytest.fail("the connection is still open")
