"""HTTP server with the paths of TF Serving's REST API, and metrics."""

import contextlib
import json
import logging
import signal
import socket
import threading
import time
import zlib
from collections.abc import Mapping
from typing import Any

import flask
import prometheus_client as prometheus
import waitress
from waitress import channel, task, wasyncore
from werkzeug import exceptions

from bert.common.errors import UserError
from bert.common.progress import log
from bert.inference import ranking
from bert.serving import rest, versions
from bert.serving.batch_queue import Busy
from bert.serving.settings import Settings

_DEADLINE = 30  # seconds to receive a request, and between two requests


class Metrics:
    """The metrics at /metrics, in the format of Prometheus."""

    def __init__(self):
        # The global registry would add up all servers of a process.
        self.registry = registry = prometheus.CollectorRegistry()
        self.answers = prometheus.Counter(
            "bert_answers",
            "Responses by status code.",
            ["code"],
            registry=registry,
        )

        # One series for each model.
        self.seconds = prometheus.Histogram(
            "bert_predict_seconds",
            "Seconds from request to response.",
            ["model"],
            registry=registry,
        )
        self.queue = prometheus.Histogram(
            "bert_queue_seconds",
            "Seconds from request to the start of its batch.",
            ["model"],
            registry=registry,
        )
        self.batches = prometheus.Histogram(
            "bert_batch_size",
            "Number of sequences per batch.",
            ["model"],
            buckets=[2**i for i in range(11)],
            registry=registry,
        )

    def begin(self, name: str, size: int, came: list[float]) -> None:
        """Records the start of a batch.

        Args:
            name: str. Name of the model.
            size: int. Number of sequences.
            came: list of float. Arrival time of each request that starts with
                the batch, by time.perf_counter().
        """
        self.batches.labels(name).observe(size)
        now = time.perf_counter()
        for start in came:
            self.queue.labels(name).observe(now - start)


def make_app(
    models: Mapping[str, versions.Model], settings: Settings, metrics: Metrics
) -> flask.Flask:
    """Makes the Flask application.

    Args:
        models: dict. Name in the paths -> model.
        settings: Settings. Limits of requests and batches.
        metrics: Metrics. The metrics to show.
    """
    app = flask.Flask(__name__, static_folder=None)
    app.extensions["metrics"] = metrics  # for requests that do not reach it
    most = settings.max_batch_size

    def served(name, version):
        # As in TF Serving, the version in the path is optional.
        if name not in models:
            flask.abort(404)
        found = models[name].served
        if version not in (None, found.number):
            flask.abort(404)
        return found

    def predict(name, version=None):
        queue = served(name, version).predict
        with metrics.seconds.labels(name).time():
            body = _body(settings.max_request_bytes)
            request = rest.parse(body, queue.predictor)
            count = ranking.count(request.examples)
            if count > most:
                raise UserError(f"{count} examples", expected=f"1 to {most}")

            predictions = queue(request.examples)
            return flask.Response(
                rest.to_json(predictions, request.form),
                mimetype="application/json",
            )

    def status(name, version=None):
        number = served(name, version).number
        state: dict[str, Any] = {"version": str(number), "state": "AVAILABLE"}
        state["status"] = {"error_code": "OK", "error_message": ""}
        return {"model_version_status": [state]}

    def metadata(name, version=None):
        found = served(name, version)
        spec = {"name": name, "version": str(found.number)}
        signatures = {"signature_def": {rest.DEFAULT: found.metadata}}
        return {"model_spec": spec, "metadata": {"signature_def": signatures}}

    model = "/v1/models/<name>"
    for path in (model, f"{model}/versions/<int:version>"):
        app.post(f"{path}:predict")(predict)
        app.get(path)(status)
        app.get(f"{path}/metadata")(metadata)

    @app.get("/healthz")
    def healthz():
        return {"status": "ok"}

    @app.get("/metrics")
    @app.get("/monitoring/prometheus/metrics")  # as in TF Serving
    def numbers():
        text = prometheus.generate_latest(metrics.registry)
        return flask.Response(text, content_type=prometheus.CONTENT_TYPE_LATEST)

    @app.errorhandler(404)
    @app.errorhandler(405)
    def not_found(error):
        asked = f"{flask.request.method} {flask.request.path}"
        paths = ", ".join(f"/v1/models/{name}:predict" for name in models)
        message = f"no {asked}; this server has POST {paths}"
        flask.g.cause = message
        return {"error": message}, error.code

    @app.errorhandler(Exception)
    def fail(error):
        code, message = _describe(error)
        flask.g.cause = repr(error) if code == 500 else message
        more = {"Retry-After": "1"} if code == 503 else {}
        return {"error": message}, code, more

    @app.before_request
    def start():
        flask.g.start = time.perf_counter()

    @app.after_request
    def count(response):
        code, request = response.status_code, flask.request
        metrics.answers.labels(code).inc()
        note = flask.g.get("cause")
        if note or settings.access_log:
            spent = 1000 * (time.perf_counter() - flask.g.start)
            note = note or f"in {spent:.1f} ms"
            log(f"{request.method} {request.path:.100}: {code} {note:.200}")
        return response

    return app


def _body(limit: int) -> bytes:
    """Returns the body of the request, decompressed if necessary."""
    data = flask.request.get_data()
    encoding = (flask.request.content_encoding or "identity").lower()
    if encoding == "identity":
        return data
    if encoding != "gzip":
        message = f"Content-Encoding {encoding!r:.60}; expected gzip"
        flask.abort(415, message)

    try:
        # At most the limit is decompressed; 31 means gzip.
        data = zlib.decompressobj(31).decompress(data, limit + 1)
    except zlib.error:
        raise UserError("the body is not gzip") from None

    if len(data) > limit:
        flask.abort(413)
    return data


def _describe(error: Exception) -> tuple[int, str]:
    """Returns the status code and the message of an error."""
    if isinstance(error, UserError):
        return 400, str(error)
    if isinstance(error, exceptions.HTTPException):
        return error.code or 500, error.description or error.name

    if isinstance(error, Busy):
        return 503, "the queue is full"

    return 500, "the model failed; see the log of the server"


class _Answer(task.WSGITask):
    """Response to a request; closes the connection of an ending server."""

    def build_response_header(self):
        if self.channel.server.is_over:
            self.request.headers["CONNECTION"] = "close"
        return super().build_response_header()


class _Refusal(task.ErrorTask):
    """JSON response to an invalid or too large HTTP request."""

    def execute(self):
        error = self.request.error
        self.status = f"{error.code} {error.reason}"
        self.response_headers.append(("Content-Type", "application/json"))
        self.set_close_on_finish()

        message = error.body if error.code == 400 else error.reason
        log(f"a request failed: {self.status}")
        self.channel.server.metrics.answers.labels(error.code).inc()

        body = json.dumps({"error": message}).encode()
        self.content_length = len(body)
        self.write(body)


class _Connection(channel.HTTPChannel):
    """A connection with a deadline for whole requests.

    Attributes:
        is_ending: bool. Whether the last response has been sent. The
            connection stays open until the client closes it. Otherwise more
            data of the client would reset it and lose the response.
    """

    last_activity: float
    task_class, error_task_class = _Answer, _Refusal
    is_ending = False

    def handle_read(self):
        begun, active = self.request, self.last_activity
        super().handle_read()
        if self.is_ending or (begun and self.request is begun):
            self.last_activity = active  # a partial request does not count

    def received(self, data):
        return not self.is_ending and super().received(data)

    def write_soon(self, data):
        # The client's time to read starts with the first byte to send.
        if not self.total_outbufs_len:
            self.last_activity = time.time()
        return super().write_soon(data)

    def handle_close(self):
        if self.is_ending:
            super().handle_close()
            return
        self.is_ending, self.will_close = True, False
        with contextlib.suppress(OSError):  # already closed
            self.socket.shutdown(socket.SHUT_WR)

    def drop(self):
        """Closes the connection, and discards its data."""
        self.is_ending = True
        self.handle_close()

    def is_used(self) -> bool:
        """Returns whether a request or an unsent response is left."""
        return bool(self.request or self.requests or self.total_outbufs_len)


def run(
    app, opened: socket.socket, settings: Settings, end: threading.Event
) -> None:
    """Serves until `end` is set, then answers the requests received so far.

    The shutdown takes at most `_DEADLINE` seconds, even with slow clients.

    Args:
        app: Flask. The application.
        opened: socket. The listening socket.
        settings: Settings. Limits of connections and requests.
        end: threading.Event. Checked ten times a second.
    """
    logging.getLogger("waitress").setLevel(logging.ERROR)

    # These threads can fill the queues; more threads could only wait.
    examples = settings.max_batch_size * (settings.max_queued_batches + 2)
    examples *= len(settings.models)
    sockets: dict = {}
    server = waitress.create_server(
        app,
        sockets,
        sockets=[opened],
        threads=min(settings.max_connections, examples),
        connection_limit=settings.max_connections + 2,  # two internal ones
        channel_timeout=_DEADLINE,
        cleanup_interval=1,
        max_request_body_size=settings.max_request_bytes + 1,
    )
    server.channel_class, server.is_over = _Connection, False
    server.metrics = app.extensions["metrics"]
    connections = server.active_channels

    def answer():
        wasyncore.loop(0.1, use_poll=True, map=sockets, count=1)
        limit = time.time() - _DEADLINE
        for x in [*connections.values()]:
            if x.total_outbufs_len and x.last_activity < limit:
                x.drop()  # the client does not read

    while not end.is_set():
        answer()

    wasyncore.dispatcher.close(server)  # only the port
    answer()  # reads requests that came before the end
    server.is_over = True

    # Connections are closed after their last response, or at the deadline.
    limit = time.monotonic() + _DEADLINE
    while time.monotonic() < limit and any(
        x.is_used() for x in connections.values()
    ):
        for x in connections.values():
            x.will_close |= not (x.is_used() or x.is_ending)
        server.maintenance(time.time())
        answer()

    for x in [*connections.values()]:
        x.drop()
    server.task_dispatcher.shutdown(timeout=1)  # the computing threads
    wasyncore.close_all(sockets)


def serve(
    app,
    opened: socket.socket,
    settings: Settings,
    models: Mapping[str, versions.Model],
) -> None:
    """Serves until SIGTERM, SIGHUP or Ctrl-C; a second signal ends it at once.

    Args:
        app, opened, settings: see `run`.
        models: dict. See `make_app`; their new versions are loaded.
    """
    end = threading.Event()

    def stop(*_):
        end.set()
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)

    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as nohup sets it
        numbers.append(signal.SIGHUP)
    for number in numbers:
        signal.signal(number, stop)

    watching = threading.Thread(
        target=versions.watch, args=[models.values(), end]
    )
    watching.start()
    try:
        run(app, opened, settings, end)
    finally:
        end.set()
        watching.join()
