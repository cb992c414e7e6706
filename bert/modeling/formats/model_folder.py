"""The files of a model of any format: a checkpoint, and those beside it.

    google        bert_model.ckpt, or the checkpoints of a run;
                  bert_config.json, vocab.txt, tokenizer_config.json
    huggingface   model.safetensors, config.json, vocab.txt, tokenizer.json
    model_garden  as google, with other names of variables
    export        saved_model.pb, variables/, and the files of google
    tf_hub        saved_model.pb, variables/, assets/vocab.txt
    openvino      as google, with openvino_model.xml and .bin for the weights

The best checkpoint of a run is in a subfolder of its own.
"""

import dataclasses
import functools
import hashlib
import json
import os
from typing import Any, Self

from bert.common import storage
from bert.common.errors import UserError
from bert.common.flags import flag
from bert.common.formats import downloads
from bert.common.progress import log
from bert.data.pooling import PoolingConfig
from bert.data.text import tokenization, tokenizer_files
from bert.data.text.casing import Casing
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.config import BertConfig
from bert.modeling.formats import (
    checkpoint_files,
    kept_layers,
    model,
    readers,
    sentence_files,
)
from bert.modeling.formats.checkpoint_files import VOCABULARY, beside
from bert.modeling.formats.model import Model
from bert.modeling.formats.readers import READERS


@dataclasses.dataclass(frozen=True)
class ModelFiles(Casing):
    """Config, vocabulary and casing that override the checkpoint's files."""

    bert_config_file: str | None = flag(
        None, "Default: bert_config.json beside the checkpoint.", path=True
    )
    vocab_file: str | None = flag(
        None, "Default: vocab.txt beside the checkpoint.", path=True
    )


@dataclasses.dataclass(frozen=True)
class ModelFolder:
    """The files of a model; each is read once, when it is needed.

    `read` reads all of them.

    Attributes:
        path: str. Folder of the model, or prefix of its checkpoint. "" if only
            flags are given.
        format: str. Key of `READERS`.
        overrides: ModelFiles. Flags that override the files beside it.
            Default: no flags.
        layers: tuple of int. Layers of the encoder that are read, see
            `keep_layers`. Default: (), all layers.
    """

    path: str
    format: str
    overrides: ModelFiles = ModelFiles()
    layers: tuple[int, ...] = ()

    @classmethod
    def open(
        cls,
        path: str | None,
        overrides: ModelFiles = ModelFiles(),
    ) -> Self:
        """Finds a model, without TensorFlow.

        Args:
            path: str or None. Folder, checkpoint prefix, or name of a published
                model. None: the flags name the config and the vocabulary.
            overrides: ModelFiles. Flags that override the files beside the
                checkpoint. Default: no flags.

        Raises:
            UserError: the model does not exist.
        """
        if not path:
            return cls("", "google", overrides)
        path = downloads.fetch(path)
        if not storage.any_starts_with(path):
            path = path.rstrip("/")  # the shell completes names of folders
            raise UserError(
                "no such checkpoint",
                path=path,
                expected=f"the file {path}.index, or a folder of checkpoints",
                fix=downloads.advice(path),
            )
        path = sentence_files.network_of(path)
        return cls(path, readers.format_of(path), overrides)

    def _find(self, name: str, flag: str) -> str:
        if not self.path:
            raise UserError(
                f"no --{flag}", fix="pass it, or a model as --init_checkpoint"
            )

        path = beside(self.path, name)
        if not storage.is_file(path):
            fix = f"pass --{flag}, or the folder of a model"
            raise UserError("no such file", path=path, fix=fix)
        return path

    @functools.cached_property
    def config_file(self) -> str:
        """File of the sizes: --bert_config_file, else the model's own.

        Raises:
            UserError: the file does not exist.
        """
        return self.overrides.bert_config_file or self._find(
            self._reader.sizes, "bert_config_file"
        )

    @functools.cached_property
    def config(self) -> BertConfig:
        """Sizes of the network."""
        if self.overrides.bert_config_file:
            config = BertConfig.from_json_file(self.config_file)
        else:
            config = self._reader.config(self.config_file)
        count = len(self.layers) or config.num_hidden_layers
        return dataclasses.replace(config, num_hidden_layers=count)

    @functools.cached_property
    def casing(self) -> Casing:
        """Recorded casing; its fields are None if they are unknown."""
        return self._recorded.casing

    @functools.cached_property
    def tokenizers(self) -> list[Tokenizer]:
        """One for --vocab_file, and for each vocabulary of the checkpoint."""
        paths = []
        if self.path:
            folder = checkpoint_files.folder_of(self.path)
            beside_it = beside(self.path, VOCABULARY)
            paths = [beside_it, checkpoint_files.asset(folder)]
            paths = [path for path in paths if storage.is_file(path)]

        # The first one is used, so the flag comes first.
        if self.overrides.vocab_file:
            paths.insert(0, self.overrides.vocab_file)

        casing = self.overrides.or_else(self.casing)
        listed = [Tokenizer.of(path, casing) for path in dict.fromkeys(paths)]

        # A pipeline contains a vocabulary, without a text file.
        if self._recorded.tokens:
            path = beside(self.path, tokenizer_files.PIPELINE)
            tokens = self._recorded.tokens
            listed.append(Tokenizer.of(path, casing, tokens=tokens))
        return listed

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        """The first of `tokenizers`.

        Raises:
            UserError: the vocabulary is missing, or vocabularies of the model
                have different ids.
        """
        self.check_vocabulary()
        return self.tokenizers[0]

    @functools.cached_property
    def max_length(self) -> int:
        """Longest sequence in tokens, as recorded; else all positions."""
        positions = self.config.max_position_embeddings
        if not self.path:
            return positions
        recorded = tokenizer_files.read_length(
            checkpoint_files.folder_of(self.path)
        )
        return min(recorded or positions, positions)

    @functools.cached_property
    def pooling_config(self) -> PoolingConfig | None:
        """Pooling that computes embeddings of texts; None if unknown."""
        if not self.path:
            return None
        path = beside(self.path, sentence_files.MODULES)
        return sentence_files.read(os.path.dirname(path))

    def check_vocabulary(self, tokenizer: Tokenizer | None = None) -> None:
        """Rejects a vocabulary whose ids differ from the model's.

        New words may fill `[unusedN]` slots, or follow the last token.

        Args:
            tokenizer: Tokenizer or None. Tokenizer with another vocabulary.
                Default: None, the first of `tokenizers`.

        Raises:
            UserError: the vocabulary is missing, a token has another id, or
                the vocabulary of a run was edited.
        """
        if not self.tokenizers and tokenizer is None:
            self._find(VOCABULARY, "vocab_file")

        # There may be several files, and only one may have been edited.
        for other in self.tokenizers:
            if self.path and other.path == beside(self.path, VOCABULARY):
                hashes = checkpoint_files.hashes_of(other.tokens, None)
                checkpoint_files.check_unchanged(self.path, VOCABULARY, hashes)
            fix = f"pass --vocab_file={other.path}"
            if other.path.endswith(".json"):
                fix = "correct one of the two files"
            tokenizer = tokenizer or other
            tokenizer.same_as(other, fix, may_extend=True)

    def check(self) -> None:
        """Checks that vocabulary, casing, length and config belong together.

        Raises:
            UserError: the vocabulary is larger than the embeddings, the model
                was trained with another casing, or the recorded length
                exceeds the positions of the config.
        """
        tokenizer = self.tokenizer
        self.config.check_vocabulary(
            tokenizer.tokens, tokenizer.path, self.config_file
        )
        self.check_casing(tokenizer)

        positions = self.config.max_position_embeddings
        length = (self.task_json or {}).get("max_seq_length", positions)
        if length > positions:
            raise UserError(
                f"max_seq_length {length}",
                path=beside(self.path, checkpoint_files.TASK),
                expected=f"at most {positions}, the max_position_embeddings of "
                f"{self.config_file}",
            )

    def check_casing(self, tokenizer: Tokenizer) -> None:
        """Checks that the model was trained with this casing.

        Args:
            tokenizer: Tokenizer. Tokenizer with the casing to check.

        Raises:
            UserError: the model was trained with another casing.
        """
        prefix = checkpoint_files.prefix_of(self.path)
        tokenization.validate_case_matches_checkpoint(
            tokenizer.do_lower_case, prefix
        )

        trained, given = self.casing, tokenizer.casing

        # Without a recorded casing, only the checkpoint's name is checked.
        if trained.do_lower_case is None:
            return
        for name, value, expected in (
            ("do_lower_case", given.do_lower_case, trained.do_lower_case),
            ("strip_accents", given.strips_accents, trained.strips_accents),
        ):
            if value != expected:
                raise UserError(
                    f"--{name}={value}",
                    path=prefix,
                    expected=f"{expected}, which it was trained with",
                )

    @functools.cached_property
    def task_json(self) -> dict | None:
        """Kind and names of the labels, as in `task.json`, or None."""
        return self._reader.labels(self.path) if self.path else None

    def keep_layers(self, given: tuple[str, ...]) -> Self:
        """Returns the model with some of its layers.

        Args:
            given: tuple of str. See `kept_layers.read`.

        Raises:
            UserError: the model has no such layer.
        """
        count, path = self.config.num_hidden_layers, self.config_file
        layers = kept_layers.read(given, count, path)
        return dataclasses.replace(self, layers=layers)

    def last(self) -> Self:
        """Returns the model at the last checkpoint of its run.

        It has the state of the optimizer, which the best checkpoint lacks.
        """
        path = checkpoint_files.prefix_of(self.path)
        return dataclasses.replace(self, path=path)

    def resolve(self) -> str:
        """Prefix of the checkpoint, or the folder of another format.

        Of a run it is the best checkpoint, if there is one; else the last.

        Raises:
            UserError: the folder has no checkpoints, or several.
        """
        return self._reader.resolve(self.path)

    def digest(self) -> str:
        """Returns a hash of everything that predictions depend on, in hex."""
        tokenizer = self.tokenizer
        pooling = self.pooling_config or PoolingConfig("none")
        files = [*self._reader.files(self.resolve()), self.config_file]
        values = [
            [storage.hash_file(path) for path in files],
            tokenizer.sha256,
            [tokenizer.do_lower_case, tokenizer.strips_accents],
            [self.max_length, self.layers, self.task_json],
            dataclasses.asdict(dataclasses.replace(pooling, mistake=None)),
        ]
        return hashlib.sha256(json.dumps(values).encode()).hexdigest()

    def check_sizes(self, config: BertConfig | None = None) -> None:
        """Compares a config with the shapes of the weights.

        An untrusted config may have any size, so it is checked before its
        network is built.

        Args:
            config: sizes of the network. Default: the sizes of the model.

        Raises:
            UserError: a size differs.
        """
        found = self._reader.shapes(self.path)
        if shapes := kept_layers.select(found, self.layers):
            config = config or self.config
            readers.checkpoints().check_sizes(config, shapes, self.resolve())

    def check_finite(self) -> None:
        """Rejects weights that are NaN or infinite; see `model`."""
        model.check_finite(self.values, self.path)

    @functools.cached_property
    def values(self) -> dict[str, Any]:
        """Weights, which stay in memory: original name -> array."""
        return self.weights()[0]

    def read(self) -> Model:
        """Reads the model to memory; flags override the recorded casing.

        Raises:
            UserError: a file is damaged, or the vocabulary does not fit.
        """
        tokenizers = self.tokenizers  # before weights, which take longer
        self.check_sizes()
        values, skipped = self.weights()

        # A checkpoint may also contain optimizer slots and the step.
        if self.format == "google":
            names = set(values)
            values = readers.checkpoints().of_network(values)
            skipped = sorted(names - values.keys())

        tokenizer = None
        if tokenizers:
            tokenizer = self.tokenizer.with_max_length(self.max_length)
            self.config.check_vocabulary(
                tokenizer.tokens, tokenizer.path, self.config_file
            )
        else:
            log("warning: no vocabulary beside the input, so none is written")
        return Model(
            self.resolve(),
            self.config,
            values,
            tokenizer,
            self.task_json,
            self.pooling_config,
            tuple(skipped),
        )

    def network(self, head: str | None = None, **options):
        """Builds the network with the weights.

        Args:
            head: str or None. Key of `task_heads.HEADS`. Default: None, only
                the encoder.
            **options: see `checkpoints.load_network`.

        Raises:
            UserError: a size of the config differs, or a weight is missing.
        """
        self.check_sizes()
        return readers.checkpoints().load_network(
            self.config, self.values, self.resolve(), head, **options
        )

    def weights(self, with_optimizer: bool = False) -> readers.Weights:
        """Reads the weights, which the caller keeps.

        Args:
            with_optimizer: bool. Whether to read optimizer slots and the step,
                too. Default: False.

        Returns:
            Original name -> array, and the names of unknown variables.
        """
        weights, skipped = self._reader.weights(self.path, with_optimizer)
        return kept_layers.select(weights, self.layers), skipped

    @property
    def _reader(self) -> readers.FormatReader:
        return READERS[self.format]

    @functools.cached_property
    def _recorded(self) -> tokenizer_files.Recorded:
        if not self.path:
            return tokenizer_files.Recorded(None, Casing())
        return self._reader.tokenizer(self.path)
