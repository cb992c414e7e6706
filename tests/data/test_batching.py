"""Lengths of batches, and their order."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bert.data import batching, bucketing


@given(st.integers(1, 4096))
def test_lengths_for_padding_are_few(longest):
    """Multiples of 8 up to 128, then four lengths per octave."""
    lengths = bucketing.bucket_lengths(longest)
    allowed = [*range(8, 129, 8)]
    allowed += [2**p * n // 4 for p in range(7, 12) for n in range(5, 9)]
    assert lengths == [*(x for x in allowed if x < longest), longest]
    powers = [2**power for power in range(5, 12)]
    compiled = [*(x for x in powers if x < longest), longest]
    assert bucketing.xla_lengths(lengths) == compiled


def chosen(lengths, batch_size, seed, step, count):
    batches = batching.choose(len(lengths), lengths, batch_size, seed, step)
    return np.array([*itertools.islice(batches, count)])


@given(
    lengths=st.lists(st.integers(1, 512), min_size=1, max_size=23),
    batch_size=st.integers(1, 31),
    seed=st.integers(-(2**63), 2**63 - 1),
    window=st.integers(1, 5),
    step=st.integers(0, 60),
)
@example(lengths=[3, 1, 2, 5, 4, 7, 6], batch_size=3, seed=1, window=2, step=1)
def test_batches_are_windows_of_epochs(lengths, batch_size, seed, window, step):
    """Each epoch has every example once; its windows are sorted by length."""
    lengths, count = np.array(lengths), len(lengths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batching, "_WINDOW", window)
        batches = chosen(lengths, batch_size, seed, 0, 3 * count)
        later = chosen(lengths, batch_size, seed, step, 7)
        every = chosen(lengths, batch_size, seed, 0, step + 7)
    np.testing.assert_array_equal(later, every[step:])

    # An epoch's batches are those whose first example is in it.
    assert batches.shape == (3 * count, batch_size)
    firsts = [-(-epoch * count // batch_size) for epoch in range(4)]
    for first, last in itertools.pairwise(firsts):
        times = np.bincount(batches[:last].ravel(), minlength=count)
        assert set(times - last * batch_size // count) <= {0, 1}
        for start in range(first, last, window):
            some = lengths[batches[start : min(start + window, last)]]
            some = some[np.lexsort((some[:, -1], some[:, 0]))]
            assert (np.diff(some.ravel()) >= 0).all()


def test_each_window_has_an_order_of_its_own(monkeypatch):
    monkeypatch.setattr(batching, "_WINDOW", 16)
    batches = chosen(np.arange(64), 2, 3, 0, 96)  # three epochs
    orders = {(*np.argsort(x[:, 0]),) for x in np.split(batches, 6)}
    assert len(orders | {(*range(16),)}) == 7
