"""Numbers of passes over the languages of a corpus."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert.data.corpus import groups


@given(
    st.lists(st.integers(1, 10**12), min_size=1, max_size=7),
    st.integers(1, 40),
    st.floats(0, 1),
)
def test_fractions_are_smoothed(sizes, dupe_factor, smoothing):
    """Records have the ratios of the sizes, to the power of the exponent."""
    named = {f"group {number}": size for number, size in enumerate(sizes)}
    passes = groups.passes(named, dupe_factor, smoothing)
    assert [*passes] == [*named]
    records = [size * passes[name] for name, size in named.items()]
    assert sum(records) == pytest.approx(dupe_factor * sum(sizes))
    for size, count in zip(sizes, records):
        ratio = (size / sizes[0]) ** smoothing
        assert count / records[0] == pytest.approx(ratio)
