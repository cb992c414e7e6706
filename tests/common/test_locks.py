"""Locks that end with their process."""

import os
import socket
import subprocess
import sys

import pytest

from bert.common.errors import UserError
from bert.common.jobs import locks

HOLDER = """
import sys, threading
from bert.common.jobs import locks
from bert.common.errors import UserError

with locks.hold(sys.argv[1], "records"):
    print("held", flush=True)
    threading.Event().wait()
"""


def test_a_lock_ends_with_its_process(tmp_path):
    path = tmp_path / ".a.lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, path],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as holder:
        holder.stdout.readline()
        with (
            pytest.raises(UserError) as error,
            locks.hold(str(path), "records"),
        ):
            pass
        holder.kill()
    assert str(error.value).startswith(
        f"records: in use by process {holder.pid} on {socket.gethostname()} "
        "since 20"
    )
    assert path.exists()
    with locks.hold(str(path), "records"):
        content = path.read_text()
        assert content.startswith(f"process {os.getpid()} on ")
        assert content.count("process") == 1
    assert not path.exists()


@pytest.mark.parametrize(
    ("content", "owner"),
    [
        (b"", "another process"),
        (b"\xff 7", "\ufffd 7"),
        (b"7" * 999, "7" * 200),
    ],
)
def test_whatever_the_file_says_is_one_short_line(tmp_path, content, owner):
    path = tmp_path / ".a.lock"
    with locks.hold(str(path), "records"):
        path.write_bytes(content)
        with (
            pytest.raises(UserError) as error,
            locks.hold(str(path), "records"),
        ):
            pass
    assert str(error.value).startswith(f"records: in use by {owner}; ")
