"""A broken or hostile file, and what a script says of it."""

import dataclasses
import os
import pathlib
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Case:
    """One file that replaces a good one.

    Attributes:
        kind: of the file, such as `config`.
        name: the mistake.
        path: of the file, below the folder of good files.
        content: its bytes; or makes it, from the path.
        message: part of the line that the script prints.
        runs: names in `runs.RUNS` of the scripts that meet it.
    """

    kind: str
    name: str
    path: str
    content: bytes | Callable[[pathlib.Path], None]
    message: str
    runs: tuple[str, ...]

    def write(self, folder: pathlib.Path) -> None:
        """Replaces the good file."""
        path = folder / self.path
        if isinstance(self.content, bytes):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(self.content)
        else:
            self.content(path)


def pipe(path: pathlib.Path) -> None:
    """Replaces a file by a pipe."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)
