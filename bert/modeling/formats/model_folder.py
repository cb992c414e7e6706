"""The folder of a model: a checkpoint, and the files beside it.

    google        bert_model.ckpt, or the checkpoints of a run of ours;
                  bert_config.json, vocab.txt, tokenizer_config.json
    huggingface   model.safetensors, config.json, vocab.txt, tokenizer.json
    model_garden  as google, with other names of variables
    hub           saved_model.pb, variables/, assets/vocab.txt

The best checkpoint of a run is in a folder of its own, below the others.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import re
from typing import Annotated, NotRequired, TypedDict

import msgspec

from bert.common import storage
from bert.common.errors import UserError
from bert.common.flags import flag
from bert.common.formats import json_files, published
from bert.data.text import tokenization, tokenizer_files
from bert.data.text.settings import CASING_OF_MODEL
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.config import BertConfig
from bert.modeling.formats import huggingface

TASK, VOCABULARY = "task.json", "vocab.txt"
_HASH = "sha256 of {}"  # setting of a checkpoint, for a file beside it
_OBJECTS = b"_CHECKPOINTABLE_OBJECT_GRAPH"  # first name of such a checkpoint
_START = 1 << 10  # bytes of an index


class _Task(TypedDict):
    kind: str
    labels: list[str]
    max_seq_length: NotRequired[Annotated[int, msgspec.Meta(ge=3)]]


class _Description(msgspec.Struct):
    settings: dict | None = None


@dataclasses.dataclass(frozen=True)
class ModelFiles:
    """Config, vocabulary and casing; by default those of the checkpoint."""

    bert_config_file: str | None = flag(
        None, "Default: bert_config.json beside the checkpoint.", path=True
    )
    vocab_file: str | None = flag(
        None, "Default: vocab.txt beside the checkpoint.", path=True
    )
    do_lower_case: bool | None = flag(**CASING_OF_MODEL["do_lower_case"])
    strip_accents: bool | None = flag(**CASING_OF_MODEL["strip_accents"])


@dataclasses.dataclass(frozen=True)
class ModelFolder:
    """A model of any format; each of its files is read once, when needed.

    Attributes:
        path: its folder, or the prefix of its checkpoint; "": flags alone.
        format: "google", "huggingface", "model_garden" or "hub".
        given: flags, which win over the files beside the checkpoint.
    """

    path: str
    format: str
    given: ModelFiles

    @classmethod
    def open(
        cls,
        path: str | None,
        given: ModelFiles = ModelFiles(),
    ) -> "ModelFolder":
        """Finds a model, without TensorFlow.

        Args:
            path: its folder, the prefix of its checkpoint, or the name of a
                published one; None: flags alone tell the sizes and the
                vocabulary.
            given: flags, which win over the files beside the checkpoint.

        Raises:
            UserError: there is none.
        """
        if not path:
            return cls("", "google", given)
        path = published.fetch(path)
        if not storage.any_starts_with(path):
            raise UserError(
                "no such checkpoint",
                path=path,
                expected=f"the file {path}.index, or a folder of checkpoints",
                fix=published.advice(path),
            )
        return cls(path, _format_of(path), given)

    def _find(self, name: str, flag: str) -> str:
        path = self.path and beside(self.path, name)
        if not path:
            raise UserError(
                f"no --{flag}", fix="pass it, or the checkpoint of a model"
            )
        if not storage.is_file(path):
            fix = f"pass --{flag}, or the folder of a model"
            raise UserError("no such file", path=path, fix=fix)
        return path

    @functools.cached_property
    def config_file(self) -> str:
        """The file of the sizes: --bert_config_file, or that of the model.

        Raises:
            UserError: there is none.
        """
        name = {"huggingface": "config.json", "hub": "saved_model.pb"}
        return self.given.bert_config_file or self._find(
            name.get(self.format, "bert_config.json"), "bert_config_file"
        )

    @functools.cached_property
    def config(self) -> BertConfig:
        """Sizes of the network."""
        if not self.given.bert_config_file:
            if self.format == "huggingface":
                return huggingface.read_config(self.config_file)
            if self.format == "hub":
                from bert.modeling.formats import model_garden, saved_models

                values, _ = self._module
                heads = model_garden.attention_heads(self._variables)
                return saved_models.read_config(self.path, values, heads)
        return BertConfig.from_json_file(self.config_file)

    @functools.cached_property
    def casing(self) -> tuple[bool | None, bool | None]:
        """The recorded do_lower_case and strip_accents; None: unknown."""
        if self.format == "huggingface":
            return self._huggingface[1:]
        if self.format == "hub":
            from bert.modeling.formats import saved_models

            return saved_models.read_casing(self._variables)
        if not self.path:
            return None, None
        return recorded_casing(self.path)

    @functools.cached_property
    def tokenizers(self) -> list[Tokenizer]:
        """Of --vocab_file, and of each vocabulary beside the checkpoint."""
        casing = self.given.do_lower_case, self.given.strip_accents
        if None in casing:
            pairs = zip(self.casing, casing)
            casing = [x if y is None else y for x, y in pairs]
        paths = []
        if self.path:
            paths.append(beside(self.path, VOCABULARY))
            paths.append(asset(folder_of(self.path)))
        paths = [x for x in paths if storage.is_file(x)]
        if self.given.vocab_file:
            paths.insert(0, self.given.vocab_file)
        listed = [Tokenizer(x, *casing) for x in dict.fromkeys(paths)]
        if self.format == "huggingface" and self._huggingface.tokens:
            path = beside(self.path, tokenizer_files.PIPELINE)
            tokens = self._huggingface.tokens
            listed.append(Tokenizer(path, *casing, tokens=tokens))
        return listed

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        """The first of `tokenizers`.

        Raises:
            UserError: there is no vocabulary, or another has other ids.
        """
        self.check_vocabulary()
        return self.tokenizers[0]

    @functools.cached_property
    def max_length(self) -> int:
        """Longest sequence in tokens: as recorded, else all positions."""
        positions = self.config.max_position_embeddings
        if not self.path:
            return positions
        recorded = tokenizer_files.read_length(folder_of(self.path))
        return min(recorded or positions, positions)

    def check_vocabulary(self, tokenizer: Tokenizer | None = None) -> None:
        """Rejects a vocabulary with other ids than the model's.

        New words may fill `[unusedN]` slots, or follow the last token.

        Args:
            tokenizer: of another vocabulary; None: the first of `tokenizers`.

        Raises:
            UserError: there is no vocabulary, a token has another id, or the
                vocabulary of a run was edited.
        """
        if not self.tokenizers and tokenizer is None:
            self._find(VOCABULARY, "vocab_file")
        for other in self.tokenizers:
            if self.path and other.path == beside(self.path, VOCABULARY):
                hashes = hashes_of(other.tokens, None)
                _check_unchanged(self.path, VOCABULARY, hashes)
            fix = f"pass --vocab_file={other.path}"
            if other.path.endswith(".json"):
                fix = "correct one of the two files"
            tokenizer = tokenizer or other
            tokenizer.same_as(other, fix, may_extend=True)

    def check(self) -> None:
        """Checks that vocabulary, casing and config belong together.

        Raises:
            UserError: the vocabulary is larger than the embeddings, or the
                model was trained with another casing.
        """
        tokenizer = self.tokenizer
        self.config.check_vocabulary(
            tokenizer.tokens, tokenizer.path, self.config_file
        )
        self.check_casing(tokenizer)

    def check_casing(self, tokenizer: Tokenizer) -> None:
        """Checks that the model was trained with this casing.

        Raises:
            UserError: it was trained with another.
        """
        prefix = _prefix_of(self.path)
        tokenization.validate_case_matches_checkpoint(
            tokenizer.do_lower_case, prefix
        )
        lower, strip = self.casing
        if lower is None:
            return
        for name, given, expected in (
            ("do_lower_case", tokenizer.do_lower_case, lower),
            (
                "strip_accents",
                tokenizer.strips_accents,
                tokenization.strips_accents(lower, strip),
            ),
        ):
            if given != expected:
                raise UserError(
                    f"--{name}={given}",
                    path=prefix,
                    expected=f"{expected}, which it was trained with",
                )

    @functools.cached_property
    def task(self) -> dict | None:
        """Kind and names of its labels, as in `task.json`, or None."""
        if self.format == "huggingface":
            return huggingface.read_task(self.path)
        return None if self.format == "hub" else task_of(self.path)

    def resolve(self) -> str:
        """The prefix of its checkpoint, or the folder of another format.

        Raises:
            UserError: a folder has no checkpoint, or several.
        """
        if self.format in ("huggingface", "hub"):
            return self.path
        from bert.modeling import checkpoints

        return checkpoints.resolve(self.path)

    def weights(self, with_optimizer: bool = False) -> tuple[dict, list[str]]:
        """Reads the weights.

        Args:
            with_optimizer: read optimizer slots and the step, too.

        Returns:
            original name -> array; names of variables without one.
        """
        if self.format == "hub":
            return self._module
        if self.format == "huggingface":
            return huggingface.read(self.path)
        from bert.modeling import checkpoints

        if self.format == "google":
            return checkpoints.read(self.path, with_optimizer), []
        from bert.modeling.formats import model_garden

        return model_garden.read(self.resolve())

    @functools.cached_property
    def _huggingface(self) -> tokenizer_files.Tokenizer:
        return tokenizer_files.read(self.path)

    @functools.cached_property
    def _variables(self) -> str:
        from bert.modeling.formats import saved_models

        return saved_models.variables_of(self.path)

    @functools.cached_property
    def _module(self) -> tuple[dict, list[str]]:
        from bert.modeling.formats import model_garden

        return model_garden.read(self._variables)


def _format_of(path: str) -> str:
    """The format of a model's folder or checkpoint."""
    if storage.is_file(os.path.join(folder_of(path), "saved_model.pb")):
        return "hub"
    is_theirs = storage.is_folder(path) and (
        storage.is_file(os.path.join(path, "config.json"))
        or storage.find(path, "*.safetensors")
    )
    if is_theirs and not storage.find(path, "*.index"):
        return "huggingface"
    index = f"{_prefix_of(path)}.index"
    if storage.is_file(index):
        with storage.open_file(index, "rb") as file:
            if _OBJECTS in file.read(_START):
                return "model_garden"
    return "google"


def folder_of(path: str) -> str:
    """Returns the folder of a checkpoint, given as folder or prefix."""
    if storage.is_folder(path):
        return path
    return os.path.dirname(storage.absolute(path))


def beside(path: str, name: str) -> str:
    """The path of a file beside a checkpoint.

    The best checkpoint of a run is in a folder of its own, below the others.

    Args:
        path: the checkpoint, as folder or prefix.
        name: name of the file.
    """
    folder = folder_of(path).rstrip("/")
    found = os.path.join(folder, name)
    if os.path.basename(folder) == "best" and not storage.is_file(found):
        return os.path.join(os.path.dirname(folder), name)
    return found


def asset(folder: str) -> str:
    """Path of the vocabulary of a SavedModel: its text file, or vocab.txt."""
    assets = os.path.join(folder, "assets")
    paths = storage.find(assets, "*.txt")
    return paths[0] if len(paths) == 1 else os.path.join(assets, "vocab.txt")


def recorded_settings(path: str) -> dict:
    """Reads the flags that a checkpoint was trained with; {} if unknown.

    Args:
        path: the checkpoint, as prefix or as folder, which means the newest
            that is not damaged, as a run resumes from it.

    Raises:
        UserError: its JSON is damaged.
    """
    *newer, oldest = _prefixes_of(path)
    for prefix in newer:
        with contextlib.suppress(UserError):
            return _settings_of(prefix)
    return _settings_of(oldest)


def _settings_of(prefix: str) -> dict:
    path = f"{prefix}.json"
    if not storage.exists(path):
        return {}
    return json_files.read(path, _Description, has_nan=True).settings or {}


def hashes_of(tokens: list[str] | None, task: dict | None) -> dict[str, str]:
    """Settings of a run by which edits of its files are noticed.

    Args:
        tokens: of its vocabulary, in order; None: unknown.
        task: its `task.json`, or None. The length is the user's to change.
    """
    values = {VOCABULARY: tokens}
    values[TASK] = task and [task["kind"], task["labels"]]
    return {
        _HASH.format(name): hashlib.sha256(json.dumps(x).encode()).hexdigest()
        for name, x in values.items()
        if x is not None
    }


def _check_unchanged(path: str, name: str, hashes: dict[str, str]) -> None:
    """Rejects a file beside a checkpoint that was edited after its training."""
    key = _HASH.format(name)
    if recorded_settings(path).get(key) not in (None, hashes[key]):
        raise UserError(
            "was edited after the training",
            path=beside(path, name),
            expected="the file that the run wrote",
            fix="restore it, or copy the model again",
        )


def recorded_casing(path: str) -> tuple[bool | None, bool | None]:
    """Reads the casing that a checkpoint was trained with.

    Args:
        path: the checkpoint, as for `recorded_settings`. The JSON of our own
            checkpoints is read first, then `tokenizer_config.json` beside it.

    Returns:
        do_lower_case, or None if unknown, and strip_accents, or None if it
        equals do_lower_case.
    """
    settings = recorded_settings(path)
    with json_files.reported(f"{_prefix_of(path)}.json"):
        casing = msgspec.convert(settings, tokenizer_files.Casing)
    if casing.do_lower_case is None:
        return tokenizer_files.read_casing(folder_of(path))
    return casing.do_lower_case, casing.strip_accents


def recorded_task(folder: str) -> dict | None:
    """Reads the `task.json` of a folder, if there is one.

    Returns:
        `kind` of the labels, and `labels`, their names in order; of a run,
        also `max_seq_length`, unless an earlier version wrote it.

    Raises:
        UserError: it is damaged.
    """
    path = os.path.join(folder, TASK)
    if not storage.exists(path):
        return None
    return json_files.read(path, _Task, fix="copy it again")


def write_task(folder: str, task: dict) -> None:
    """Writes the `task.json` of a folder."""
    described = json.dumps(task, indent=2, ensure_ascii=False)
    storage.write_whole(os.path.join(folder, TASK), f"{described}\n")


def task_of(path: str) -> dict | None:
    """Reads the `task.json` beside a checkpoint, or one folder above.

    The best checkpoint of a run is in a folder below that of the run.

    Args:
        path: the checkpoint, as folder or prefix.

    Raises:
        UserError: it is damaged, or was edited after the training.
    """
    task = recorded_task(os.path.dirname(beside(path, TASK)))
    if task:
        _check_unchanged(path, TASK, hashes_of(None, task))
    return task


def _prefix_of(path: str) -> str:
    """The prefix of the newest checkpoint of a folder, by its step."""
    return _prefixes_of(path)[0]


def _prefixes_of(path: str) -> list[str]:
    """The prefixes of the checkpoints of a folder, the newest first."""
    if not storage.is_folder(path):
        return [path]
    indexes = storage.find(path.rstrip("/"), "*.index")
    found = [x.removesuffix(".index") for x in indexes]
    return sorted(found, key=_step_of, reverse=True) or [path]


def step_of(path: str) -> int:
    """Returns the step of a checkpoint, given as folder or prefix; or 0."""
    return _step_of(_prefix_of(path))


def _step_of(prefix: str) -> int:
    step = re.search(r"-(\d+)$", prefix)
    return int(step[1]) if step else 0
