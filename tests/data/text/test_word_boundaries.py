"""Token ids of segmented text, with word boundaries marked."""

import random

import numpy as np
import pytest

from bert.data.text import tokenization, word_boundaries

TOKENS = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] 我 们 使 用 语 言 un ##aff ##able , 。 a"
)
V = len(TOKENS.split())


@pytest.fixture
def make(tmp_path):
    """Makes the tokenizer of whole words, and the one that it marks."""
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{t}\n" for t in TOKENS.split()), "utf-8")

    def make():
        exact = tokenization.FullTokenizer(str(path))
        return word_boundaries.SegmentedTokenizer(exact), exact

    return make


@pytest.mark.parametrize(
    "line, tokens",
    [
        ("我们 使用 语言", "我 +们 使 +用 语 +言"),
        ("我 们", "我 们"),
        ("语言。 a", "语 +言 。 a"),  # punctuation is a separate word
        ("unaffable, a", "un +##aff +##able , a"),
        ("。我们", "。 我 +们"),
        ("我x们", "我 +[UNK] +们"),
        ("我\u3000们\xa0我\x85们", "我 们 我 +们"),
        ("", ""),
    ],
)
def test_tokens_that_continue_a_word_are_marked(make, line, tokens):
    tokenizer, _ = make()
    expected = [
        tokenizer.vocab[token.removeprefix("+")] + V * token.startswith("+")
        for token in tokens.split()
    ]
    ids, ends = tokenizer.ids_and_ends(["", line, line])
    assert ids.tolist() == expected + expected
    assert ends.tolist() == [0, len(expected), 2 * len(expected)]
    assert (ids.dtype, ends.dtype) == (np.int32, np.int64)


def test_unmarked_ids_are_those_of_the_tokenizer(make):
    tokenizer, exact = make()
    rng = random.Random(7)
    alphabet = "我们使a un,。 \x1c\x0b\x85\u2028\u3000\xad\u0301\tΣ"
    for _ in range(2000):
        line = "".join(rng.choices(alphabet, k=rng.randrange(17)))
        ids, _ = tokenizer.ids_and_ends([line])
        plain = exact.convert_tokens_to_ids(exact.tokenize(line))
        assert [token % V for token in ids] == plain, line
