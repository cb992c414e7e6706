"""Masking: chosen positions and their new tokens."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert.data import feature_names
from bert.data.pretraining import draws, masking
from bert.data.pretraining.settings import InstanceSettings
from tests.helpers.pretraining_rows import CLS, MASK, SEP, padded, vocabulary

V, WORD, CONTINUATION = 97, 5, 7


def test_vocabulary_knows_special_tokens_and_continuations():
    lines = ["[PAD]", "[MASK]", "[SEP]", "a", "##a", "[CLS]", "#", "##"]
    vocab = {token: i for i, token in enumerate(lines)}
    found = masking.Vocabulary.of(vocab)
    assert (found.size, found.cls_id, found.sep_id, found.mask_id) == (
        *(8, 5, 2, 1),
    )
    assert np.flatnonzero(found.continues).tolist() == [4, 7]


def words_of(ids, positions, options):
    """Positions of each word, or of each token."""
    words = []
    for position in positions:
        token = ids[position]
        if token in (CLS, SEP):
            continue
        continues = token == CONTINUATION
        if options.word_boundaries:
            continues = token >= V
        if options.do_whole_word_mask and continues and words:
            words[-1].append(position)
        else:
            words.append([position])
    return words


def span_length(drawn, longest):
    """A length of n has the weight 1/n."""
    weights = [1 / n for n in range(1, longest + 1)]
    for length in range(1, longest):
        if drawn < sum(weights[:length]) / sum(weights) * 2**32:
            return length
    return longest


def chosen_of_instance(ids, positions, wanted, keys, spans, options):
    """Chooses words in the order of their keys, and the words after them."""
    words, taken = words_of(ids, positions, options), {}
    for start in sorted(range(len(words)), key=lambda x: keys[words[x][0]]):
        length = 1
        if options.max_ngram > 1:
            length = span_length(spans[words[start][0]], options.max_ngram)
        for number in range(start, min(start + length, len(words))):
            word = words[number]
            # A span ends at a [SEP], at another span, or when it is too long.
            if number > start and word[0] != words[number - 1][-1] + 1:
                break
            masked = sum(map(len, taken.values()))
            if number in taken or masked + len(word) > wanted:
                break
            taken[number] = word
    return [position for word in taken.values() for position in word]


def mask_row(ids, numbers, drawn, options):
    """Masks one row: ids, positions and labels, without padding."""
    length, most = len(ids), options.max_predictions_per_seq
    keys, kinds, tokens, spans = np.split(
        drawn, [length, length + most, length + 2 * most]
    )
    chosen, left = [], most
    for number in range(1, max(numbers) + 1):
        positions = [i for i, x in enumerate(numbers) if x == number]
        share = round(len(positions) * options.masked_lm_prob)
        wanted = min(left, max(1, share))
        left -= wanted
        chosen += chosen_of_instance(
            ids, positions, wanted, keys, spans, options
        )

    ids = [x % V for x in ids]
    masked, chosen = list(ids), sorted(chosen)
    for slot, position in enumerate(chosen):
        kind = kinds[slot] / 2**32
        if kind < 0.8:
            masked[position] = MASK
        elif kind >= 0.9:
            masked[position] = int(tokens[slot]) * V >> 32
    return masked, chosen, [ids[position] for position in chosen]


BODY = st.lists(
    st.sampled_from([WORD, WORD, CONTINUATION, 11]), min_size=1, max_size=13
)
INSTANCE = st.tuples(BODY, BODY).map(lambda x: [CLS, *x[0], SEP, *x[1], SEP])
OPTIONS = st.builds(
    InstanceSettings,
    max_predictions_per_seq=st.sampled_from([1, 2, 5, 17, 97]),
    masked_lm_prob=st.sampled_from([0.0, 0.15, 0.3, 1.0]),
    do_whole_word_mask=st.booleans(),
    word_boundaries=st.booleans(),
    max_ngram=st.integers(1, 4),
)


@given(
    st.lists(st.lists(INSTANCE, min_size=1, max_size=3), max_size=4),
    OPTIONS,
    st.integers(0, 1 << 31),
)
def test_rows_are_masked_as_one_word_at_a_time(packed, options, seed):
    if options.word_boundaries:
        packed = [
            [[x + V * (x == CONTINUATION) for x in one] for one in row]
            for row in packed
        ]
    rows = [[x for one in row for x in one] for row in packed]
    numbers = [
        [k for k, one in enumerate(row, 1) for _ in one] for row in packed
    ]
    length = max(map(len, rows), default=3)
    drawn = []

    def draw(columns):
        drawn.append(draws.rows((seed,), 0, len(rows), columns))
        return drawn[0]

    found = masking.mask_rows(
        padded(rows, length, np.int32),
        padded(numbers, length, np.int32),
        options,
        vocabulary(V, [CONTINUATION]),
        draw,
    )

    expected = [
        mask_row(
            [*row, *[0] * (length - len(row))],
            [*of_row, *[0] * (length - len(of_row))],
            numbers_of_row,
            options,
        )
        for row, of_row, numbers_of_row in zip(
            rows, numbers, drawn[0], strict=True
        )
    ]
    most = options.max_predictions_per_seq
    ids, positions, labels = zip(*expected) if rows else ([], [], [])
    weights = [[1.0] * len(x) for x in labels]
    for name, values, size, kind in (
        (feature_names.INPUT_IDS, ids, length, np.int32),
        (feature_names.MASKED_LM_POSITIONS, positions, most, np.int32),
        (feature_names.MASKED_LM_IDS, labels, most, np.int32),
        (feature_names.MASKED_LM_WEIGHTS, weights, most, np.float32),
    ):
        assert found[name].dtype == kind
        np.testing.assert_array_equal(found[name], padded(values, size, kind))
    assert len(drawn) == 1
