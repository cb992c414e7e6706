"""Lengths of batches, and their order."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bert.data import batching, bucketing
from bert.data.records.examples import Examples
from bert.modeling.config import BertConfig


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


@given(
    longest=st.lists(st.integers(1, 40), min_size=1, max_size=30),
    cost=st.floats(0.1, 1000),
    saving=st.floats(0.05, 4),
)
@example(longest=[1] * 9 + [40], cost=90, saving=4)  # one length
@example(longest=[9, 17, 25], cost=0.1, saving=1)  # each length that occurs
@example(longest=[9, 17, 25], cost=90, saving=1)  # nothing is compiled
def test_lengths_of_a_run_are_the_fastest(longest, cost, saving):
    def tokens(lengths):
        return np.array(lengths)[np.searchsorted(lengths, longest)].sum()

    every = bucketing.bucket_lengths(48)
    found = bucketing.fastest(every, np.array(longest), cost, saving)
    last = next(x for x in every if x >= max(longest))
    *shorter, _ = (x for x in every if x <= last)
    choices = [
        cost * (1 + size) + tokens([*some, last])
        for size in range(len(shorter) + 1)
        for some in itertools.combinations(shorter, size)
    ]
    uncompiled = (1 + saving) * tokens(every)
    assert found.may_fuse == (min(choices) <= uncompiled)
    if found.may_fuse:
        time = cost * len(found.allowed) + tokens(found.allowed)
        assert time == pytest.approx(min(choices))
    else:
        assert found.allowed == every


def test_larger_networks_and_more_examples_compile_more_lengths():
    sizes = np.random.default_rng(3).integers(3, 120, 4000)
    rows = [{"input_ids": [1] * n, "segment_ids": [0] * n} for n in sizes]
    every = bucketing.bucket_lengths(128)

    def compiled(config, examples):
        few, operations = rows[:examples], config.operations_per_token
        found = batching.fastest_lengths(
            Examples(few, {}), every, 32, operations
        )
        return len(found.allowed) if found.may_fuse else 0

    tiny = BertConfig(10, 128, num_hidden_layers=2, intermediate_size=512)
    base = BertConfig(10)
    assert base.operations_per_token == 6 * 12 * 12 * 768**2
    counts = [compiled(tiny, 400), compiled(base, 400), compiled(base, 4000)]
    assert counts == sorted(set(counts)) and counts[0] == 0


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
