"""A server on localhost in a thread, and clients that ask it at once."""

import concurrent.futures
import contextlib
import http.client
import json
import socket
import threading

from serving import server


@contextlib.contextmanager
def running(app, max_connections: int = 61):
    """Serves; yields the port. At the end all answers have been sent."""
    with (
        socket.create_server(("127.0.0.1", 0)) as opened,
        server.Server(app, opened, max_connections) as found,
    ):
        thread = threading.Thread(target=found.serve_forever, args=[0.01])
        thread.start()
        try:
            yield opened.getsockname()[1]
        finally:
            found.shutdown()
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
