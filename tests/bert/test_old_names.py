"""Names of the original's Python code that docs/coming_from.md lists."""

import inspect
import pathlib
import pkgutil

import pytest

import bert

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "coming_from.md"
TOKENIZATION = "bert.data.text.tokenization"
# Parameters of google-research/bert, commit eedf571.
KEPT = {
    f"{TOKENIZATION}.FullTokenizer": "vocab_file do_lower_case=True",
    f"{TOKENIZATION}.FullTokenizer.tokenize": "self text",
    f"{TOKENIZATION}.FullTokenizer.convert_tokens_to_ids": "self tokens",
    f"{TOKENIZATION}.FullTokenizer.convert_ids_to_tokens": "self ids",
    f"{TOKENIZATION}.BasicTokenizer": "do_lower_case=True",
    f"{TOKENIZATION}.BasicTokenizer.tokenize": "self text",
    f"{TOKENIZATION}.WordpieceTokenizer": (
        "vocab unk_token='[UNK]' max_input_chars_per_word=200"
    ),
    f"{TOKENIZATION}.load_vocab": "vocab_file",
    f"{TOKENIZATION}.convert_by_vocab": "vocab items",
    f"{TOKENIZATION}.convert_tokens_to_ids": "vocab tokens",
    f"{TOKENIZATION}.convert_ids_to_tokens": "inv_vocab ids",
    f"{TOKENIZATION}.whitespace_tokenize": "text",
    f"{TOKENIZATION}.convert_to_unicode": "text",
    f"{TOKENIZATION}.printable_text": "text",
    f"{TOKENIZATION}.validate_case_matches_checkpoint": (
        "do_lower_case init_checkpoint"
    ),
    "bert.modeling.config.BertConfig": (
        "vocab_size hidden_size=768 num_hidden_layers=12 "
        "num_attention_heads=12 intermediate_size=3072 hidden_act='gelu' "
        "hidden_dropout_prob=0.1 attention_probs_dropout_prob=0.1 "
        "max_position_embeddings=512 type_vocab_size=16 initializer_range=0.02"
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_keeps_its_signature(name):
    """Parameters of ours may only follow, with a default."""
    found = inspect.signature(pkgutil.resolve_name(name)).parameters.values()
    words = [x.name for x in found]
    defaults = [x.default is not x.empty for x in found]
    described = [
        f"{x.name}={x.default!r}" if x.default is not x.empty else x.name
        for x in found
    ]
    expected = KEPT[name].split()
    assert described[: len(expected)] == expected
    assert all(defaults[len(expected) :]), words


def test_the_page_names_what_is_kept():
    page = PAGE.read_text()
    for name in KEPT:
        assert name.split(".")[-1] in page, name
    assert bert.BertConfig is pkgutil.resolve_name(
        "bert.modeling.config.BertConfig"
    )
