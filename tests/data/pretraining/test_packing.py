"""Packing of several instances into a row."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert.data.pretraining import draws, packing
from bert.data.pretraining.settings import InstanceSettings


def first_fit(lengths, options):
    """Adds each instance to the first row with enough space for it."""
    rows = []
    for instance, length in enumerate(lengths):
        share = round(length * options.masked_lm_prob)
        masks = min(max(1, share), options.max_predictions_per_seq)
        for row in rows:
            if (
                row["tokens"] + length <= options.max_seq_length
                and row["masks"] + masks <= options.max_predictions_per_seq
                and len(row["instances"]) < max(2, options.max_seq_length // 64)
            ):
                break
        else:
            row = {"tokens": 0, "masks": 0, "instances": []}
            rows.append(row)
        row["tokens"] += length
        row["masks"] += masks
        row["instances"].append(instance)
    return [row["instances"] for row in rows]


@given(
    st.integers(5, 523).flatmap(
        lambda length: st.tuples(
            st.builds(
                InstanceSettings,
                max_seq_length=st.just(length),
                # Sometimes the masks are the limit.
                max_predictions_per_seq=st.integers(1, 1 + length // 5),
                masked_lm_prob=st.sampled_from([0.0, 0.15, 0.3]),
            ),
            st.lists(st.integers(5, length), max_size=61)
            | st.lists(st.integers(5, 5 + length // 5), max_size=61),
        )
    ),
    st.integers(0, 1 << 31),
)
def test_the_first_row_with_enough_space_is_used(drawn, seed):
    options, lengths = drawn
    lengths = np.array([min(x, options.max_seq_length) for x in lengths], int)
    order, ends = packing.pack(lengths, options, draws.generator(seed))
    shuffled = draws.generator(seed).permutation(len(lengths))
    expected = [
        [int(shuffled[i]) for i in row]
        for row in first_fit(lengths[shuffled].tolist(), options)
    ]
    assert [x.tolist() for x in np.split(order, ends)[:-1]] == expected
