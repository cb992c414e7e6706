"""An object store on this machine, for TensorFlow's own `gs://` client.

Beam takes its own client, if the packages of Google's storage are installed.

    TensorFlow -- HTTPS_PROXY --> CONNECT, TLS -> this proxy -> emulator

The emulator is `gcp-storage-emulator`, in a process of its own; the proxy, a
thread, ends TLS, turns the reads of the XML API into those of the JSON API,
and makes the faults that a test asks for.
"""

import asyncio
import contextlib
import dataclasses
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator

from tests.helpers import workers

BUCKET = "b"
_HOSTS = ("www.googleapis.com", "storage.googleapis.com")
_EMULATOR = """
import sys
from gcp_storage_emulator.server import create_server
server = create_server("127.0.0.1", int(sys.argv[1]), in_memory=True,
                       default_bucket=sys.argv[2])
server.run()
"""
_LIMIT = 1 << 28
_APIS = ("/storage/", "/upload/", "/download/", "/batch/")


@dataclasses.dataclass
class Fault:
    """A fault of the next requests that match.

    Attributes:
        kind: "503"; "cut": half of the body; "slow": seconds before it.
        pattern: searched in "METHOD /path".
        times: number of requests.
        seconds: of "slow".
        seen: the requests that it has met.
    """

    kind: str
    pattern: str
    times: int = 1
    seconds: float = 0
    seen: list[str] = dataclasses.field(default_factory=list)


class Store:
    """The store: its environment, its faults and the requests it has seen."""

    def __init__(self, folder, emulator_port: int):
        self._emulator = ("127.0.0.1", emulator_port)
        self._folder = str(folder)
        self.faults: list[Fault] = []
        self.requests: list[str] = []
        self._make_certificate()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        started = asyncio.run_coroutine_threadsafe(self._start(), self._loop)
        self.port = started.result()

    def environment(self, **more: str) -> dict[str, str]:
        """Variables that lead the clients of TensorFlow and Beam here."""
        return {
            "HTTPS_PROXY": f"http://127.0.0.1:{self.port}",
            "https_proxy": f"http://127.0.0.1:{self.port}",
            "no_proxy": "localhost,127.0.0.1",  # of the workers of Beam
            "CURL_CA_BUNDLE": f"{self._folder}/cert.pem",
            "REQUESTS_CA_BUNDLE": f"{self._folder}/cert.pem",
            "GOOGLE_AUTH_TOKEN_FOR_TESTING": "x",
            "NO_GCE_CHECK": "true",
            **more,
        }

    def fault(self, *arguments, **named) -> Fault:
        """Adds a fault; returns it."""
        fault = Fault(*arguments, **named)
        self.faults.append(fault)
        return fault

    def put(self, name: str, content: bytes) -> None:
        """Writes an object, past the proxy."""
        name = urllib.parse.quote(name, safe="")
        self._ask(
            f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={name}",
            content,
        )

    def get(self, name: str) -> bytes:
        """Reads an object, past the proxy."""
        name = urllib.parse.quote(name, safe="")
        return self._ask(f"/download/storage/v1/b/{BUCKET}/o/{name}?alt=media")

    def names(self, prefix: str = "") -> list[str]:
        """Names of the objects, without those that stand for folders."""
        found = self._ask(f"/storage/v1/b/{BUCKET}/o?prefix={prefix}")
        names = [item["name"] for item in json.loads(found).get("items", ())]
        return sorted(name for name in names if not name.endswith("/"))

    def _ask(self, path: str, content: bytes | None = None) -> bytes:
        url = "http://{}:{}".format(*self._emulator) + path
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(urllib.request.Request(url, content)) as answer:
            return answer.read()

    def close(self) -> None:
        """Stops the thread."""

        async def stop():
            self._server.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _make_certificate(self) -> None:
        names = ",".join(f"DNS:{host}" for host in _HOSTS)
        command = (
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
            f"-nodes -days 2 -subj /CN=test -addext subjectAltName={names} "
            "-keyout key.pem -out cert.pem"
        )
        subprocess.run(
            command.split(), cwd=self._folder, check=True, capture_output=True
        )
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(
            f"{self._folder}/cert.pem", f"{self._folder}/key.pem"
        )

    async def _start(self) -> int:
        self._server = await asyncio.start_server(
            self._connect, "127.0.0.1", 0, limit=_LIMIT
        )
        return self._server.sockets[0].getsockname()[1]

    async def _connect(self, reader, writer) -> None:
        with contextlib.suppress(
            OSError, ValueError, asyncio.IncompleteReadError
        ):
            while (await reader.readline()).strip():
                pass
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await writer.drain()
            await writer.start_tls(self._tls)
            while await self._serve(reader, writer):
                pass
        with contextlib.suppress(OSError):
            writer.close()

    async def _serve(self, reader, writer) -> bool:
        """Answers one request; returns whether the connection stays."""
        first = (await reader.readline()).split()
        if not first:
            return False
        method, target = first[0].decode(), first[1].decode()
        headers = {}
        while (line := await reader.readline()).strip():
            name, value = line.decode().split(":", 1)
            headers[name.lower()] = value.strip()
        if headers.pop("expect", None):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            await writer.drain()
        body = await _body(reader, headers)
        request = f"{method} {urllib.parse.unquote(target)}"
        self.requests.append(request)
        fault = self._meet(request)
        if fault and fault.kind == "503":
            answer = (
                b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n"
                b"connection: close\r\n\r\n"
            )
        else:
            if fault and fault.kind == "slow":
                await asyncio.sleep(fault.seconds)
            answer = await self._forward(method, target, headers, body)
            if fault and fault.kind == "cut":
                head = answer.find(b"\r\n\r\n") + 4
                answer = answer[: head + (len(answer) - head) // 2]
        writer.write(answer)
        await writer.drain()
        return False

    def _meet(self, request: str) -> Fault | None:
        for fault in self.faults:
            if fault.times > 0 and re.search(fault.pattern, request):
                fault.times -= 1
                fault.seen.append(request)
                return fault
        return None

    async def _forward(self, method, target, headers, body: bytes) -> bytes:
        path = target.split("?")[0]
        if not path.startswith(_APIS):
            _, bucket, name = path.split("/", 2)
            name = urllib.parse.quote(name, safe="%")
            target = f"/download/storage/v1/b/{bucket}/o/{name}?alt=media"
        if "uploadType=media" in target and not body:
            body = b"\n"  # the emulator takes no empty object
        kept = {
            name: value
            for name, value in headers.items()
            if name not in ("transfer-encoding", "connection")
            and not name.startswith("proxy-")
        }
        kept |= {
            "content-length": str(len(body)),
            "connection": "close",
        }
        lines = [f"{method} {target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in kept.items()]
        reader, writer = await asyncio.open_connection(*self._emulator)
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()
        head, empty, content = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        # The addresses of a resumable upload and of an object's content; the
        # length does not change.
        head = head.replace(b": http://", b": https://")
        if "alt=media" not in target:
            content = content.replace(
                b'": "http://storage', b'":"https://storage'
            )
        return head + empty + content


async def _body(reader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", 0)))
    parts = []
    while size := int((await reader.readline()).split(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(parts)


@contextlib.contextmanager
def running(folder) -> Iterator[Store]:
    """Context with a store whose one bucket is empty.

    Args:
        folder: for its certificate.
    """
    (port,) = workers.free_ports(1)
    with open(os.path.join(folder, "emulator.log"), "w") as log:
        emulator = subprocess.Popen(
            [sys.executable, "-c", _EMULATOR, str(port), BUCKET],
            stdout=log,
            stderr=log,
        )
    try:
        while True:
            assert emulator.poll() is None, "the emulator has ended"
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
        store = Store(folder, port)
        try:
            yield store
        finally:
            store.close()
    finally:
        emulator.terminate()
        emulator.wait()
