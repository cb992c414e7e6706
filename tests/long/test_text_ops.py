"""Every character, cased and uncased; only in `make test-long`."""

import random

import pytest

from tests.helpers import hard_texts
from tests.helpers.original_tokenization import LATER, MODES, known

PLANE = 0x10000
pytestmark = pytest.mark.long


@pytest.mark.parametrize("lower, strip", MODES)
def test_frozen_tables_are_those_of_their_unicode_version(lower, strip):
    hard_texts.assert_frozen_tables_are_computed(lower, strip, 17 * PLANE)


@pytest.mark.parametrize("plane", range(17))
@pytest.mark.parametrize("lower, strip", MODES)
def test_every_scalar_value(lower, strip, plane):
    characters = [
        chr(code)
        for code in range(plane * PLANE, (plane + 1) * PLANE)
        if not 0xD800 <= code < 0xE000 and known(chr(code))
    ]
    texts = [f"a{c}b Σ{c} a{c}Σ aΣ{c} aΣ{c}a {c} {c}{c}x," for c in characters]
    tokenizer = hard_texts.tokenizer_of(texts, lower, strip)
    hard_texts.assert_original(tokenizer, texts)


LATIN = [chr(c) for c in [*range(0x20, 0x7F), *range(0xA0, 0x250)]]


@pytest.mark.parametrize("seed", range(9))
@pytest.mark.parametrize("lower", [True, False])
def test_a_million_random_strings(lower, seed):
    rng = random.Random(2 * seed + lower)
    texts = [known(hard_texts.random_text(rng)) for _ in range(60000)]
    texts += ["".join(rng.choices(LATIN, k=rng.randrange(30))) for _ in texts]
    tokenizer = hard_texts.tokenizer_of(texts, lower)
    raw = [hard_texts.random_bytes(rng) for _ in range(3000)]
    raw = [x for x in raw if not LATER.search(x.decode("utf-8", "ignore"))]
    hard_texts.assert_original(tokenizer, texts + raw)
