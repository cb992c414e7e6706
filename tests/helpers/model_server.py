"""A server on localhost with the protocol of Hugging Face, and of files."""

import contextlib
import hashlib
import http.server
import json
import pathlib
import re
import socket
import struct
import sys
import threading

_HUB = re.compile(r"/(?:api/models/)?(.+?)/(revision|tree|resolve)/(\w+)/?(.*)")


class ModelServer(http.server.ThreadingHTTPServer):
    """Serves folders by the names of models, and bytes by their paths.

    Attributes:
        models: name -> folder.
        files: path, such as "/bert/4" -> bytes.
        faults: part of a path -> status to answer, 401 without a token only;
            "cut" or "reset": half of the file is sent.
        asked: paths of the requests.
    """

    def __init__(self, models=(), files=()):
        super().__init__(("127.0.0.1", 0), _Answer)
        self.models, self.files = dict(models), dict(files)
        self.faults, self.asked = {}, []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def commit(self, model: str) -> str:
        """The only revision of a model: a hash of its files."""
        contents = [x.read_bytes() for _, x in files_of(self.models[model])]
        return hashlib.sha1(b"".join(contents)).hexdigest()


def files_of(folder: pathlib.Path) -> list[tuple[str, pathlib.Path]]:
    """Names and paths of the files of a model, also in folders of it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return [(str(path.relative_to(folder)), path) for path in files]


@contextlib.contextmanager
def serving(monkeypatch, caches: pathlib.Path, models=(), files=()):
    """Serves; the clients of this process fetch from here into `caches`."""
    with serve(models, files) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        for name in ("HF_HOME", "TFHUB_CACHE_DIR"):
            monkeypatch.setenv(name, str(caches / name))
        forget_settings(monkeypatch)
        yield server


@contextlib.contextmanager
def serve(models=(), files=()):
    """Serves folders by the names of models, and bytes by their paths."""
    with ModelServer(models, files) as server:
        threading.Thread(target=server.serve_forever, args=[0.01]).start()
        try:
            yield server
        finally:
            server.shutdown()


def forget_settings(monkeypatch):
    """The next import of huggingface_hub reads the environment again."""
    for name in [x for x in sys.modules if x.startswith("huggingface_hub")]:
        monkeypatch.delitem(sys.modules, name)


class _Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        faults = self.server.faults.items()
        fault = next((x for part, x in faults if part in self.path), None)
        status, headers, content = self._answer(self.path.partition("?")[0])
        is_answer = isinstance(fault, int)
        if is_answer and (fault != 401 or not self.headers["Authorization"]):
            status, headers, content = fault, {}, b""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if fault in ("cut", "reset"):  # in the middle, and again at once
            half = len(content) // 2
            content = content[: 0 if self.headers["Range"] else half]
        if self.command == "GET":
            self.wfile.write(content)
            if fault == "reset":
                option = (socket.SOL_SOCKET, socket.SO_LINGER)
                self.connection.setsockopt(*option, struct.pack("ii", 1, 0))
                socket.close(self.connection.detach())

    do_HEAD = do_GET

    def _answer(self, path: str) -> tuple[int, dict, bytes]:
        if path in self.server.files:
            return 200, {}, self.server.files[path]
        asked = _HUB.fullmatch(path)
        folder = self.server.models.get(asked and asked[1])
        commit = folder and self.server.commit(asked[1])
        if not folder or asked[3] not in ("main", commit):
            return 404, {}, b""
        kind, file, described = asked[2], asked[4], {"id": "", "sha": commit}
        if kind == "resolve":
            content = (folder / file).read_bytes()
            etag = f'"{hashlib.sha256(content).hexdigest()}"'
            return 200, {"X-Repo-Commit": commit, "ETag": etag}, content
        if kind == "tree":
            file = {"type": "file", "size": 0, "oid": "0"}
            described = [file | {"path": x} for x, _ in files_of(folder)]
        return 200, {}, json.dumps(described).encode()

    def log_message(self, *args):
        pass
