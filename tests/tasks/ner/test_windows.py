"""Windows of words: labels at first tokens, no word lost."""

import random
import types

import numpy as np
import pytest

from bert.tasks.ner import windows
from bert.tasks.ner.conll import Sentence
from bert.tasks.ner.task import TokenClassification

VOCAB = {
    token: i for i, token in enumerate("[PAD] [UNK] [CLS] [SEP] a".split())
}
UNK, CLS, SEP = 1, 2, 3
LABELS = ["O", "B-PER", "I-PER"]


def ids_of(word):
    """As many tokens as the word has letters; `_` has none."""
    return [10 + len(word)] + [9] * (len(word) - 1) if word != "_" else []


def featurize(sentences, length, **options):
    exact = types.SimpleNamespace(
        tokenize=str, convert_tokens_to_ids=ids_of, vocab=VOCAB
    )
    tokenizer = types.SimpleNamespace(exact=exact)
    task = TokenClassification(tokenizer, LABELS, True, length, **options)
    return list(task.records(sentences))


def labels_of_words(examples, choices):
    """Yields one prediction for each word, in the order of the words."""
    for example, best in zip(examples, choices, strict=True):
        yield from best[np.flatnonzero(example["label_weights"])].tolist()


def sentence(words, document=0, labels=""):
    return Sentence(words.split(), labels.split(), [1], document)


def test_only_first_tokens_have_labels():
    found = featurize(
        [sentence("aa b _ ccc", labels="B-PER I-PER O B-LOC")], 11
    )
    assert found == [
        {
            "input_ids": [CLS, 12, 9, 11, UNK, 13, 9, 9, SEP],
            "segment_ids": [0] * 9,
            "label_ids": [0, 1, 0, 2, 0, 0, 0, 0, 0],
            "label_weights": [0, 1, 0, 1, 1, 1, 0, 0, 0],
        }
    ]


def test_a_long_sentence_becomes_windows():
    """Windows of 6 words; as drawn at the head of the module."""
    words = [f"{'a' * 1}" for _ in range(9)]
    assert windows.split_windows([1] * 9, 6, 3) == [(0, 6, 0, 4), (3, 9, 4, 9)]
    found = featurize([sentence(" ".join(words))], 8)
    assert [sum(example["label_weights"]) for example in found] == [4, 5]
    assert [len(example["input_ids"]) for example in found] == [8, 8]


def test_windows_hold_every_word_once_with_context():
    rng = random.Random(5)
    for _ in range(400):
        size = rng.randint(1, 31)
        stride = rng.randint(1, max(1, size // 2))
        longest = windows.longest_word(size, stride)
        count = rng.randint(1, 97)
        lengths = [rng.randint(1, longest) for _ in range(count)]
        found = windows.split_windows(lengths, size, stride)
        owned = [w for x in found for w in range(x.first, x.last)]
        assert owned == list(range(count))
        for start, limit, first, last in found:
            assert start <= first < last <= limit
            assert sum(lengths[start:limit]) <= size


def test_words_away_from_the_ends_see_both_sides():
    """With a stride of half a window, a quarter of it on each side."""
    found = windows.split_windows([1] * 1000, 40, 20)
    for start, limit, first, last in found:
        assert first == 0 or first - start >= 10
        assert last == 1000 or limit - last >= 9


@pytest.mark.parametrize("context", [False, True])
@pytest.mark.parametrize("length", [3, 4, 7, 31])
def test_no_word_is_without_a_prediction(context, length):
    """Sentences of 1 to 2,000 words, of 0 to 37 tokens each."""
    rng = random.Random(length)
    sentences = [
        sentence(
            " ".join(
                rng.choice(["_", "b", "cc", "d" * rng.randint(1, 37)])
                for _ in range(count)
            ),
            document=number // 2,
        )
        for number, count in enumerate([1, 2, 3, 29, 211, 2000])
    ]
    words = [word for x in sentences for word in x.words]
    found = featurize(sentences, length, document_context=context)
    assert max(len(example["input_ids"]) for example in found) <= length
    # The network would predict the id of the token itself.
    predicted = (np.array(example["input_ids"]) for example in found)
    predicted = list(labels_of_words(found, predicted))
    assert predicted == [(ids_of(word) or [UNK])[0] for word in words]


def test_sentences_of_a_document_share_a_window():
    sentences = [
        sentence("a bb", 0, "O B-PER"),
        sentence("c", 0, "I-PER"),
        sentence("d", 1, "B-PER"),
    ]
    apart = featurize(sentences, 13)
    assert [len(example["input_ids"]) for example in apart] == [5, 3, 3]
    together = featurize(sentences, 13, document_context=True)
    assert [example["input_ids"] for example in together] == [
        [CLS, 11, 12, 9, 11, SEP],
        [CLS, 11, SEP],
    ]
    assert [example["label_ids"] for example in together] == [
        [0, 0, 1, 0, 2, 0],
        [0, 1, 0],
    ]


def test_context_extends_the_last_window_to_the_left():
    found = windows.split_windows([1] * 13, 10, 5)
    assert found == [(0, 10, 0, 6), (3, 13, 6, 13)]
