"""Merged pairs: the tokens and the order of Hugging Face's trainer."""

import random

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from bert.data.corpus import pair_merging
from bert.data.corpus.vocabulary_learner import _alphabet


def peer(words, alphabet, size, min_frequency):
    """Reads each word as often as it occurs."""
    model = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        special_tokens=alphabet,
        continuing_subword_prefix="##",
        show_progress=False,
    )
    lines = (f"{word} " * count for word, count in words.items())
    model.train_from_iterator(lines, trainer)
    vocab = model.get_vocab()
    return sorted(set(vocab) - set(alphabet), key=vocab.get)


def assert_equal(words, more, min_frequency):
    alphabet = _alphabet(words, 1000)
    size = len(alphabet) + more
    expected = peer(words, alphabet, size, min_frequency)
    found = pair_merging.merge_pairs(words, alphabet, size, min_frequency)
    assert found == expected
    return found


# Few letters: the same token from several pairs, and runs of one letter.
@pytest.mark.parametrize("letters", ["a", "ab", "abc", "abcdé推"])
@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.data())
def test_small_vocabularies(letters, data):
    words = st.dictionaries(
        st.text(letters, min_size=1, max_size=13),
        st.integers(1, 29),
        min_size=1,
        max_size=41,
    )
    assert_equal(
        data.draw(words),
        data.draw(st.integers(0, 61)),
        data.draw(st.sampled_from([1, 2, 7])),
    )


def test_a_large_vocabulary():
    rng = random.Random(1)
    stems = ["".join(rng.choices("etaoinshrdlu", k=4)) for _ in range(300)]
    words = {
        "".join(rng.choices(stems, k=rng.randint(1, 3))): rng.randint(1, 50)
        for _ in range(4000)
    }
    assert len(assert_equal(words, 5000, 2)) > 3000


def test_counts_of_a_corpus_that_no_trainer_can_read():
    words = {"abab": 3, "aba": 2, "cab": 2, "bbb": 5}
    alphabet = _alphabet(words, 9)
    huge = {word: count * 10**15 for word, count in words.items()}
    assert pair_merging.merge_pairs(
        huge, alphabet, 99, 10**15
    ) == pair_merging.merge_pairs(words, alphabet, 99, 1)


def test_no_words():
    assert pair_merging.merge_pairs({}, ["a"], 9, 2) == []
