"""Statistics and problems of records, compared with loops over the numbers."""

import collections

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert.checks import records
from bert.checks.record_statistics import Counter
from bert.data import feature_names

VOCAB = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "a": 5}
UNK, CLS, SEP, MASK = 1, 2, 3, 4
S, P = 5, 3
MASKS, SEGMENTS, PADDING, TWICE, SPECIAL, START = (
    "input_mask is not ones followed by zeros",
    "segment_ids decrease inside a pair, or are not 0 on padding",
    "a masked position is on padding",
    "a position is masked twice",
    "a masked position is on [CLS] or [SEP]",
    "input_ids do not start with [CLS], 2",
)


def lists(values, size):
    return st.lists(values, min_size=size, max_size=size)


ROWS = st.fixed_dictionaries(
    {
        "input_ids": lists(st.sampled_from([2, 2, 1, 4, 5]), S),
        "input_mask": st.one_of(
            st.sampled_from([[1] * i + [0] * (S - i) for i in range(1, S + 1)]),
            lists(st.sampled_from([0, 1, 2]), S),
            st.just([2] * S),
        ),
        "segment_ids": lists(st.integers(0, 1), S),
        "sequence_ids": lists(st.integers(0, 1), S),
        "masked_lm_positions": lists(st.integers(0, S - 1), P),
        "masked_lm_ids": lists(st.integers(0, 5), P),
        "masked_lm_weights": lists(st.sampled_from([0.0, 1.0]), P),
        "next_sentence_labels": lists(st.integers(0, 1), 1),
    }
)


def problems_of(row, is_packed):
    """Problem -> the first value that shows it."""
    mask, segments = row["input_mask"], row["segment_ids"]
    found = {}
    for i in range(1, S):
        if mask[i] > mask[i - 1] or mask[i] > 1:
            found.setdefault(MASKS, mask[i])
        sequences = row["sequence_ids"][i - 1 : i + 1] if is_packed else [0]
        is_inside = mask[i] > 0 and len({*sequences}) == 1
        if is_inside and segments[i] < segments[i - 1]:
            found.setdefault(SEGMENTS, segments[i])
        if mask[i] == 0 and segments[i] > 0:
            found.setdefault(SEGMENTS, segments[i])
    positions = row["masked_lm_positions"]
    for i, (position, label, weight) in enumerate(
        zip(positions, row["masked_lm_ids"], row["masked_lm_weights"])
    ):
        if not weight:
            continue
        if mask[position] == 0:
            found.setdefault(PADDING, position)
        if i and position == positions[i - 1]:
            found.setdefault(TWICE, position)
        if label in (CLS, SEP):
            found.setdefault(SPECIAL, position)
    if row["input_ids"][0] != CLS:
        found[START] = row["input_ids"][0]
    return found


@given(st.lists(ROWS, min_size=1, max_size=4), st.booleans())
def test_problems_and_counts_are_those_of_loops(rows, is_packed):
    batch = {name: np.array([x[name] for x in rows]) for name in rows[0]}
    if not is_packed:
        del batch[feature_names.SEQUENCE_IDS]
    counter = Counter(len(VOCAB), VOCAB)
    counter.add(batch, "a.tfrecord", 7)

    expected, unknown, targets = {}, 0, collections.Counter()
    for number, row in enumerate(rows, 7):
        for problem, value in problems_of(row, is_packed).items():
            first = "a.tfrecord", number, value
            count, *where = expected.get(problem, (0, *first))
            expected[problem] = (count + 1, *where)
        pairs = zip(row["input_ids"], row["input_mask"])
        unknown += sum(x == UNK and mask > 0 for x, mask in pairs)
        masked = zip(row["masked_lm_ids"], row["masked_lm_weights"])
        targets.update(x for x, weight in masked if weight)
    assert counter.problems == expected
    assert counter.counts["records"] == len(rows)
    assert counter.counts["unknown_tokens"] == unknown
    assert counter.targets.tolist() == [targets[i] for i in VOCAB.values()]


def test_random_tokens_may_be_the_mask_or_the_original():
    """Of ten tokens, these are tenths of a tenth."""
    total = 1_000_000
    counts = {"predictions": total, "predictions_masked": 810_000}
    counts["predictions_random"] = 80_000
    assert records._check_replacements(counts, 10, "a") == []
    counts["predictions_random"] = 90_000
    found = [x.message for x in records._check_replacements(counts, 10, "a")]
    assert [x.partition(";")[0] for x in found] == [
        f"a: 9.00% of {total:,} masked tokens are replaced at random",
        f"a: 10.00% of {total:,} masked tokens are kept",
    ]
    counts |= {"predictions_masked": 800_000, "predictions_random": 80_000}
    found = [x.message for x in records._check_replacements(counts, 10, "a")]
    assert found[0].startswith(f"a: 80.00% of {total:,} masked tokens are repl")
