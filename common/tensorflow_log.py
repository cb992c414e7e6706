"""TensorFlow's log while it loads, which none of its settings silences.

The libraries write to file descriptor 2 before they read any setting. So the
descriptor leads to a file while they load and look for devices; the file is
shown if that fails.
"""

import contextlib
import gc
import importlib.machinery
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Context whose standard error is shown only if it raises an error."""
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
    """Finds `tensorflow`, once, and holds back the log of its import.

    Args:
        on_import: called when the import starts.
    """

    def __init__(self, on_import: Callable[[], None]):
        self._on_import = on_import

    def find_spec(self, name: str, path, target=None):
        """As in `importlib.abc.MetaPathFinder`."""
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec and spec.loader:
            load = spec.loader.exec_module

            def load_quietly(module):
                self._on_import()
                # Else a third of the import's time goes to the search for
                # garbage; and what is loaded is never searched later.
                gc.disable()
                try:
                    with held_back():
                        load(module)
                        # Loads the driver of a GPU, if there is one.
                        module.config.list_physical_devices()
                finally:
                    gc.freeze()
                    gc.enable()
                # Else it warns of functions that are traced for each length.
                logging.getLogger("tensorflow").setLevel(logging.ERROR)

            spec.loader.exec_module = load_quietly
        return spec


def hold_back_import(on_import: Callable[[], None] = lambda: None) -> None:
    """Holds back the log of the first `import tensorflow` of this process.

    Args:
        on_import: called when that import starts.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if "tensorflow" not in sys.modules:
        sys.meta_path.insert(0, _Finder(on_import))
