"""Tokenizer files of Hugging Face in a model's folder.

    tokenizer_config.json    the arguments of a tokenizer class
    tokenizer.json           a pipeline: normalizer, pre-tokenizer, model

Settings that `bert/data/text/tokenization.py` does not support are rejected by
name: the model would receive other tokens than in training.
"""

import dataclasses
import json
import os
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec

from bert.common import storage
from bert.common.atomic import write_whole
from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.data.text import vocabulary
from bert.data.text.casing import Casing

CONFIG, PIPELINE = "tokenizer_config.json", "tokenizer.json"
_ADDED, _SPECIAL = "added_tokens.json", "special_tokens_map.json"
_MODEL = "config.json"  # may name the tokenizer's class
_SENTENCE = "sentence_bert_config.json"  # of sentence-transformers
_SIZES = (_MODEL, "bert_config.json")

# The pipeline alone defines the behaviour of the generic classes.
_CLASSES = (None, "BertTokenizer", "BertTokenizerFast")
_GENERIC = ("PreTrainedTokenizerFast", "TokenizersBackend")
_NAMES = {
    "pad_token": vocabulary.PAD,
    "unk_token": vocabulary.UNK,
    "cls_token": vocabulary.CLS,
    "sep_token": vocabulary.SEP,
    "mask_token": vocabulary.MASK,
}
_LISTS = (
    "additional_special_tokens",
    "extra_special_tokens",
    "added_tokens_decoder",
)


class _Lengths(msgspec.Struct):
    max_seq_length: int | None = None
    model_max_length: int | float | None = None  # 1e30 where none is meant
    max_position_embeddings: int | None = None


class _Added(msgspec.Struct):
    content: str


_Token = str | _Added | None


class _Config(TypedDict, total=False):
    pad_token: _Token
    unk_token: _Token
    cls_token: _Token
    sep_token: _Token
    mask_token: _Token
    additional_special_tokens: list[_Token] | None
    extra_special_tokens: list[_Token] | dict[str, _Token] | None
    added_tokens_decoder: dict[str, _Token] | None
    tokenizer_class: str | None
    do_basic_tokenize: bool
    tokenize_chinese_chars: bool
    never_split: list | None
    truncation_side: str
    do_lower_case: bool
    strip_accents: bool | None


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
    # Published models have 100: theirs makes words of 101 to 200 [UNK] too.
    max_input_chars_per_word: Literal[100, 200] = 100


class _Pipeline(msgspec.Struct):
    normalizer: _Normalizer
    pre_tokenizer: _PreTokenizer
    model: _Model
    post_processor: _Ends | _Template
    truncation: _Truncation | None = None
    added_tokens: list[_Added] | None = None


class Recorded(NamedTuple):
    """Vocabulary and normalization that the files of a model record.

    tokens: tokens in the order of their ids; None without a pipeline.
    casing: with None for what no file has.
    """

    tokens: list[str] | None
    casing: Casing


def read(folder: str) -> Recorded:
    """Reads the tokenizer of a model.

    Args:
        folder: the model's folder, with both files, one or none.

    Returns:
        the tokenizer's vocabulary and normalization.

    Raises:
        UserError: a file is damaged, the two contradict each other, or a
            setting is not supported.
    """
    tokens, casing = _read_pipeline(os.path.join(folder, PIPELINE))

    # Other tools do not split added tokens; here they would be split.
    _check_special(os.path.join(folder, _SPECIAL))
    path = os.path.join(folder, _ADDED)
    for token in _read_json(path, dict):
        _check_added(path, token)

    path = os.path.join(folder, CONFIG)
    config = _read_config(path, has_pipeline=tokens is not None)
    if tokens is None:
        names = ("do_lower_case", "strip_accents")
        return Recorded(None, Casing(*map(config.get, names)))

    # Both files have a casing; a None means as do_lower_case.
    for name, expected in dataclasses.asdict(casing).items():
        value = config.get(name, expected)
        as_lower = (None, casing.do_lower_case)
        if value != expected and (value, expected) != as_lower:
            raise UserError(
                f"{name} is {value}",
                path=path,
                expected=f"{expected}, as in {PIPELINE}",
                fix="correct one of the two files",
            )
    return Recorded(tokens, casing)


def read_casing(folder: str) -> Casing:
    """Reads the casing of a `tokenizer_config.json`."""
    path = os.path.join(folder, CONFIG)
    return json_files.read(path, Casing) if storage.exists(path) else Casing()


def read_length(folder: str) -> int | None:
    """Reads the longest sequence of a model, in tokens; None if unknown.

    That of sentence-transformers, else that of the tokenizer; at most the
    positions of the network.

    Args:
        folder: the model's folder.

    Raises:
        UserError: a file is damaged.
    """

    def lengths(name: str) -> _Lengths:
        path = os.path.join(folder, name)
        if not storage.exists(path):
            return _Lengths()
        return json_files.read(path, _Lengths)

    sentence, config = lengths(_SENTENCE), lengths(CONFIG)
    recorded = sentence.max_seq_length or config.model_max_length
    positions = [lengths(name).max_position_embeddings for name in _SIZES]
    limits = [length for length in (recorded, *positions) if length]
    return int(min(limits)) if limits else None


def write_config(
    folder: str,
    casing: Casing,
    max_length: int | None = None,
) -> None:
    """Writes a `tokenizer_config.json`, next to `vocab.txt`.

    Args:
        folder: where to write it.
        casing: of the tokenizer.
        max_length: longest sequence; without it transformers does not
            truncate.
    """
    values = {
        "tokenizer_class": "BertTokenizer",
        **dataclasses.asdict(casing),
        "tokenize_chinese_chars": True,
    }
    if max_length:
        values["model_max_length"] = max_length
    text = json.dumps(values, indent=2, sort_keys=True)
    write_whole(os.path.join(folder, CONFIG), f"{text}\n")


def write_pipeline(folder: str, tokens: list[str], casing: Casing) -> None:
    """Writes a `tokenizer.json`, for tokenizers and other fast readers."""
    ids = {token: i for i, token in enumerate(tokens)}
    added = {
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
    special = sorted({ids[x] for x in _NAMES.values() if x in ids})
    ends = {"sep": vocabulary.SEP, "cls": vocabulary.CLS}

    pipeline = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": tokens[i], **added} for i in special
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": casing.strip_accents,
            "lowercase": casing.do_lower_case,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "BertProcessing",
            **{name: [token, ids[token]] for name, token in ends.items()},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": vocabulary.UNK,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 200,
            "vocab": ids,
        },
    }

    text = json.dumps(pipeline, indent=2, ensure_ascii=False)
    write_whole(os.path.join(folder, PIPELINE), f"{text}\n")


def _read_pipeline(path: str) -> Recorded:
    """Reads tokens and casing of a `tokenizer.json`, if there is one."""
    if not storage.exists(path):
        return Recorded(None, Casing())

    fix = "this tokenizer is not supported"
    pipeline = json_files.read(path, _Pipeline, "a tokenizer of BERT", fix)

    # What the types above cannot say.
    normalizer, ids = pipeline.normalizer, pipeline.model.vocab
    for name in ("clean_text", "handle_chinese_chars"):
        _check(path, name, getattr(normalizer, name), [True])
    _check_template(path, pipeline.post_processor)

    # The id of a token is its line in vocab.txt: none may be missing.
    tokens = sorted(ids, key=ids.get)
    if sorted(ids.values()) != list(range(len(ids))):
        raise UserError("ids with gaps", path=path, expected="0, 1, 2, ...")
    for token in tokens:
        # As a line of vocab.txt it would be another token, or several.
        if not token or token.split("\n")[0].strip(" \t\r") != token:
            raise UserError(
                f"the token {token!r}",
                path=path,
                expected="no line break in it, and no white space at its ends",
                fix=fix,
            )

    for token in pipeline.added_tokens or []:
        _check_added(path, token.content)

    casing = Casing(normalizer.lowercase, normalizer.strip_accents)
    return Recorded(tokens, casing)


def _read_config(path: str, has_pipeline: bool) -> dict:
    """Reads and checks the arguments of a `tokenizer_config.json`."""
    config = _check_special(path)
    classes = (*_CLASSES, *_GENERIC) if has_pipeline else _CLASSES

    model = os.path.join(os.path.dirname(path), _MODEL)
    named = _read_json(model, dict).get("tokenizer_class")
    _check(model, "tokenizer_class", named, classes)

    # Any other value would change the ids of some texts.
    for name, expected in (
        ("tokenizer_class", classes),
        ("do_basic_tokenize", [True]),
        ("tokenize_chinese_chars", [True]),
        ("never_split", [None, []]),
        ("truncation_side", ["right"]),
    ):
        if name in config:
            _check(path, name, config[name], expected)
    return config


def _check_special(path: str) -> dict:
    """Reads a JSON file and checks the special tokens that it names."""
    values = _read_json(path, _Config)
    for name, token in _NAMES.items():
        if values.get(name) is not None:
            _check(path, name, _content(values[name]), [token])

    # Tokens are listed, or are the values of an object.
    for name in _LISTS:
        added = values.get(name) or []
        for token in added.values() if isinstance(added, dict) else added:
            _check_added(path, _content(token))

    return values


def _check_template(path: str, processor: _Ends | _Template) -> None:
    """Rejects other special tokens or segments than those of BERT."""
    if isinstance(processor, _Ends):
        return

    # As token:segment, so that a message shows all of it.
    for name, template in (
        ("single", "[CLS]:0 A:0 [SEP]:0"),
        ("pair", "[CLS]:0 A:0 [SEP]:0 B:1 [SEP]:1"),
    ):
        pieces = [
            f"{piece.id}:{piece.type_id}"
            for part in getattr(processor, name)
            for piece in part.values()
        ]
        _check(path, f"post_processor.{name}", " ".join(pieces), [template])


def _check(path: str, name: str, value, expected) -> None:
    if value not in expected:
        raise UserError(
            f"{name} is {value!r}",
            path=path,
            expected=" or ".join(repr(x) for x in expected if x is not None),
            fix="this tokenizer is not supported",
        )


def _check_added(path: str, token: str | None) -> None:
    if token not in vocabulary.SPECIAL_TOKENS:
        raise UserError(
            f"the added token {token!r}",
            path=path,
            expected=f"none but {', '.join(vocabulary.SPECIAL_TOKENS)}",
            fix="this tokenizer is not supported",
        )


def _content(token: _Token) -> str | None:
    """Returns the text of a token, which some files wrap in an object."""
    return token.content if isinstance(token, _Added) else token


def _read_json(path: str, kind: Any) -> dict:
    """Reads a JSON object; returns {} if there is no file."""
    return json_files.read(path, kind) if storage.exists(path) else {}
