"""The folder of a model: a checkpoint, and the files beside it.

    google        bert_model.ckpt, or the checkpoints of a run of ours;
                  bert_config.json, vocab.txt, tokenizer_config.json
    huggingface   model.safetensors, config.json, vocab.txt, tokenizer.json
    model_garden  as google, with other names of variables
    export        saved_model.pb, variables/, and the files of google
    hub           saved_model.pb, variables/, assets/vocab.txt
    openvino      as google, with openvino_model.xml and .bin for the weights

The best checkpoint of a run is in a folder of its own, below the others.
"""

import dataclasses
import functools
import os

from bert.common import storage
from bert.common.errors import UserError
from bert.common.flags import flag, group
from bert.common.formats import published
from bert.data.text import tokenization, tokenizer_files
from bert.data.text.casing import Casing
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.config import BertConfig
from bert.modeling.formats import checkpoint_files, readers, sentence_files
from bert.modeling.formats.checkpoint_files import VOCABULARY, beside
from bert.modeling.formats.readers import READERS


@dataclasses.dataclass(frozen=True)
class ModelFiles:
    """Config, vocabulary and casing; by default those of the checkpoint."""

    bert_config_file: str | None = flag(
        None, "Default: bert_config.json beside the checkpoint.", path=True
    )
    vocab_file: str | None = flag(
        None, "Default: vocab.txt beside the checkpoint.", path=True
    )
    casing: Casing = group(Casing)


@dataclasses.dataclass(frozen=True)
class ModelFolder:
    """A model of any format; each of its files is read once, when needed.

    Attributes:
        path: its folder, or the prefix of its checkpoint; "": flags alone.
        format: a key of `READERS`.
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
        path = sentence_files.network_of(path)
        return cls(path, readers.format_of(path), given)

    def _find(self, name: str, flag: str) -> str:
        if not self.path:
            raise UserError(
                f"no --{flag}", fix="pass it, or the checkpoint of a model"
            )

        path = beside(self.path, name)
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
        return self.given.bert_config_file or self._find(
            self._reader.sizes, "bert_config_file"
        )

    @functools.cached_property
    def config(self) -> BertConfig:
        """Sizes of the network."""
        if self.given.bert_config_file:
            return BertConfig.from_json_file(self.config_file)
        return self._reader.config(self.config_file)

    @functools.cached_property
    def casing(self) -> Casing:
        """The recorded casing, with None for what is unknown."""
        return self._recorded.casing

    @functools.cached_property
    def tokenizers(self) -> list[Tokenizer]:
        """Of --vocab_file, and of each vocabulary beside the checkpoint."""
        paths = []
        if self.path:
            folder = checkpoint_files.folder_of(self.path)
            beside_it = beside(self.path, VOCABULARY)
            paths = [beside_it, checkpoint_files.asset(folder)]
            paths = [path for path in paths if storage.is_file(path)]

        # The first is the one that is used: a flag wins.
        if self.given.vocab_file:
            paths.insert(0, self.given.vocab_file)

        casing = self.given.casing.or_else(self.casing)
        listed = [Tokenizer.of(path, casing) for path in dict.fromkeys(paths)]

        # A pipeline holds a vocabulary of its own, without a text file.
        if self._recorded.tokens:
            path = beside(self.path, tokenizer_files.PIPELINE)
            tokens = self._recorded.tokens
            listed.append(Tokenizer.of(path, casing, tokens=tokens))
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
        recorded = tokenizer_files.read_length(
            checkpoint_files.folder_of(self.path)
        )
        return min(recorded or positions, positions)

    @functools.cached_property
    def vectors(self) -> sentence_files.TextVectors | None:
        """How one vector of a text is made; None if no file tells it."""
        if not self.path:
            return None
        path = beside(self.path, sentence_files.MODULES)
        return sentence_files.read(os.path.dirname(path))

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

        # There may be several, of which a user has edited only one.
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
                was trained with another casing, or its task has longer inputs
                than the config has positions.
        """
        tokenizer = self.tokenizer
        self.config.check_vocabulary(
            tokenizer.tokens, tokenizer.path, self.config_file
        )
        self.check_casing(tokenizer)

        positions = self.config.max_position_embeddings
        length = (self.task or {}).get("max_seq_length", positions)
        if length > positions:
            raise UserError(
                f"max_seq_length {length}",
                path=beside(self.path, checkpoint_files.TASK),
                expected=f"at most {positions}, the max_position_embeddings of "
                f"{self.config_file}",
            )

    def check_casing(self, tokenizer: Tokenizer) -> None:
        """Checks that the model was trained with this casing.

        Raises:
            UserError: it was trained with another.
        """
        prefix = checkpoint_files.prefix_of(self.path)
        tokenization.validate_case_matches_checkpoint(
            tokenizer.do_lower_case, prefix
        )

        trained, given = self.casing, tokenizer.casing

        # Where nothing is recorded, the name of the checkpoint must do.
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
    def task(self) -> dict | None:
        """Kind and names of its labels, as in `task.json`, or None."""
        return self._reader.labels(self.path) if self.path else None

    def resolve(self) -> str:
        """The prefix of its checkpoint, or the folder of another format.

        Raises:
            UserError: a folder has no checkpoint, or several.
        """
        return self._reader.resolve(self.path)

    def check_sizes(self, config: BertConfig | None = None) -> None:
        """Compares a config with the shapes of the weights.

        A config of a stranger is checked before a network is built of it,
        which may have any size.

        Args:
            config: sizes of the network; None: those of the model.

        Raises:
            UserError: a size differs.
        """
        from bert.modeling import checkpoints  # imports TensorFlow

        if shapes := self._reader.shapes(self.path):
            config = config or self.config
            checkpoints.check_sizes(config, shapes, self.resolve())

    def weights(self, with_optimizer: bool = False) -> readers.Weights:
        """Reads the weights.

        Args:
            with_optimizer: read optimizer slots and the step, too.

        Returns:
            original name -> array; names of variables without one.
        """
        return self._reader.weights(self.path, with_optimizer)

    @property
    def _reader(self) -> readers.Reader:
        return READERS[self.format]

    @functools.cached_property
    def _recorded(self) -> tokenizer_files.Recorded:
        if not self.path:
            return tokenizer_files.Recorded(None, Casing())
        return self._reader.tokenizer(self.path)
