"""Settings of serve.py, which know no TensorFlow."""

import dataclasses
import os
import socket
from collections.abc import Iterator

from bert.common import extras, storage
from bert.common.errors import UserError
from bert.common.flags import flag
from bert.common.progress import say
from bert.serving import predict_settings

_NEEDED = ("flask", "prometheus_client", "waitress")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of serve.py."""

    model: str | None = flag(
        None,
        "Folder of a SavedModel, or of its numbered versions, of which the "
        "last is served.",
        required=True,
        path=True,
    )
    trust_model: bool = flag(
        False,
        "Load a model that you did not export yourself: loading a SavedModel "
        "runs it as a program.",
    )
    host: str = flag(
        "127.0.0.1",
        "Address to listen on; anyone who can reach it can query the model.",
    )
    port: int = flag(8501, "Port; 0: any free one.", at_least=0, at_most=65535)
    max_batch_size: int = flag(
        32, "Maximum number of examples of a batch.", at_least=1, at_most=1024
    )
    max_delay_ms: float = flag(
        0.0, "Milliseconds that a batch waits for more examples.", at_least=0
    )
    max_queued_batches: int = flag(
        8, "Batches that may wait; 503 answers more.", at_least=1
    )
    max_connections: int = flag(
        1000, "Connections at the same time; more of them wait.", at_least=1
    )
    max_request_bytes: int = flag(
        1 << 20, "Size of a request; 413 answers larger ones.", at_least=1
    )

    @property
    def name(self) -> str:
        """Name of the model in the paths."""
        return os.path.basename(storage.absolute(self.model))

    def find(self) -> Iterator[tuple[str, int]]:
        """Finds the versions to serve, the newest first.

        Warns of a version that cannot be served, such as one that is being
        copied, if there are others.

        Yields:
            its folder and number.

        Raises:
            UserError: there is none, or packages are missing.
        """
        names = []
        if storage.is_folder(self.model):
            names = storage.list_folder(self.model)

        # Without numbered folders, the model's own is the version 1. Zeros may
        # come first in a number.
        versions = [x for x in names if x.isascii() and x.isdecimal()] or [""]
        versions.sort(key=lambda name: int(name or 1), reverse=True)

        for name in versions:
            folder = os.path.join(self.model, name)
            model = predict_settings.Settings(
                model=folder, trust_model=self.trust_model
            )
            try:
                model.check()
            except UserError as error:
                if name == versions[-1]:
                    raise
                say(f"warning: {error}; trying the version before it")
                continue

            extras.check("serve", *_NEEDED)
            yield folder, int(name or 1)

    def listen(self) -> socket.socket:
        """Opens the port.

        Raises:
            UserError: it cannot be opened.
        """
        try:
            return socket.create_server((self.host, self.port), backlog=128)
        except OSError as error:
            raise UserError(
                f"--host={self.host} --port={self.port}: {error.strerror}",
                fix="pass another port, or 0 for any",
            ) from None
