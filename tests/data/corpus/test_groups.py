"""Numbers of passes over the languages of a corpus."""

import pytest

from bert.data.corpus import groups


def test_one_group_has_as_many_passes_as_without_groups():
    assert groups.passes({"": 12345}, 7, 0.7) == {"": 7.0}


def test_shares_are_smoothed_as_for_the_multilingual_models():
    sizes = {"en": 21_000, "is": 79, "other": 78_921}
    found = groups.passes(sizes, 10, 0.7)
    records = {name: sizes[name] * found[name] for name in sizes}
    total = sum(records.values())
    assert total == pytest.approx(10 * 100_000)
    shares = {name: count / total for name, count in records.items()}
    # Ratios of shares are powers of the ratios of sizes.
    assert shares["en"] / shares["is"] == pytest.approx((21_000 / 79) ** 0.7)
    assert shares["other"] / shares["en"] == pytest.approx(
        (78_921 / 21_000) ** 0.7
    )


def test_the_ends_of_smoothing():
    sizes = {"a": 1, "b": 3}
    assert groups.passes(sizes, 5, 1.0) == {"a": 5.0, "b": 5.0}
    equal = groups.passes(sizes, 5, 0.0)
    assert equal["a"] * 1 == pytest.approx(equal["b"] * 3)
