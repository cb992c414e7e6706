"""Every character, cased and uncased; only in `make test-long`."""

import random
import sys

import pytest

from bert.data.text import tokenization
from tests.helpers import hard_texts
from tests.helpers.original_tokenization import MODES, known
from tests.helpers.original_tokenization import words as restated

PLANE = 0x10000
pytestmark = pytest.mark.long


@pytest.mark.parametrize("lower, strip", MODES)
def test_frozen_tables_are_those_of_their_unicode_version(lower, strip):
    hard_texts.assert_frozen_tables_are_computed(lower, strip, 17 * PLANE)


@pytest.mark.parametrize("plane", range(17))
@pytest.mark.parametrize("lower, strip", MODES)
def test_every_scalar_value(lower, strip, plane, tmp_path):
    characters = [
        chr(code)
        for code in range(plane * PLANE, (plane + 1) * PLANE)
        if not 0xD800 <= code < 0xE000
    ]
    texts = [f"a{c}b Σ{c} a{c}Σ aΣ{c} aΣ{c}a {c}" for c in characters]
    assert hard_texts.differences(texts, lower, tmp_path, strip) == []


@pytest.mark.parametrize("plane", range(17))
@pytest.mark.parametrize("lower", [True, False])
def test_every_scalar_value_of_the_fast_tokenizer(lower, plane, tmp_path):
    characters = [
        chr(code)
        for code in range(plane * PLANE, (plane + 1) * PLANE)
        if not 0xD800 <= code < 0xE000
    ]
    texts = [f"a{c}b {c} A{c} {c}{c}x, Σ{c}" for c in characters]
    texts += [f"a{c}b {c} A{c}" for c in characters]
    assert hard_texts.fast_differences(texts, lower, tmp_path) == []


LATIN = [chr(c) for c in [*range(0x20, 0x7F), *range(0xA0, 0x250)]]


@pytest.mark.parametrize("seed", range(9))
@pytest.mark.parametrize("lower", [True, False])
def test_a_million_random_strings(lower, seed, tmp_path):
    """In the graph, with strings of bytes, and offline."""
    rng = random.Random(2 * seed + lower)
    texts = [hard_texts.random_text(rng) for _ in range(60000)]
    raw = [hard_texts.random_bytes(rng) for _ in range(3000)]
    assert hard_texts.differences(texts + raw, lower, tmp_path) == []

    texts += ["".join(rng.choices(LATIN, k=rng.randrange(30))) for _ in texts]
    assert hard_texts.fast_differences(texts, lower, tmp_path) == []


@pytest.mark.parametrize("lower", [True, False])
def test_every_scalar_value_is_tokenized_as_restated(lower):
    tokenizer = tokenization.BasicTokenizer(lower)
    wrong = [
        code
        for code in range(sys.maxunicode + 1)
        if not 0xD800 <= code < 0xE000
        and known(chr(code))
        and tokenizer.tokenize(f"a{chr(code)}b Σ{chr(code)}")
        != restated(f"a{chr(code)}b Σ{chr(code)}", lower)
    ]
    assert wrong == []
