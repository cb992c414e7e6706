"""Downloads published models by name, once, into the download library's cache.

    hf://google-bert/bert-base-uncased         Hugging Face, newest revision
    hf://google-bert/bert-base-uncased@v1      Hugging Face, a revision
    https://tfhub.dev/google/...               SavedModel of TF-Hub or Kaggle

A name is resolved to the path of a local folder, which contains the revision.
"""

import contextlib
import http.client
import io
import os
import re
import sys
import warnings

from bert.common import errors, storage
from bert.common.errors import StorageError, UserError
from bert.common.progress import log, on_terminal

_HUGGING_FACE, _WEB = "hf://", ("http://", "https://")
_REPOSITORY = re.compile(r"hf://([\w.-]+(?:/[\w.-]+)?)(?:@(.+))?")
_CACHED = re.compile(r".*/models--([^/]+)/snapshots/[^/]+")
_PAGE = re.compile(
    r"https?://(?:www\.)?(?:huggingface|hf)\.co/([\w.-]+(?:/[\w.-]+)?)"
)
_NAME = re.compile(r"\w[\w.-]*/[\w.-]+(?<!\.ckpt)(?<!\.txt)")
_FILES = (  # pickles are never downloaded
    "config.json",
    "task.json",  # written by this library beside the files of transformers
    "vocab.txt",
    "tokenizer.json",
    "tokenizer_config.json",
    "added_tokens.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "modules.json",
    "*/config.json",  # of a module of sentence-transformers
)
_WEIGHTS = ("model*.safetensors", "model.safetensors.index.json")
_TEMPORARY = (408, 429)  # HTTP statuses below 500 that are worth a retry


def fetch(name: str, weights: bool = True) -> str:
    """Downloads a published model, unless it is in the cache.

    Args:
        name: str. Name of the model. Paths are returned unchanged.
        weights: bool. Whether to download the weights too; False downloads
            the config and the tokenizer only. Default: True.

    Returns:
        str. The local folder of the model.

    Raises:
        UserError: The model does not exist, this user may not read it, or a
            package is missing.
        StorageError: The server cannot be reached, or the download failed.
    """
    is_repository = str(name).startswith(_HUGGING_FACE)
    if not is_repository and not str(name).startswith(_WEB):
        return name

    bars = sys.stderr if on_terminal() else io.StringIO()
    try:
        # Libraries draw bars on standard output, which has the script's output.
        with contextlib.redirect_stdout(bars):
            if is_repository:
                folder, version = _fetch_repository(name, weights)
            else:
                folder, version = _fetch_module(name)
    except (UserError, StorageError, ImportError):
        raise
    except Exception as error:
        raise _as_one_line(name, error) from None
    log(f"{name}: {version}, in {folder}")
    return folder


def repository_of(path: str) -> str | None:
    """Returns the name of a model at Hugging Face, or None if it has none.

    Args:
        path: str. Name of the model, or its folder as returned by `fetch`.
    """
    if path.startswith(_HUGGING_FACE):
        return path.removeprefix(_HUGGING_FACE).partition("@")[0]
    cached = _CACHED.fullmatch(path)
    return cached[1].replace("--", "/") if cached else None


def advice(path: str) -> str | None:
    """Returns advice if a path that does not exist may be a model's name."""
    name = f"google-bert/{path}" if path.startswith("bert-") else path
    is_local = storage.exists(os.path.dirname(path) or path)
    if is_local or not _NAME.fullmatch(name):
        return None
    return f"for the model of Hugging Face pass {_HUGGING_FACE}{name}"


def _fetch_repository(name: str, weights: bool) -> tuple[str, str]:
    """Returns folder and revision of a repository of Hugging Face."""
    parts = _REPOSITORY.fullmatch(name)
    if not parts:
        raise UserError(
            "not a name of Hugging Face",
            path=name,
            expected="hf://organization/name, or with @revision",
        )
    errors.check_packages("hub", "huggingface_hub", needed_by=name)
    import huggingface_hub

    # Only these files: others may be gigabytes, or pickles.
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


def _fetch_module(name: str) -> tuple[str, str]:
    """Returns the folder of a TF-Hub or Kaggle handle, and its kind."""
    if name.endswith(".zip"):
        raise UserError(
            "an archive",
            path=name,
            expected="a folder",
            fix="download and unpack it, and pass its folder",
        )
    if page := _PAGE.match(name):
        raise UserError(
            "a page", path=name, expected=f"the model's name, hf://{page[1]}"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of its imports
        import tensorflow_hub

    os.environ.setdefault("TFHUB_DOWNLOAD_PROGRESS", "1")
    return tensorflow_hub.resolve(name), "a SavedModel"


def _as_one_line(name: str, error: Exception) -> Exception:
    """Returns a `StorageError` if a retry may help, else a `UserError`."""
    causes: list[BaseException] = [error]
    while cause := causes[-1].__cause__ or causes[-1].__context__:
        causes.append(cause)

    # Libraries wrap errors, so the first known cause is used.
    for cause in causes:
        response = getattr(cause, "response", None)
        status = getattr(response, "status_code", getattr(cause, "code", None))
        if status in _TEMPORARY or (status or 0) >= 500:
            return StorageError(f"{name}: HTTP status {status}")

        # A retry would get any other status again.
        is_hugging_face = name.startswith(_HUGGING_FACE)
        if status == 403 and is_hugging_face:
            return UserError(
                "HTTP 403",
                path=name,
                expected="a model that the owner of HF_TOKEN may read",
                fix="accept its terms on its page",
            )
        if status:
            fix = "check the name"
            if is_hugging_face:
                fix += "; a private or gated model needs HF_TOKEN"
            return UserError(
                f"no such model or revision, or a private one: HTTP {status}",
                path=name,
                fix=fix,
            )

        if type(cause).__name__ == "OfflineModeIsEnabled":
            return UserError(
                "not in the cache", path=name, fix="unset HF_HUB_OFFLINE"
            )

        if other := storage.as_user_error(cause):
            return other
        if isinstance(cause, ValueError | http.client.InvalidURL):
            return UserError(
                f"no model here: {cause}",
                path=name,
                expected="hf://..., or a handle of TF-Hub or Kaggle",
            )
    return StorageError(
        f"{name}: {causes[-1]}; a folder of a model needs no connection"
    )
