"""Serves the newest version of a model, and loads new versions.

folder/1, folder/2 -> Model -> served, replaced without lost requests
"""

import ctypes
import gc
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from bert.common import errors, storage
from bert.common.errors import UserError
from bert.common.progress import log
from bert.inference.predictor import Predictor
from bert.serving import rest
from bert.serving.batch_queue import BatchQueue
from bert.serving.settings import Settings

_NEEDED = ("flask", "prometheus_client", "waitress")
_SECONDS = 2.0  # between two checks of the folders
_SETTLED = 2  # checks with the same files, after which a copy seems complete


class Served(NamedTuple):
    """A loaded version.

    Attributes:
        number: int. Number of the version.
        predict: BatchQueue. Queue of its predictor.
        metadata: dict. Its signature, as a proto in JSON.
    """

    number: int
    predict: BatchQueue
    metadata: dict


class Model:
    """A served model, which follows the newest version in its folder.

    Args:
        folder: str. Folder of the model, or folder with numbered versions.
        settings: Settings. Settings of the script.

    Attributes:
        folder: str. See the argument.
        served: Served. The version that is served, after `open`.

    Raises:
        UserError: All versions are invalid, or packages are missing.
    """

    served: Served
    _on_batch: Callable[[int, list[float]], None]

    def __init__(self, folder: str, settings: Settings):
        self.folder, self._settings = folder, settings
        self._looks: dict[str, tuple[list, int]] = {}

        # Without a valid version, fail before any model is loaded.
        self._versions = newest(
            settings.versions(folder), lambda path, _: settings.check(path)
        )
        errors.check_packages("serve", *_NEEDED)

    def open(self, on_batch: Callable[[int, list[float]], None]) -> None:
        """Loads the newest version that is not damaged.

        Args:
            on_batch: callable. See `BatchQueue`.

        Raises:
            UserError: All versions are damaged.
        """
        self._on_batch = on_batch
        newest(self._versions, self._load)

    def refresh(self) -> None:
        """Loads a newer version, or an older one if the served one was removed.

        A version is loaded when two checks in a row find the same files. If
        it is damaged, it is loaded again after its files change. Requests in
        the queue are answered by the old version.
        """
        for path, number in self._settings.versions(self.folder):
            if number == self.served.number:
                return

            names = storage.files_below(path)
            files = [(name, storage.version(name)) for name in names]
            before, looks = self._looks.get(path, ([], 0))
            looks = looks + 1 if files == before else 1
            self._looks[path] = files, looks
            if looks != _SETTLED:
                continue

            try:
                self._load(path, number)
            except Exception as error:
                text = described(path, error)
                log(f"warning: {text}; still version {self.served.number}")
                continue
            log(f"serving version {number} of {self.folder}")
            self._looks.clear()
            _free_memory()
            return

    def _load(self, path: str, number: int) -> None:
        self._settings.check(path)
        predictor = Predictor.open(path, self._settings.engine)
        metadata = rest.metadata_of(predictor)
        before = getattr(self, "served", None)
        queue = BatchQueue(predictor, self._settings, self._on_batch)
        self.served = Served(number, queue, metadata)
        if before:
            before.predict.close()


def newest(
    versions: list[tuple[str, int]], use: Callable[[str, int], None]
) -> list[tuple[str, int]]:
    """Uses the newest valid version; skips newer ones with a warning.

    Args:
        versions: list of (folder, number). The newest version is first.
        use: callable. Called with folder and number; fails for a version that
            is invalid, such as an unfinished copy.

    Returns:
        The version that was used, and the older ones.

    Raises:
        UserError: All versions are invalid; the error of the oldest one.
    """
    for index, (path, number) in enumerate(versions):
        try:
            use(path, number)
            break
        except Exception as error:  # files can be damaged in any way
            text = described(path, error)
            if index == len(versions) - 1:
                failed = UserError(text)
                failed.exit_code = getattr(error, "exit_code", failed.exit_code)
                raise failed from error
            log(f"warning: {text}; trying the previous version")
    return versions[index:]


def described(path: str, error: Exception) -> str:
    """Formats the error of a version, with its folder.

    Args:
        path: str. Folder of the version.
        error: Exception. The error.
    """
    text = str(error) if isinstance(error, UserError) else repr(error)
    return text if path in text else f"{path}: {text}"


def _free_memory() -> None:
    """Returns the memory of the old version to the system."""
    gc.collect()
    # glibc would keep it in the heaps of the threads that loaded the model.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)


def watch(models: Iterable[Model], end: threading.Event) -> None:
    """Refreshes models until `end` is set.

    Args:
        models: iterable of Model. The models.
        end: threading.Event. Set at the shutdown of the server.
    """
    while not end.wait(_SECONDS):
        for model in models:
            try:
                model.refresh()
            except Exception as error:  # the server keeps its models
                text = described(model.folder, error)
                log(f"warning: the versions could not be checked: {text}")
