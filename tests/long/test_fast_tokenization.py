"""The fast path returns the exact ids; only in `make test-long`."""

import random

import pytest

from data.text import fast_tokenization, tokenization, vocabulary
from tests.helpers import hard_texts

PLANE = 0x10000
pytestmark = pytest.mark.long


def differences(texts, lower, folder):
    """Lines with other ids from the fast path; each letter is a token."""
    basic = tokenization.BasicTokenizer(lower)
    letters = sorted({c for x in texts for c in "".join(basic.tokenize(x))})
    tokens = [*vocabulary.SPECIAL_TOKENS, *letters]
    tokens += [f"##{letter}" for letter in letters]
    path = folder / "vocab.txt"
    path.write_bytes("".join(f"{token}\n" for token in tokens).encode())
    exact = tokenization.FullTokenizer(str(path), lower)
    fast = fast_tokenization.FastTokenizer(str(path), lower)
    return [
        text
        for text, ids in zip(texts, fast.ids_of_lines(texts), strict=True)
        if ids != exact.convert_tokens_to_ids(exact.tokenize(text))
    ]


@pytest.mark.parametrize("plane", range(17))
@pytest.mark.parametrize("lower", [True, False])
def test_every_scalar_value(lower, plane, tmp_path):
    characters = [
        chr(code)
        for code in range(plane * PLANE, (plane + 1) * PLANE)
        if not 0xD800 <= code < 0xE000
    ]
    texts = [f"a{c}b {c} A{c} {c}{c}x, Σ{c}" for c in characters]
    texts += [f"a{c}b {c} A{c}" for c in characters]
    assert differences(texts, lower, tmp_path) == []


@pytest.mark.parametrize("lower", [True, False])
def test_60000_random_strings(lower, tmp_path):
    rng = random.Random(lower)
    texts = [hard_texts.random_text(rng) for _ in range(60000)]
    ascii_and_latin = [
        chr(c) for c in [*range(0x20, 0x7F), *range(0xA0, 0x250)]
    ]
    texts += [
        "".join(rng.choices(ascii_and_latin, k=rng.randrange(30)))
        for _ in range(60000)
    ]
    assert differences(texts, lower, tmp_path) == []
