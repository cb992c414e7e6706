"""Hides TensorFlow's log during its import, which no setting silences.

The libraries write to file descriptor 2 before they read any setting. The
descriptor is redirected to a temporary file while they load and look for
devices. The file is shown if loading fails.
"""

import contextlib
import gc
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator

LEVEL = "TF_CPP_MIN_LOG_LEVEL"


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Context manager that shows standard error only after an exception."""
    sys.stderr.flush()
    stderr = os.dup(2)

    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except Exception:
            sys.stderr.flush()
            held.seek(0)
            os.write(stderr, held.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)


class _Finder:
    """Import finder that loads a package, once, within a context.

    Args:
        package: str. Name of the package.
        context: callable. Returns the context manager.
    """

    def __init__(
        self,
        package: str,
        context: Callable[[], contextlib.AbstractContextManager],
    ):
        self._package, self._context = package, context

    def find_spec(self, name: str, path, target=None):
        """As in `importlib.abc.MetaPathFinder`."""
        if name != self._package:
            return None

        # All later finders are asked, including tools that trace imports.
        others = sys.meta_path[sys.meta_path.index(self) + 1 :]
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next(filter(None, specs), None)

        loader = spec.loader if spec else None
        if loader:
            load = loader.exec_module

            def load_once(module):  # TensorFlow finds Keras before loading it
                sys.meta_path.remove(self)
                loader.exec_module = load  # drops the reference to self
                with self._context():
                    load(module)

            loader.exec_module = load_once
        return spec


def hold_back_import(on_start: Callable[[], None] = lambda: None) -> None:
    """Hides the log of the first `import tensorflow` in a script's process.

    Args:
        on_start: callable. Called when the import starts. Default: no call.
    """
    os.environ.setdefault(LEVEL, "2")

    @contextlib.contextmanager
    def started():
        on_start()
        with _loading_quietly():
            yield

    if "tensorflow" not in sys.modules:
        sys.meta_path.insert(0, _Finder("tensorflow", started))


@contextlib.contextmanager
def _loading_quietly() -> Iterator[None]:
    # Garbage collection would take a third of the import's time. Loaded
    # objects are frozen, so that later collections skip them.
    gc.disable()
    try:
        with held_back():
            yield
            # Loads the driver of a GPU, if there is one.
            sys.modules["tensorflow"].config.list_physical_devices()
    finally:
        gc.freeze()
        gc.enable()

    # Hides warnings about functions that are traced for each length.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)


def after_import(package: str, call: Callable[[], None]) -> None:
    """Calls a function after the import of a package, or now if imported."""

    @contextlib.contextmanager
    def called_last():
        yield
        call()

    if package in sys.modules:
        call()
    else:
        sys.meta_path.insert(0, _Finder(package, called_last))
