"""Windows of words: labels at first tokens, no word lost."""

import types

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert.tasks.ner import windows
from bert.tasks.ner.conll import Sentence
from bert.tasks.ner.task import TokenClassification
from tests.helpers import word_windows

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


@given(st.integers(1, 31), st.data())
def test_windows_are_those_of_the_definition(size, data):
    """They hold every word, and label it once."""
    stride = data.draw(st.integers(1, max(1, size // 2)))
    longest = windows.longest_word(size, stride)
    assert longest == size - stride + 1
    lengths = data.draw(
        st.lists(st.integers(1, longest), min_size=1, max_size=60)
    )
    found = windows.split_windows(lengths, size, stride)
    before = np.cumsum([0, *lengths]).tolist()
    assert found == word_windows.of_words(before, size, stride)
    owned = [w for x in found for w in range(x.first, x.last)]
    assert owned == [*range(len(lengths))]
    for start, limit, first, last in found:
        assert start <= first < last <= limit
        assert sum(lengths[start:limit]) <= size


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
