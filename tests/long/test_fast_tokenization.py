"""The fast path returns the exact ids; only in `make test-long`."""

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
