"""The fast path returns the exact ids; only in `make test-long`."""

import random

import pytest

from tests.helpers import hard_texts

PLANE = 0x10000
pytestmark = pytest.mark.long


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
    assert hard_texts.fast_differences(texts, lower, tmp_path) == []


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("lower", [True, False])
def test_a_million_random_strings(lower, seed, tmp_path):
    rng = random.Random(2 * seed + lower)
    texts = [hard_texts.random_text(rng) for _ in range(60000)]
    ascii_and_latin = [
        chr(c) for c in [*range(0x20, 0x7F), *range(0xA0, 0x250)]
    ]
    texts += [
        "".join(rng.choices(ascii_and_latin, k=rng.randrange(30)))
        for _ in range(60000)
    ]
    assert hard_texts.fast_differences(texts, lower, tmp_path) == []
