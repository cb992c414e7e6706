"""Pre-training instances: sentence pairs of documents, and their masks."""

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from bert.data.pretraining.settings import InstanceSettings
from tests.helpers.pretraining_rows import (
    FIRST,
    make_instances,
    numbered,
    unmasked,
    vocabulary,
)


def flat(document):
    return [token for sentence in document for token in sentence]


def instances_of(documents, options, number=0):
    size = FIRST + sum(len(flat(document)) for document in documents)
    return make_instances(
        documents, options, vocabulary(size, range(FIRST, size, 3)), number
    )


LENGTHS = st.lists(
    st.lists(st.integers(1, 19), min_size=1, max_size=11),
    min_size=2,
    max_size=7,
)
SETTINGS = st.builds(
    InstanceSettings,
    max_seq_length=st.sampled_from([5, 7, 13, 31, 61]),
    max_predictions_per_seq=st.sampled_from([1, 3, 11]),
    masked_lm_prob=st.sampled_from([0.0, 0.02, 0.15, 0.3]),
    short_seq_prob=st.sampled_from([0.0, 0.1, 1.0]),
    random_seed=st.integers(0, 1 << 31),
    do_whole_word_mask=st.booleans(),
    max_ngram=st.integers(1, 3),
)


@given(LENGTHS, SETTINGS)
def test_instances_are_slices_of_documents(lengths, options):
    """Packed into rows or not."""
    documents = numbered(lengths)
    where = {
        token: i
        for i, document in enumerate(documents)
        for token in flat(document)
    }
    plain = instances_of(documents, options)
    packed = dataclasses.replace(options, pack_sequences=True)
    made = [plain, instances_of(documents, packed)]
    pairs = [
        sorted((*unmasked(x), x.is_random_next) for x in some) for some in made
    ]
    assert pairs[0] == pairs[1]

    for a, b, is_random in pairs[0]:
        for segment in (a, b):  # consecutive, of one document
            assert segment == list(range(segment[0], segment[-1] + 1))
            assert where[segment[0]] == where[segment[-1]]
        same = where[a[0]] == where[b[0]]
        assert same != is_random
        length = len(a) + len(b) + 3
        assert length <= options.max_seq_length
        if same and length < options.max_seq_length:
            assert b[0] == a[-1] + 1
        elif same:  # truncation may part them
            assert b[0] > a[-1]

    # Each instance has the same number of masks in a row of several.
    for instance in [*plain, *made[1]]:
        length = len(instance.ids)
        share = round(length * options.masked_lm_prob)
        wanted = min(options.max_predictions_per_seq, max(1, share))
        if options.do_whole_word_mask:
            assert len(instance.masked_lm_positions) <= wanted
        else:
            assert len(instance.masked_lm_positions) == wanted


@settings(deadline=None, max_examples=50, derandomize=True)
@given(
    st.lists(st.integers(1, 61), min_size=2, max_size=7),
    st.integers(0, 1 << 31),
)
def test_every_sentence_is_used_in_its_turn(sentences, seed):
    # Sentences of one token fill rows exactly, so nothing is truncated: the
    # first segments, with the second ones that follow them, are the document.
    documents = numbered([[1] * count for count in sentences])
    options = InstanceSettings(max_seq_length=13, random_seed=seed)
    used = []
    for instance in instances_of(documents, options):
        a, b = unmasked(instance)
        used += a if instance.is_random_next else a + b
    assert used == [token for doc in documents for token in flat(doc)]


def test_the_random_document_is_never_the_same():
    # Of two documents the draw misses ten times in a row about every 1024th
    # time; the original then takes the document itself.
    documents = numbered([[1] * 1009, [1] * 1009])
    options = InstanceSettings(max_seq_length=5, short_seq_prob=0.0)
    randoms = 0
    for number in range(7):
        for instance in instances_of(documents, options, number):
            a, b = unmasked(instance)
            same = (a[0] < FIRST + 1009) == (b[0] < FIRST + 1009)
            assert same != instance.is_random_next
            randoms += instance.is_random_next
    assert randoms > 4000
