"""A server on localhost in a thread."""

import contextlib
import dataclasses
import functools
import http.client
import json
import socket
import threading
import types
from collections.abc import Callable

from bert.inference.predictor import Predictor
from bert.serving import rest, server, versions
from bert.serving.batch_queue import BatchQueue
from bert.serving.settings import Settings


def settings_of(**changes) -> Settings:
    return dataclasses.replace(Settings(), **{"model": "some/mails"} | changes)


def app_of(queue: Callable, **settings):
    """An application whose version 7 of `mails` answers by a queue.

    Args:
        queue: a `BatchQueue`, or what stands in its place.
        **settings: of the application.
    """
    metadata = rest.metadata_of(queue.predictor)
    model = types.SimpleNamespace(served=versions.Served(7, queue, metadata))
    metrics = server.Metrics()
    return server.make_app({"mails": model}, settings_of(**settings), metrics)


def opened(*folders, **settings):
    """Models by name, and their application.

    Args:
        *folders: of the models, or name=folder.
        **settings: of the application.
    """
    values = settings_of(**{"model": ",".join(map(str, folders))} | settings)
    metrics = server.Metrics()
    models = {}
    for name, folder in values.models:
        models[name] = versions.Model(folder, values)
        models[name].open(functools.partial(metrics.begin, name))
    return models, server.make_app(models, values, metrics)


def queue_of(predictor: Predictor, on_batch=lambda *_: None, **settings):
    """A queue in front of a predictor; `settings` limit it."""
    return BatchQueue(predictor, settings_of(**settings), on_batch)


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
