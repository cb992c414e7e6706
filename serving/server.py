"""HTTP by the paths of TF Serving's REST API, with health and metrics."""

import contextlib
import logging
import signal
import socket
import threading
import time

import flask
import prometheus_client as prometheus
import tensorflow as tf
from werkzeug import exceptions, serving

from common.errors import UserError
from common.progress import say
from serving import rest
from serving.servable import Servable
from serving.server_settings import Settings

_SILENCE = 30  # seconds after which a silent client is disconnected
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n\r\n"
_RETRY = {429, 503}
# Starts of the lines of a graph's error that do not name its cause.
_FRAMES = (
    "Graph execution",
    "Detected at node",
    "<stack",
    "[[",
    "File",
    "Hint",
)


class RateLimit:
    """A limit of examples per second; those of one second may come at once.

    Args:
        rate: examples per second, such as 0.5, one in two seconds; 0: no
            limit.

    Attributes:
        most: examples that may come at once.
    """

    def __init__(self, rate: float):
        self._rate, self.most = rate, max(rate, 1.0)
        self._left = self.most
        self._time, self._lock = time.monotonic(), threading.Lock()

    def admits(self, size: int) -> bool:
        """Counts `size` examples, or returns False if they exceed the limit."""
        if not self._rate:
            return True
        with self._lock:
            now = time.monotonic()
            left = self._left + (now - self._time) * self._rate
            self._left, self._time = min(left, self.most), now
            is_admitted = size <= self._left
            self._left -= size * is_admitted
            return is_admitted


class Metrics:
    """The numbers at /metrics."""

    def __init__(self):
        self.registry = own = prometheus.CollectorRegistry()
        self.answers = prometheus.Counter(
            "bert_answers", "Answers by status.", ["code"], registry=own
        )
        self.seconds = prometheus.Histogram(
            "bert_predict_seconds", "Request to answer.", registry=own
        )
        self.batches = prometheus.Histogram(
            "bert_batch_size",
            "Examples of a batch.",
            buckets=[2**i for i in range(11)],
            registry=own,
        )


def make_app(
    model: Servable, version: int, settings: Settings, metrics: Metrics
) -> flask.Flask:
    """Makes the application.

    Args:
        model: answers requests.
        version: its number.
        settings: the name and the limits.
        metrics: the numbers to show.
    """
    app = flask.Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_request_bytes
    rate = RateLimit(settings.max_examples_per_second)
    most, name = settings.max_batch_size, settings.name
    if settings.max_examples_per_second:
        most = min(most, int(rate.most))

    @metrics.seconds.time()
    def predict():
        request = rest.parse(flask.request.get_data(), model.signatures)
        if request.size > most:
            raise UserError(f"{request.size} examples", expected=f"1 to {most}")
        if not rate.admits(request.size):
            flask.abort(429, "too many examples per second")
        outputs = model.call(request.signature, request.tensors)
        return flask.Response(
            rest.to_json(outputs, request.form), mimetype="application/json"
        )

    def status():
        state = {"version": str(version), "state": "AVAILABLE"}
        state["status"] = {"error_code": "OK", "error_message": ""}
        return {"model_version_status": [state]}

    def metadata():
        spec = {"name": name, "version": str(version)}
        signatures = {"signature_def": model.metadata}
        return {"model_spec": spec, "metadata": {"signature_def": signatures}}

    paths = [f"/v1/models/{name}", f"/v1/models/{name}/versions/{version}"]
    for path in paths:
        app.post(f"{path}:predict")(predict)
        app.get(path)(status)
        app.get(f"{path}/metadata")(metadata)

    @app.get("/healthz")
    def healthz():
        return {"status": "ok"}

    @app.get("/metrics")
    def numbers():
        text = prometheus.generate_latest(metrics.registry)
        return flask.Response(text, content_type=prometheus.CONTENT_TYPE_LATEST)

    @app.errorhandler(404)
    def not_found(error):
        path = flask.request.path
        return {"error": f"no {path}; this server has {paths[0]}:predict"}, 404

    @app.errorhandler(Exception)
    def fail(error):
        code, message = _describe(error)
        more = {"Retry-After": "1"} if code in _RETRY else {}
        return {"error": message}, code, more

    @app.after_request
    def count(response):
        metrics.answers.labels(response.status_code).inc()
        return response

    return app


def _describe(error: Exception) -> tuple[int, str]:
    """The status and the message of an error."""
    if isinstance(error, UserError):
        return 400, str(error)
    if isinstance(error, exceptions.HTTPException):
        return error.code, error.description
    if isinstance(error, tf.errors.InvalidArgumentError):
        lines = (line.strip() for line in error.message.split("\n"))
        told = (x for x in lines if x and not x.startswith(_FRAMES))
        return 400, next(told, "the model rejects it")
    if isinstance(error, tf.errors.UnavailableError):
        return 503, "the queue is full"
    say(f"warning: a request failed: {error!r}")
    return 500, "the model failed; see the log of the server"


class _Handler(serving.WSGIRequestHandler):
    """A connection; of a client that has sent a request."""

    timeout = _SILENCE

    def parse_request(self):
        self.server.silent.discard(self.connection)
        return super().parse_request()


class Server(serving.ThreadedWSGIServer):
    """A thread for each connection, up to a limit.

    Args:
        app: the application.
        opened: the socket that listens.
        max_connections: maximum number of connections at the same time.

    Attributes:
        silent: connections that have not sent a request; the end of the
            server does not wait for one.
    """

    daemon_threads = False  # server_close waits for their answers

    def __init__(self, app, opened: socket.socket, max_connections: int):
        host, port, *_ = opened.getsockname()
        self.silent: set[socket.socket] = set()
        super().__init__(host, port, app, _Handler, fd=opened.fileno())
        self._free = threading.Semaphore(max_connections)

    def verify_request(self, request, client_address):
        """Answers connections above the limit."""
        is_free = self._free.acquire(blocking=False)
        if is_free:
            self.silent.add(request)
        else:
            with contextlib.suppress(OSError):  # it may have gone already
                request.settimeout(0.05)
                request.sendall(_BUSY)
                request.shutdown(socket.SHUT_WR)
                for _ in range(64):  # what is not read would reset it
                    if not request.recv(1 << 16):
                        break
        return is_free

    def process_request_thread(self, request, client_address):
        """Answers a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.silent.discard(request)
            self._free.release()

    def server_close(self):
        """Closes silent connections, and waits for the answers to others."""
        for request in self.silent.copy():
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RD)
        super().server_close()


def serve(app, opened: socket.socket, max_connections: int) -> None:
    """Serves until SIGTERM or Ctrl-C, then answers the requests it has.

    Args:
        app: the application.
        opened: the socket that listens.
        max_connections: maximum number of connections at once.
    """
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: end.set())
    with Server(app, opened, max_connections) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.1])
        thread.start()
        end.wait()
        server.shutdown()
        thread.join()  # it waits for the answers
