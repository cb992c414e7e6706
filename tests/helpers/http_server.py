"""A server on localhost in a thread, and clients that ask it at once."""

import concurrent.futures
import contextlib
import http.client
import json
import socket
import threading
import types

import numpy as np

from bert.common import flags
from bert.serving.http import rest, server, versions
from bert.serving.http.settings import Settings


def settings_of(**changes) -> Settings:
    return flags.replace(Settings(), model="some/mails", **changes)


def app_of(servable, **settings):
    """An application whose version 7 of `mails` is a servable."""
    model = types.SimpleNamespace(served=versions.Served(7, servable))
    metrics = server.Metrics()
    return server.make_app({"mails": model}, settings_of(**settings), metrics)


class Stalled:
    """A model that answers when it may, behind its own queue."""

    signatures = {rest.DEFAULT: {"text": rest.Spec(np.dtype(object), (None,))}}

    def __init__(self):
        self.started, self.may_end = threading.Semaphore(0), threading.Event()

    def call(self, signature, arrays):
        self.started.release()
        assert self.may_end.wait(300)
        return {"text": arrays["text"]}


@contextlib.contextmanager
def running(app, **settings):
    """Serves; yields the port. At the end all answers have been sent."""
    with socket.create_server(("127.0.0.1", 0)) as opened:
        end = threading.Event()
        values = settings_of(**settings)
        thread = threading.Thread(
            target=server.run, args=[app, opened, values, end]
        )
        thread.start()
        try:
            yield opened.getsockname()[1]
        finally:
            end.set()
            thread.join()  # it waits for the answers


def ask(port: int, path: str, body=None) -> tuple[int, dict | str]:
    """Sends a request; returns the status and the answer.

    Args:
        port: of the server on localhost.
        path: of the request.
        body: value to send as JSON, bytes to send as they are, or None.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    with contextlib.closing(connection):
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection.request("GET" if body is None else "POST", path, body)
        answer = connection.getresponse()
        text = answer.read().decode()
        is_json = answer.getheader("Content-Type") == "application/json"
        return answer.status, json.loads(text) if is_json else text


def ask_all(port: int, path: str, bodies: list) -> list[tuple[int, dict]]:
    """Sends requests at once; returns their answers in order."""
    with concurrent.futures.ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(lambda body: ask(port, path, body), bodies))
