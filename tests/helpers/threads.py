"""Calls in daemon threads, which a failed test leaves behind."""

import concurrent.futures
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


def start(function: Callable, *arguments: Any) -> Future:
    """Starts a call in a thread of its own."""
    future: Future = Future()

    def run():
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def result(future: Future) -> Any:
    """The result of a call, which has to end within half a minute."""
    assert concurrent.futures.wait([future], 30).done, "the call does not end"
    return future.result()
