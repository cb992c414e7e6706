"""Tokenizer files of Hugging Face: read if supported, else rejected."""

import json

import pytest
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, processors

from bert.common.errors import UserError
from bert.data.text import tokenizer_files, vocabulary
from bert.data.text.casing import Casing
from bert.data.text.tokenizer import Tokenizer

TOKENS = [
    *vocabulary.SPECIAL_TOKENS,
    "elan",
    "élan",
    "Élan",
    "Elan",
    "a",
    "##b",
]
VALUES = [None, True, False]


def write_pipeline(folder, lower=True, strip=None, **changed):
    """Writes the library's pipeline; `changed` replaces parts of it."""
    ids = {token: i for i, token in enumerate(TOKENS)}
    tokenizer = tokenizers.Tokenizer(
        models.WordPiece(ids, unk_token=vocabulary.UNK)
    )
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=lower, strip_accents=strip
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(list(vocabulary.SPECIAL_TOKENS))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    pipeline = json.loads(tokenizer.to_str())
    vocab = pipeline["model"]["vocab"]
    pipeline["model"]["vocab"] = dict(reversed(vocab.items()))
    for name, part in changed.items():
        merge = isinstance(part, dict) and isinstance(pipeline[name], dict)
        pipeline[name] = {**pipeline[name], **part} if merge else part
    (folder / "tokenizer.json").write_text(json.dumps(pipeline))
    return tokenizer


def write_config(folder, **values):
    (folder / "tokenizer_config.json").write_text(json.dumps(values))


@pytest.mark.parametrize("strip", VALUES)
@pytest.mark.parametrize("lower", [True, False])
def test_a_pipeline_gives_tokens_and_casing(tmp_path, lower, strip):
    theirs = write_pipeline(tmp_path, lower, strip)
    tokens, casing = tokenizer_files.read(str(tmp_path))
    assert (tokens, casing) == (TOKENS, Casing(lower, strip))
    path = str(tmp_path / "vocab.txt")
    vocabulary.write_vocabulary(path, tokens)
    ours = Tokenizer.of(path, casing).exact
    text = "Élan élan Elan elan ab A"
    tokens = theirs.encode(text).tokens
    assert ["[CLS]", *ours.tokenize(text), "[SEP]"] == tokens


def test_files_that_agree_are_read_together(tmp_path):
    write_pipeline(tmp_path, True, False)
    special = {"content": "[UNK]", "special": True}
    write_config(
        tmp_path,
        tokenizer_class="PreTrainedTokenizerFast",
        do_lower_case=True,
        strip_accents=False,
        tokenize_chinese_chars=True,
        never_split=None,
        additional_special_tokens=[],
        added_tokens_decoder={"1": special},
        model_max_length=512,
    )
    (tmp_path / "added_tokens.json").write_text('{"[CLS]": 2}')
    assert tokenizer_files.read(str(tmp_path)) == (TOKENS, Casing(True, False))


def test_none_agrees_with_what_it_means(tmp_path):
    write_pipeline(tmp_path, True, True)
    write_config(tmp_path, strip_accents=None)
    assert tokenizer_files.read(str(tmp_path)) == (TOKENS, Casing(True, True))


@pytest.mark.parametrize(
    ("sentence", "config", "positions", "expected"),
    [
        ({}, {}, None, None),
        ({}, {}, 13, 13),
        ({}, {"model_max_length": 7}, 13, 7),  # of today's library
        ({"max_seq_length": 5}, {"model_max_length": 7}, 13, 5),
        ({"max_seq_length": 11}, {"model_max_length": 7}, 13, 11),
        ({"max_seq_length": None}, {"model_max_length": 7}, 13, 7),
        ({"max_seq_length": 512}, {}, 13, 13),
        ({}, {"model_max_length": 512}, 13, 13),
        ({}, {"model_max_length": int(1e30)}, 13, 13),  # of transformers
        ({}, {"model_max_length": 1e30}, 13, 13),
    ],
)
@pytest.mark.parametrize("sizes", ["config.json", "bert_config.json"])
def test_the_longest_sequence(
    tmp_path, sentence, config, positions, expected, sizes
):
    for name, values in (
        ("sentence_bert_config.json", sentence),
        ("tokenizer_config.json", config),
        (sizes, {"max_position_embeddings": positions}),
    ):
        if values:
            (tmp_path / name).write_text(json.dumps(values))
    assert tokenizer_files.read_length(str(tmp_path)) == expected


def pieces(*named):
    """A template of special tokens and sequences, as `[CLS]:0`."""
    pairs = [name.split(":") for name in named]
    return [{"Piece": {"id": x, "type_id": int(i)}} for x, i in pairs]


ADDED = [{"id": 5, "content": "<ent>", "special": True}]
WITHOUT_SEP = {"single": pieces("[CLS]:0", "A:0")}
ONE_SEGMENT = {"pair": pieces(*"[CLS]:0 A:0 [SEP]:0 B:0 [SEP]:0".split())}
OTHER_ENDS = {
    "type": "BertProcessing",
    "cls": ["<s>", 2],
    "sep": ["[SEP]", 3],
}
LEFT = {"direction": "Left", "max_length": 7}


PIPELINES = [  # changes of tokenizer.json, and what the message names
    ({"normalizer": {"handle_chinese_chars": False}}, "handle_chinese_chars"),
    ({"normalizer": {"clean_text": False}}, "clean_text is False"),
    ({"normalizer": {"type": "Lowercase"}}, "'Lowercase' - at `$.normalizer"),
    ({"normalizer": None}, "got `null` - at `$.normalizer`"),
    ({"pre_tokenizer": {"type": "Whitespace"}}, "value 'Whitespace' - at"),
    ({"pre_tokenizer": None}, "got `null` - at `$.pre_tokenizer`"),
    ({"model": {"type": "BPE"}}, "value 'BPE' - at `$.model.type`"),
    ({"model": {"unk_token": "<unk>"}}, "'<unk>' - at `$.model.unk_token`"),
    ({"model": {"continuing_subword_prefix": ""}}, "subword_prefix`"),
    ({"model": {"max_input_chars_per_word": 50}}, "value 50 - at `$.model"),
    ({"model": {"vocab": {"a": 0, "b": 2}}}, "ids with gaps"),
    *(
        ({"model": {"vocab": {token: 0}}}, f"the token {token!r}")
        for token in ("a\nb", "a\r", "", " a")
    ),
    ({"added_tokens": ADDED}, "the added token '<ent>'"),
    ({"post_processor": None}, "got `null` - at `$.post_processor`"),
    ({"post_processor": {"type": "ByteLevel"}}, "value 'ByteLevel' - at"),
    ({"post_processor": WITHOUT_SEP}, "single is '[CLS]:0 A:0'; expected"),
    ({"post_processor": ONE_SEGMENT}, "post_processor.pair is '[CLS]:0 A"),
    ({"post_processor": OTHER_ENDS}, "'<s>' - at `$.post_processor.cls[0]"),
    ({"truncation": LEFT}, "value 'Left' - at `$.truncation.direction`"),
]
CONFIGS = [  # values of tokenizer_config.json
    ({"tokenize_chinese_chars": False}, "tokenize_chinese_chars is False"),
    ({"do_basic_tokenize": False}, "do_basic_tokenize is False"),
    ({"never_split": ["a"]}, "length <= 0 - at `$.never_split`"),
    ({"truncation_side": "up"}, "'up' - at `$.truncation_side`"),
    ({"tokenizer_class": "BertJapaneseTokenizer"}, "BertJapaneseTokenizer"),
    ({"strip_accents": "yes"}, "got `str` - at `$.strip_accents`"),
    ({"additional_special_tokens": ["<e>"]}, "the added token '<e>'"),
    ({"added_tokens_decoder": {"5": {"content": "<e>"}}}, "token '<e>'"),
    (["a"], "got `array`"),
    ({"do_lower_case": False}, "do_lower_case=False, strip_accents=None"),
    ({"strip_accents": False}, "do_lower_case=True, strip_accents=False"),
]


@pytest.mark.parametrize(
    ("file", "content", "named"),
    [
        *(("tokenizer.json", *x) for x in PIPELINES),
        *(("tokenizer_config.json", *x) for x in CONFIGS),
        ("added_tokens.json", {"<e>": 5}, "the added token '<e>'"),
        ("config.json", {"tokenizer_class": "BertJapaneseTokenizer"}, "Japan"),
    ],
)
def test_an_unsupported_tokenizer_is_rejected_by_name(
    tmp_path, file, content, named
):
    """Also beside a good pipeline, which it may contradict."""
    write_pipeline(tmp_path, **(content if file == "tokenizer.json" else {}))
    if file != "tokenizer.json":
        (tmp_path / file).write_text(json.dumps(content))
    with pytest.raises(UserError) as error:
        tokenizer_files.read(str(tmp_path))
    assert f"{file}: " in str(error.value)
    assert named in str(error.value)


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer_config.json", "tokenizer.json"]
)
def test_a_damaged_file_is_not_an_unsupported_tokenizer(tmp_path, name):
    (tmp_path / name).write_text('{"tokenizer_class": "BertTokenizer", ')
    with pytest.raises(UserError, match=f"/{name}: ") as caught:
        tokenizer_files.read(str(tmp_path))
    assert "tokenizer is not supported" not in str(caught.value)
