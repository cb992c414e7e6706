"""Settings of serve.py. This module does not import TensorFlow."""

import dataclasses
import errno
import os
import socket

from bert.common import storage
from bert.common.errors import StorageError, UserError
from bert.common.flags import BaseSettings, flag
from bert.common.rules import rule
from bert.inference.settings import ENGINES
from bert.modeling.engines import openvino_engine


def _check_names(settings: "Settings") -> None:
    """Raises a UserError if two models have the same name."""
    names = [name for name, _ in settings.models]
    if len({*names}) < len(names):
        raise UserError(
            f"--model={settings.model}",
            expected="a different name for each model",
            fix="write NAME=FOLDER",
        )


def _check_host(host: str) -> None:
    """Raises a UserError for an empty host, which means all interfaces."""
    if not host.strip():
        raise UserError(
            f"--host={host}", expected="an address, such as 127.0.0.1"
        )


@dataclasses.dataclass(frozen=True)
class Settings(BaseSettings):
    """Settings of serve.py."""

    RULES = [
        rule("The models have different names.", _check_names, "model=a,b/a"),
    ]

    model: str = flag(
        None,
        "Folder of a run or an export, or folder with numbered versions, of "
        "which the newest is served. NAME=FOLDER sets the name in the URL. "
        "Commas separate several models.",
        required=True,
        path=True,
    )
    host: str = flag(
        "127.0.0.1",
        "Address to listen on. Anyone who can reach it can query the model.",
        parse=_check_host,
    )
    port: int = flag(8501, "Port; 0: any free port.", at_least=0, at_most=65535)
    max_batch_size: int = flag(
        32,
        "Maximum number of sequences per batch, and of examples per request. "
        "Each window of a long text is a sequence, and so is each choice.",
        at_least=1,
        at_most=1024,
    )
    max_delay_ms: float = flag(
        0.0,
        "Milliseconds to wait for more examples of a batch.",
        at_least=0,
        at_most=60_000,
    )
    max_queued_batches: int = flag(
        8,
        "Maximum number of batches in the queue, and of one request. Further "
        "requests get status 503, larger requests get status 400.",
        at_least=1,
    )
    max_connections: int = flag(
        1000,
        "Maximum number of open connections. Further connections wait.",
        at_least=1,
    )
    max_request_bytes: int = flag(
        1 << 20,
        "Maximum size of a request. Larger requests get status 413.",
        at_least=1,
    )
    engine: str | None = flag(
        None,
        "Inference engine. Default: openvino if it is installed and the model "
        "has an OpenVINO network, unless TensorFlow can use a GPU; else keras.",
        choices=ENGINES,
    )
    access_log: bool = flag(
        False, "Log all requests, not only failed requests."
    )

    @property
    def models(self) -> list[tuple[str, str]]:
        """List of (name in the URL, folder) of each model."""
        pairs = []
        for word in (self.model or "").split(","):
            name, is_named, folder = word.partition("=")
            if not is_named or "/" in name:
                name, folder = os.path.basename(storage.absolute(word)), word
            pairs.append((name, folder))
        return pairs

    def versions(self, folder: str) -> list[tuple[str, int]]:
        """Lists the versions of a model, the newest first.

        Args:
            folder: str. Folder of the model.

        Returns:
            a list of (folder, number).
        """
        names = storage.list_folder(folder) if storage.is_folder(folder) else []

        # Without numbered folders, the folder itself is version 1. Numbers may
        # have leading zeros.
        numbers = [x for x in names if x.isascii() and x.isdecimal()] or [""]
        numbers.sort(key=lambda name: int(name or 1), reverse=True)
        return [(os.path.join(folder, x), int(x or 1)) for x in numbers]

    def check(self, path: str) -> None:
        """Checks that the folder of a version has a model.

        Args:
            path: str. The folder.

        Raises:
            UserError: The folder does not exist or does not have a model.
        """
        if not (
            openvino_engine.find(path)
            or storage.is_file(os.path.join(path, "saved_model.pb"))
            or storage.is_file(os.path.join(path, "config.json"))
            or storage.find(path, "*.index")
        ):
            raise UserError(
                "no model",
                path=path,
                expected="the folder of a run or an export"
                if storage.is_folder(path)
                else "an existing folder",
            )

    def listen(self) -> socket.socket:
        """Opens the port.

        Raises:
            UserError: The port cannot be opened. The exit code is 75 if
                another process uses the port, or if the address does not
                exist yet.
        """
        try:
            return socket.create_server((self.host, self.port), backlog=128)
        except OSError as error:
            mistake = UserError(
                f"--host={self.host} --port={self.port}: {error.strerror}",
                fix="pass another port, or 0 for any free port",
            )
            if error.errno in (errno.EADDRINUSE, errno.EADDRNOTAVAIL):
                mistake.exit_code = StorageError.exit_code  # try again later
            raise mistake from None
