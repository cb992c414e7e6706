"""Readers with mistakes, which the fuzzer must find."""

import os
import pathlib
import signal

from tests.helpers.fuzzing import Case


def planted(folder: pathlib.Path, do) -> list[Case]:
    """A reader with a mistake, which a file meets that holds a 7."""
    path = folder / "file"

    def read():
        if path.read_bytes() == b"7":
            do()

    path.write_bytes(b"0")
    return [Case(path, lambda edits: str(edits[0][0]).encode(), read)]


def loop() -> None:
    while True:
        pass


READERS = {
    "planted_error": lambda folder: planted(folder, lambda: [][1]),
    "planted_hang": lambda folder: planted(folder, loop),
    "planted_memory": lambda folder: planted(folder, lambda: b"7" * (1 << 31)),
    "planted_crash": lambda folder: planted(
        folder, lambda: os.kill(os.getpid(), signal.SIGSEGV)
    ),
}
