"""Tokenizer files of Hugging Face in a model's folder.

    tokenizer_config.json    the arguments of a tokenizer class
    tokenizer.json           a pipeline: normalizer, pre-tokenizer, model

Settings that `bert/data/text/tokenization.py` does not support are rejected,
as the model would receive other tokens than in training.
"""

import dataclasses
import json
import os
from collections.abc import Iterable
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from bert.common import storage
from bert.common.atomic import write_whole
from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.data.text import vocabulary
from bert.data.text.casing import Casing

CONFIG, PIPELINE = "tokenizer_config.json", "tokenizer.json"
_ADDED = "added_tokens.json"
_MODEL = "config.json"  # may name the tokenizer's class
_SENTENCE = "sentence_bert_config.json"  # written by sentence-transformers
_SIZES = (_MODEL, "bert_config.json")
_UNSUPPORTED = "this tokenizer is not supported"


class _Lengths(msgspec.Struct):
    max_seq_length: int | None = None
    model_max_length: int | float | None = None  # 1e30 means no limit
    max_position_embeddings: int | None = None


class _Added(msgspec.Struct):
    content: str


class _Config(msgspec.Struct):
    # The last two classes are defined only by their pipeline.
    tokenizer_class: (
        Literal[
            "BertTokenizer",
            "BertTokenizerFast",
            "PreTrainedTokenizerFast",
            "TokenizersBackend",
        ]
        | None
    ) = None
    do_basic_tokenize: bool = True
    tokenize_chinese_chars: bool = True
    never_split: Annotated[list, msgspec.Meta(max_length=0)] | None = None
    truncation_side: Literal["right", "left"] = "right"
    do_lower_case: bool | None = None
    strip_accents: bool | None = None
    additional_special_tokens: list[str | _Added] | None = None
    added_tokens_decoder: dict[str, _Added] | None = None


class _Normalizer(msgspec.Struct):
    type: Literal["BertNormalizer"] = "BertNormalizer"
    clean_text: bool = True
    handle_chinese_chars: bool = True
    lowercase: bool = True
    strip_accents: bool | None = None


class _PreTokenizer(msgspec.Struct):
    type: Literal["BertPreTokenizer"] = "BertPreTokenizer"


class _Ends(msgspec.Struct, tag_field="type", tag="BertProcessing"):
    cls: tuple[Literal["[CLS]"], int]
    sep: tuple[Literal["[SEP]"], int]


class _Piece(msgspec.Struct):
    id: str
    type_id: int = 0


class _Template(msgspec.Struct, tag_field="type", tag="TemplateProcessing"):
    single: list[dict[str, _Piece]]
    pair: list[dict[str, _Piece]]


class _Truncation(msgspec.Struct):
    direction: Literal["Right"] = "Right"


class _Model(msgspec.Struct):
    type: Literal["WordPiece"] = "WordPiece"
    vocab: dict[str, Annotated[int, msgspec.Meta(ge=0)]] = {}
    unk_token: Literal["[UNK]"] = "[UNK]"
    continuing_subword_prefix: Literal["##"] = "##"
    # With 100, as in published models, longer words are [UNK]; here from 201.
    max_input_chars_per_word: Literal[100, 200] = 100


class _Pipeline(msgspec.Struct):
    normalizer: _Normalizer
    pre_tokenizer: _PreTokenizer
    model: _Model
    post_processor: _Ends | _Template
    truncation: _Truncation | None = None
    added_tokens: list[_Added] | None = None


class Recorded(NamedTuple):
    """Vocabulary and normalization in the files of a model.

    Attributes:
        tokens: list of str or None. Tokens in the order of their ids; None
            without a pipeline.
        casing: Casing. None for values that are not in the files.
    """

    tokens: list[str] | None
    casing: Casing


def read(folder: str) -> Recorded:
    """Reads the tokenizer of a model.

    Args:
        folder: str. The model's folder. Both files are optional.

    Returns:
        Recorded. The tokenizer's vocabulary and normalization.

    Raises:
        UserError: A file is damaged, the files contradict each other, or a
            setting is not supported.
    """
    tokens, casing = _read_pipeline(os.path.join(folder, PIPELINE))
    path, model = (os.path.join(folder, x) for x in (CONFIG, _MODEL))
    config = _read_supported(path, _Config)
    _read_supported(model, _Config)

    _check_true(path, config, "do_basic_tokenize", "tokenize_chinese_chars")
    _check_added(path, config.additional_special_tokens or [])
    _check_added(path, (config.added_tokens_decoder or {}).values())
    _check_added(os.path.join(folder, _ADDED), _read(folder, _ADDED, dict))

    recorded = Casing(config.do_lower_case, config.strip_accents)
    if tokens is None:
        return Recorded(None, _lowered(folder, recorded))

    # Both files have a casing, in which None means as do_lower_case.
    both = recorded.or_else(casing)
    if (both.do_lower_case, both.strips_accents) != (
        casing.do_lower_case,
        casing.strips_accents,
    ):
        raise UserError(
            f"{both}",
            path=path,
            expected=f"{casing}, as in {PIPELINE}",
            fix="correct one of the two files",
        )
    return Recorded(tokens, _lowered(folder, casing))


def _lowered(folder: str, casing: Casing) -> Casing:
    """Returns the casing, with lower-casing by sentence-transformers."""
    if not _read(folder, _SENTENCE, Casing).do_lower_case:
        return casing

    # Lower-casing the text before a cased tokenizer keeps the accents.
    return Casing(True, casing.strips_accents)


def read_casing(folder: str) -> Casing:
    """Reads the casing of a `tokenizer_config.json`."""
    return _read(folder, CONFIG, Casing)


def read_length(folder: str) -> int | None:
    """Reads the maximum sequence length of a model; None if unknown.

    It is the length of sentence-transformers, or else of the tokenizer, limited
    to the number of position embeddings.

    Args:
        folder: str. The model's folder.

    Raises:
        UserError: A file is damaged.
    """
    sentence, config, *sizes = (
        _read(folder, name, _Lengths) for name in (_SENTENCE, CONFIG, *_SIZES)
    )
    recorded = sentence.max_seq_length or config.model_max_length
    positions = [size.max_position_embeddings for size in sizes]
    limits = [length for length in (recorded, *positions) if length]
    return int(min(limits)) if limits else None


def truncates_start(folder: str) -> bool:
    """Returns whether transformers drops the first tokens of longer texts."""
    return _read(folder, CONFIG, _Config).truncation_side == "left"


def write_config(
    folder: str,
    casing: Casing,
    max_length: int | None = None,
    truncate_start: bool = False,
) -> None:
    """Writes a `tokenizer_config.json`, next to `vocab.txt`.

    Args:
        folder: str. Output folder.
        casing: Casing. Casing of the tokenizer.
        max_length: int or None. Maximum sequence length. With None,
            transformers does not truncate. Default: None.
        truncate_start: bool. See `truncates_start`. Default: False.
    """
    values = {
        "tokenizer_class": "BertTokenizer",
        **dataclasses.asdict(casing),
        "tokenize_chinese_chars": True,
    }
    if max_length:
        values["model_max_length"] = max_length
    if truncate_start:
        values["truncation_side"] = "left"
    text = json.dumps(values, indent=2, sort_keys=True)
    write_whole(os.path.join(folder, CONFIG), f"{text}\n")


def write_pipeline(folder: str, tokens: list[str], casing: Casing) -> None:
    """Writes a `tokenizer.json` for the `tokenizers` library.

    Args:
        folder: str. Output folder.
        tokens: list of str. Tokens of the vocabulary in the order of their
            ids.
        casing: Casing. Casing of the tokenizer.
    """
    ids = {token: i for i, token in enumerate(tokens)}

    # The library writes all fields of a special token, so readers expect them.
    added = {
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
    special = sorted({ids[x] for x in vocabulary.SPECIAL_TOKENS if x in ids})
    ends = {"sep": vocabulary.SEP, "cls": vocabulary.CLS}

    # The steps of the pipeline.
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": casing.strip_accents,
        "lowercase": casing.do_lower_case,
    }
    model = {
        "type": "WordPiece",
        "unk_token": vocabulary.UNK,
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 200,
        "vocab": ids,
    }
    post_processor = {
        "type": "BertProcessing",
        **{name: [token, ids[token]] for name, token in ends.items()},
    }

    pipeline = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": tokens[i], **added} for i in special
        ],
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": post_processor,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": model,
    }

    text = json.dumps(pipeline, indent=2, ensure_ascii=False)
    write_whole(os.path.join(folder, PIPELINE), f"{text}\n")


def _read_pipeline(path: str) -> Recorded:
    """Reads tokens and casing of a `tokenizer.json`, if it exists."""
    if not storage.exists(path):
        return Recorded(None, Casing())

    pipeline = _read_supported(path, _Pipeline, "a tokenizer of BERT")

    # Checks that the types above cannot express.
    normalizer, ids = pipeline.normalizer, pipeline.model.vocab
    _check_true(path, normalizer, "clean_text", "handle_chinese_chars")
    _check_template(path, pipeline.post_processor)
    _check_added(path, pipeline.added_tokens or [])

    # The id of a token is its line in vocab.txt, so gaps are not allowed.
    tokens = sorted(ids, key=ids.get)
    if sorted(ids.values()) != list(range(len(ids))):
        raise UserError("ids with gaps", path=path, expected="0, 1, 2, ...")
    for token in tokens:
        # As a line of vocab.txt it would become other tokens.
        if not token or token.split("\n")[0].strip(" \t\r") != token:
            raise UserError(
                f"the token {token!r}",
                path=path,
                expected="no line break in it, and no white space at its ends",
                fix=_UNSUPPORTED,
            )

    casing = Casing(normalizer.lowercase, normalizer.strip_accents)
    return Recorded(tokens, casing)


def _check_template(path: str, processor: _Ends | _Template) -> None:
    """Rejects special tokens or segments that differ from BERT's."""
    if isinstance(processor, _Ends):
        return

    # As token:segment, so that a message shows the whole template.
    for name, template in (
        ("single", "[CLS]:0 A:0 [SEP]:0"),
        ("pair", "[CLS]:0 A:0 [SEP]:0 B:1 [SEP]:1"),
    ):
        pieces = [
            f"{piece.id}:{piece.type_id}"
            for part in getattr(processor, name)
            for piece in part.values()
        ]
        given = " ".join(pieces)
        if given != template:
            raise UserError(
                f"post_processor.{name} is {given!r}",
                path=path,
                expected=template,
                fix=_UNSUPPORTED,
            )


def _check_true(path: str, settings: msgspec.Struct, *names: str) -> None:
    for name in names:
        if not getattr(settings, name):
            raise UserError(
                f"{name} is False",
                path=path,
                expected="True",
                fix=_UNSUPPORTED,
            )


def _check_added(path: str, tokens: Iterable[str | _Added]) -> None:
    # Added tokens are never split in Hugging Face, but would be split here.
    for token in tokens:
        content = token.content if isinstance(token, _Added) else token
        if content not in vocabulary.SPECIAL_TOKENS:
            raise UserError(
                f"the added token {content!r}",
                path=path,
                expected=f"only {', '.join(vocabulary.SPECIAL_TOKENS)}",
                fix=_UNSUPPORTED,
            )


def _read(folder: str, name: str, kind: Any) -> Any:
    """Reads a JSON file; returns an empty value if it does not exist."""
    path = os.path.join(folder, name)
    return json_files.read(path, kind) if storage.exists(path) else kind()


def _read_supported(path: str, kind: Any, expected: str | None = None) -> Any:
    """Reads a JSON file whose type rejects unsupported tokenizers."""
    # A damaged file is not an unsupported one, and config.json has more than
    # the tokenizer, so JSON is parsed first.
    values = json_files.read(path) if storage.exists(path) else {}
    with json_files.reported(path, expected, _UNSUPPORTED):
        return msgspec.convert(values, kind)
