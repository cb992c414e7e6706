"""Splits words and labels into windows; labels the first token of a word.

    words    Jim     Hen        ##son  was  a  puppet  ##eer
    labels   B-PER   I-PER             O    O  O
    weights  1       1          0      1    1  1       0

A unit is a sentence or a whole document. A long unit is split into overlapping
windows. Each word is labelled and predicted in one window only, the one in
which it is farthest from the ends.

    unit             w0 w1 w2 w3 w4 w5 w6 w7 w8
    first window     w0 w1 w2 w3 w4 w5
    labelled words   ^  ^  ^  ^
    second window             w3 w4 w5 w6 w7 w8
    labelled words               ^  ^  ^  ^  ^

So the labels of all windows, in order, are the labels of the unit.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bert.data import feature_names, sequences
from bert.data.records.encoding import Feature, RecordSchema
from bert.data.text import vocabulary

Ids = list[int]
TRAINING_SCHEMA: RecordSchema = {
    feature_names.LABEL_IDS: Feature(sequence=True),
    feature_names.LABEL_WEIGHTS: Feature("float32", sequence=True),
}


class WordWindow(NamedTuple):
    """A window of a unit; all indices count the words of the unit.

    Attributes:
        start, limit: first word, and first word after the window.
        first, last: first labelled word of this window, and first word after
            the labelled ones.
    """

    start: int
    limit: int
    first: int
    last: int


def split_windows(
    lengths: list[int], size: int, stride: int
) -> list[WordWindow]:
    """Splits a unit into windows.

    Window k begins at the first word with k * stride tokens before it; the
    last window is extended to the left to its full size. In an overlap of two
    windows, the words up to the middle are labelled in the first window.

    Args:
        lengths: list of int. Tokens of each word, from 1 to `longest_word`.
        size: int. Maximum number of tokens of a window.
        stride: int. Tokens between the starts of two windows, at most half of
            `size`.

    Returns:
        windows whose ranges `first` to `last` cover each word once, in order.
    """
    before = np.cumsum([0, *lengths])  # tokens before each word
    rest = max(0, int(before[-1]) - size)
    count = 1 - (-rest // stride)

    # The last window ends with the unit, so it begins earlier.
    wanted = np.minimum(np.arange(count) * stride, rest)
    starts = np.searchsorted(before, wanted)
    limits = np.searchsorted(before, before[starts] + size, "right") - 1

    # Twice the middles of overlaps and words, to avoid halves.
    middles = before[starts[1:]] + before[limits[:-1]]
    borders = np.searchsorted(before[:-1] + before[1:], middles)
    edges = [0, *borders.tolist(), len(lengths)]
    return [
        WordWindow(start, limit, first, last)
        for start, limit, first, last in zip(
            starts.tolist(), limits.tolist(), edges, edges[1:]
        )
        if first < last
    ]


def default_stride(size: int) -> int:
    """Half a window, so each word has a quarter window on both sides."""
    return max(1, size // 2)


def longest_word(size: int, stride: int) -> int:
    """Maximum tokens of a word; windows could miss a longer word."""
    return size - stride + 1


class Featurizer:
    """Converts sentences to features of windows.

    Args:
        ids_of: function, word -> token ids.
        vocab: dict, token -> id.
        label_ids: dict, label -> id; unknown labels get id 0.
        max_seq_length: int. Longest window in tokens.
        stride: int. See `split_windows`; 0 for half a window.
    """

    def __init__(
        self,
        ids_of: Callable[[str], Ids],
        vocab: dict[str, int],
        label_ids: dict[str, int],
        max_seq_length: int,
        stride: int = 0,
    ):
        self._ids_of = ids_of
        self._cls, self._sep, self._unk = (
            vocab[x] for x in (vocabulary.CLS, vocabulary.SEP, vocabulary.UNK)
        )
        self._label_ids = label_ids
        self._size = max_seq_length - 2
        self._stride = stride or default_stride(self._size)

    def featurize(
        self, words: Sequence[str], labels: Sequence[str] = ()
    ) -> Iterator[dict]:
        """Yields the features of the windows of a unit, in the word order.

        Args:
            words: sequence of str. The words of a sentence or a document.
            labels: sequence of str. Their labels; () if they are unknown.

        Yields:
            input_ids, segment_ids, label_ids and label_weights, lists of the
            same length.
        """
        labels = labels or [""] * len(words)
        longest = longest_word(self._size, self._stride)

        # The tokenizer may drop all characters of a word.
        tokens = [self._ids_of(x)[:longest] or [self._unk] for x in words]
        lengths = [len(x) for x in tokens]

        for window in split_windows(lengths, self._size, self._stride):
            ids, label_ids, weights = [], [], []
            for word in range(window.start, window.limit):
                is_labelled = window.first <= word < window.last
                rest = [0] * (len(tokens[word]) - 1)
                ids += tokens[word]
                label_id = self._label_ids.get(labels[word], 0)
                label_ids += [label_id * is_labelled, *rest]
                weights += [float(is_labelled), *rest]

            ids, segments = sequences.join_pair(ids, [], self._cls, self._sep)
            yield {
                feature_names.INPUT_IDS: ids,
                feature_names.SEGMENT_IDS: segments,
                feature_names.LABEL_IDS: [0, *label_ids, 0],
                feature_names.LABEL_WEIGHTS: [0.0, *weights, 0.0],
            }
