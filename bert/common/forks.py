"""Detects a fork of a process after an engine has started its threads.

A fork copies the calling thread only. TensorFlow would wait for its other
threads forever, and OpenVINO would abort the process.
"""

import os

from bert.common.errors import UserError

TENSORFLOW, OPENVINO = "TensorFlow", "OpenVINO"
_started: set[str] = set()  # started in this process or its parents
_lost: set[str] = set()  # started before this process was forked

os.register_at_fork(after_in_child=lambda: _lost.update(_started))


def check(engine: str) -> None:
    """Checks that an engine works in this process; call it before using one.

    Args:
        engine: str. `TENSORFLOW` or `OPENVINO`.

    Raises:
        UserError: The engine was started before this process was forked.
    """
    if engine in _lost:
        raise UserError(
            f"{engine} was started before this process was forked, and its "
            "threads were lost",
            expected="a model that is loaded only after the fork",
            fix='use multiprocessing.get_context("spawn"), or gunicorn '
            "without --preload",
        )
    _started.add(engine)
