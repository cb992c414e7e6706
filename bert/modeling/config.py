"""Config of the network: the original's `bert_config.json`."""

import dataclasses
import difflib
import json
from collections.abc import Collection
from typing import Annotated

import msgspec

from bert.common.errors import UserError
from bert.common.formats import json_files

# Steps on CPUs have fused operations. For smaller sizes, compiling takes longer
# than a short run saves.
SMALLEST_HIDDEN_SIZE = 128

ACTIVATIONS = ("gelu", "gelu_new", "gelu_erf", "relu", "tanh", "linear")

# Keys of published configs that are ignored.
_HARMLESS = frozenset(
    """
    _name_or_path architectures attention_type bos_token_id
    chunk_size_feed_forward classifier_dropout directionality dtype
    eos_token_id finetuning_task gradient_checkpointing id2label is_decoder
    label2id model_type num_labels output_attentions output_hidden_states
    output_past pad_token_id pooler_fc_size pooler_num_attention_heads
    pooler_num_fc_layers pooler_size_per_head pooler_type problem_type
    return_dict sep_token_id tie_word_embeddings torch_dtype
    transformers_version use_cache
    """.split()
)

# Keys of published configs for which only one value is supported.
_FIXED = {"layer_norm_eps": 1e-12, "position_embedding_type": "absolute"}

_Size = Annotated[int, msgspec.Meta(ge=1, le=1 << 24)]
_Layers = Annotated[int, msgspec.Meta(ge=1, le=1000)]
_Rate = Annotated[float, msgspec.Meta(ge=0, lt=1)]


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """Sizes of a BERT; names and defaults are the original's.

        config = bert.BertConfig(vocab_size=97, num_hidden_layers=2)
        config = bert.BertConfig.from_json_file("model/bert_config.json")

    Attributes:
        vocab_size: int. V.
        hidden_size: int. H, a multiple of `num_attention_heads`. Default: 768.
        num_hidden_layers: int. L. Default: 12.
        num_attention_heads: int. A. Default: 12.
        intermediate_size: int. I. Default: 3072.
        hidden_act: str. One of `ACTIVATIONS`. "gelu" is the tanh form, as in
            the original code; "gelu_erf" is the exact form. Default: "gelu".
        hidden_dropout_prob: float. Dropout rate of embeddings and sublayer
            outputs. Default: 0.1.
        attention_probs_dropout_prob: float. Dropout rate of attention weights.
            Default: 0.1.
        max_position_embeddings: int. Maximum length of a sequence.
            Default: 512.
        type_vocab_size: int. Number of segments. Default: 16.
        initializer_range: float. Standard deviation of the initial weights.
            Default: 0.02.
    """

    vocab_size: _Size
    hidden_size: _Size = 768
    num_hidden_layers: _Layers = 12
    num_attention_heads: _Size = 12
    intermediate_size: _Size = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: _Rate = 0.1
    attention_probs_dropout_prob: _Rate = 0.1
    max_position_embeddings: _Size = 512
    type_vocab_size: _Size = 16
    initializer_range: Annotated[float, msgspec.Meta(gt=0, le=100)] = 0.02

    @property
    def operations_per_token(self) -> int:
        """Multiplications and additions of a training step for a token.

        Those of the weights of all layers, forward and twice as many backward.
        """
        h, i = self.hidden_size, self.intermediate_size
        return 6 * self.num_hidden_layers * (4 * h * h + 2 * h * i)

    def check_vocabulary(
        self, tokens: Collection[str], path: str, where: str
    ) -> None:
        """Checks that a vocabulary is not larger than the embedding table.

        Args:
            tokens: collection of str. All tokens.
            path: str. File of the vocabulary, for the message.
            where: str. Source of this config, for the message.

        Raises:
            UserError: the vocabulary is larger.
        """
        if len(tokens) > self.vocab_size:
            raise UserError(
                f"{len(tokens)} tokens",
                path=path,
                expected=f"at most {self.vocab_size}, vocab_size ({where})",
            )

    def check_length(self, length: int, flag: str, where: str) -> None:
        """Checks that sequences are not longer than the position embeddings.

        Args:
            length: int. Number of tokens in a sequence.
            flag: str. Name of the flag that sets it.
            where: str. Source of this config, for the message.

        Raises:
            UserError: the sequences are longer.
        """
        if length > self.max_position_embeddings:
            raise UserError(
                f"--{flag}={length}",
                expected="at most max_position_embeddings, "
                f"{self.max_position_embeddings} ({where})",
            )

    @classmethod
    def from_json_file(cls, path: str) -> "BertConfig":
        """Reads `bert_config.json`.

        Raises:
            UserError: the file is missing or not JSON, has an unknown or
                mistyped key, or inconsistent sizes.
        """
        values = json_files.read(path, expected="a bert_config.json")
        with json_files.reported(path):
            return cls.from_dict(values)

    @classmethod
    def from_dict(cls, values: dict) -> "BertConfig":
        """Checks a config's keys, types and ranges.

        Args:
            values: dict. Key -> value of `bert_config.json`.

        Raises:
            UserError: see `from_json_file`.
        """
        fields = {field.name for field in dataclasses.fields(cls)}

        # An unknown key may change the network, so it is an error.
        for key, value in values.items():
            if key in _FIXED and value != _FIXED[key]:
                raise UserError(
                    f"{key} is {value!r}", expected=repr(_FIXED[key])
                )
            if key not in fields | _FIXED.keys() | _HARMLESS:
                nearest = difflib.get_close_matches(key, fields, 1, 0.5)
                hint = f"did you mean {nearest[0]!r}?" if nearest else None
                raise UserError(f"unknown key {key!r}", fix=hint)

        with json_files.reported():
            config = msgspec.convert(values, cls)
        _check_sizes(config)
        return config

    def to_json(self) -> str:
        """The config as the text of a `bert_config.json`."""
        values = dataclasses.asdict(self)
        return json.dumps(values, indent=2, sort_keys=True) + "\n"


def _check_sizes(config: BertConfig) -> None:
    # Each head takes an equal part of H.
    if config.hidden_size % config.num_attention_heads:
        raise UserError(
            f"hidden_size is {config.hidden_size}",
            expected="a multiple of num_attention_heads, "
            f"{config.num_attention_heads}",
        )
    if config.hidden_act not in ACTIVATIONS:
        raise UserError(
            f"hidden_act is {config.hidden_act!r}",
            expected=f"one of {', '.join(ACTIVATIONS)}",
        )
