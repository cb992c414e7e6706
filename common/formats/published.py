"""Models by name: fetched once, into the cache of the library that fetches.

    hf://google-bert/bert-base-uncased         Hugging Face, at its newest
    hf://google-bert/bert-base-uncased@v1      or at a revision
    https://host/uncased_L-12_H-768_A-12.zip   an archive, such as Google's
    https://tfhub.dev/google/...               a SavedModel, or one of Kaggle

A name becomes the path of a local folder, which has the revision in it, or
the sha256 of the archive.
"""

import contextlib
import hashlib
import io
import os
import re
import sys
import warnings

import filelock

from bert.common import extras, storage
from bert.common.errors import StorageError, UserError
from bert.common.progress import on_terminal, say

_HUGGING_FACE, _WEB = "hf://", ("http://", "https://")
_REPOSITORY = re.compile(r"hf://([\w.-]+(?:/[\w.-]+)?)(?:@(.+))?")
_FILES = (  # no pickle
    "config.json",
    "vocab.txt",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "sentence_bert_config.json",
)
_WEIGHTS = ("model*.safetensors", "model.safetensors.index.json")
_TEMPORARY = (408, 429)  # of the answers below 500


def fetch(name: str | None, weights: bool = True) -> str | None:
    """Fetches a published model, unless it is in the cache.

    Args:
        name: of the model; a path, or None, is returned as it is.
        weights: false: the files of the tokenizer are enough.

    Returns:
        its local folder.

    Raises:
        UserError: there is no such model, it cannot be read by this user, or
            a package is missing.
        StorageError: the server cannot be reached or has stopped midway.
    """
    if str(name).startswith((_HUGGING_FACE, *_WEB)):
        return _fetch(name, weights)
    return name


def _fetch(name: str, weights: bool) -> str:
    bars = sys.stderr if on_terminal() else io.StringIO()
    try:
        with contextlib.redirect_stdout(bars):
            if name.startswith(_HUGGING_FACE):
                folder, version = _fetch_repository(name, weights)
            elif name.partition("#")[0].endswith(".zip"):
                folder, version = _fetch_archive(name)
            else:
                folder, version = _fetch_module(name)
    except (UserError, StorageError, ImportError):
        raise
    except Exception as error:
        raise _as_one_line(name, error) from None
    say(f"{name}: {version}, in {folder}")
    return folder


def _fetch_repository(name: str, weights: bool) -> tuple[str, str]:
    """Folder and revision of a repository of Hugging Face."""
    parts = _REPOSITORY.fullmatch(name)
    if not parts:
        raise UserError(
            "not a name of Hugging Face",
            path=name,
            expected="hf://organization/name, or with @revision",
        )
    extras.check("hub", "huggingface_hub", what=name)
    import huggingface_hub

    folder = huggingface_hub.snapshot_download(
        parts[1],
        revision=parts[2],
        allow_patterns=[*_FILES, *(_WEIGHTS if weights else ())],
    )
    if weights and not storage.find(folder, "*.safetensors"):
        raise UserError(
            "no safetensors",
            path=name,
            expected="model.safetensors; pickles such as pytorch_model.bin "
            "are never read",
            fix="save it with transformers, which writes safetensors, or name "
            "a @revision that has them",
        )
    return folder, f"revision {os.path.basename(folder)}"


def _fetch_archive(name: str) -> tuple[str, str]:
    """Folder and sha256 of a zip, which `#sha256=...` after its name checks."""
    url, _, expected = name.partition("#sha256=")
    home = os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras")
    stem = os.path.basename(url).removesuffix(".zip")
    cache = hashlib.sha256(url.encode()).hexdigest()[:8]
    cache = os.path.join(home, "bert", f"{stem}-{cache}")
    storage.make_folder(os.path.dirname(cache))
    with filelock.FileLock(f"{cache}.lock"):
        if not storage.is_folder(cache):
            _unpack(url, cache)
    (digest,) = storage.list_folder(cache)
    if expected not in ("", digest):
        raise UserError(
            f"has sha256 {digest}",
            path=url,
            expected=expected,
            fix=f"if it was changed or damaged, remove {cache}",
        )
    for path in storage.files_below(cache):
        if os.path.basename(path) == "bert_config.json":
            return os.path.dirname(path), f"sha256 {digest}"
    raise UserError("no bert_config.json in this archive", path=name)


def _unpack(url: str, cache: str) -> None:
    """Writes the content of an archive to `cache/<its sha256>`, all at once."""
    import keras

    say(f"downloading {url} ...")
    with storage.whole_folder(cache) as scratch, warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # unsafe paths, no archive
        try:
            content = keras.utils.get_file(
                "model", url, extract=True, cache_dir=scratch, cache_subdir="."
            )
        except OSError as error:  # else it were one of writing
            raise _as_one_line(url, error) from None
        archive = f"{content}_archive"
        digest = storage.hash_file(archive)
        storage.remove(archive)
        storage.replace(content, os.path.join(scratch, digest))


def _fetch_module(name: str) -> tuple[str, str]:
    """Folder of a handle of TF-Hub or Kaggle, whose name has its version."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its imports
        import tensorflow_hub

    os.environ.setdefault("TFHUB_DOWNLOAD_PROGRESS", "1")
    return tensorflow_hub.resolve(name), "a SavedModel"


def _as_one_line(name: str, error: Exception) -> Exception:
    """What a retry may mend is a `StorageError`, all else a `UserError`."""
    causes = [error]
    while cause := causes[-1].__cause__ or causes[-1].__context__:
        causes.append(cause)
    for cause in causes:
        response = getattr(cause, "response", None)
        status = getattr(response, "status_code", getattr(cause, "code", None))
        if status in _TEMPORARY or (status or 0) >= 500:
            return StorageError(f"{name}: HTTP status {status}")
        if status:
            token = "; a private model needs HF_TOKEN"
            return UserError(
                f"no such model or revision, or a private one: HTTP {status}",
                path=name,
                fix=f"check the name{token * name.startswith(_HUGGING_FACE)}",
            )
        if type(cause).__name__ == "OfflineModeIsEnabled":
            return UserError(
                "not in the cache", path=name, fix="unset HF_HUB_OFFLINE"
            )
        if other := storage.as_user_error(cause):
            return other
        if isinstance(cause, UserWarning | ValueError):
            return UserError(
                f"no model here: {cause}",
                path=name,
                expected="hf://..., a .zip, or a handle of TF-Hub or Kaggle",
            )
    return StorageError(f"{name}: {causes[-1]}")
