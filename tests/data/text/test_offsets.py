"""Character offsets are those of the graph's tokenizer, on every string."""

import random

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from bert.common.errors import UserError
from bert.data.text import fast_tokenization
from bert.data.text.tokenizer import Tokenizer
from tests.helpers.hard_texts import random_text, write_letters
from tests.helpers.original_tokenization import MODES

SURROGATES = "Cs"  # the category of Unicode


@pytest.fixture(scope="module", params=MODES)
def tokenizer(request, tmp_path_factory):
    """Some characters are tokens; words with others are `[UNK]`."""
    texts = [random_text(random.Random(i)) for i in range(300)]
    folder = tmp_path_factory.mktemp("vocabulary")
    path = write_letters(texts + ["thes"], request.param[0], folder)
    with open(path, "a", encoding="utf-8") as file:
        file.write("the\n##es\n##東京\n")
    return Tokenizer(path, *request.param)


def by_graph(tokenizer, text):
    """Ids, first characters and ends, from the graph's bytes."""
    raw = text.encode()
    values = tokenizer.graph.tokenize_with_offsets([raw])
    ids, *bytes_ = (x.flat_values.numpy().tolist() for x in values)
    return [ids, *([len(raw[:i].decode()) for i in at] for at in bytes_)]


def assert_equal(tokenizer, texts):
    found = tokenizer.with_offsets(texts)
    for text, tokens in zip(texts, found, strict=True):
        assert [x.tolist() for x in tokens] == by_graph(tokenizer, text), text
        assert all(x.dtype == np.int32 for x in tokens)


def test_random_texts(tokenizer):
    rng = random.Random(1)
    texts = [random_text(rng) for _ in range(500)]
    assert_equal(tokenizer, texts)
    joined = [" the ".join(texts[i : i + 9]) for i in range(0, 500, 9)]
    assert_equal(tokenizer, joined)


@hypothesis.settings(max_examples=50, deadline=None)
@hypothesis.given(
    st.lists(st.text(st.characters(exclude_categories=[SURROGATES])))
)
def test_any_texts(tokenizer, texts):
    assert_equal(tokenizer, texts)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "\n", "\u0301", "\x00", "the\n\nthes\n", "thes", "the\r\n"),
        *("\u0301the\u0301 \u0301s", "t\u200bh\x00e", "ΟΔΟΣ the", "İthe"),
        *("각 the", "\u0344e", "the推thes", "a" * 300 + " the", "##the [UNK]"),
    ],
)
def test_hard_texts(tokenizer, text):
    assert_equal(tokenizer, [text, "the", text])


def test_blocks(tokenizer, monkeypatch):
    rng = random.Random(2)
    texts = [random_text(rng) for _ in range(50)]
    expected = tokenizer.with_offsets(texts)
    monkeypatch.setattr(fast_tokenization, "_BLOCK", 100)
    for one, other in zip(tokenizer.with_offsets(texts), expected, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
    assert tokenizer.with_offsets([]) == []


def test_half_a_surrogate_pair_is_named(tokenizer):
    with pytest.raises(UserError, match="pair at 4 of 'the "):
        tokenizer.with_offsets(["the", "the \ud800"])
