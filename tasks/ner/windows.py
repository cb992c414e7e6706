"""Words and their labels to rows: a label at the first piece of each word.

    words    Jim     Hen        ##son  was  a  puppet  ##eer
    labels   B-PER   I-PER             O    O  O
    weights  1       1          0      1    1  1       0

A unit, which is a sentence or a whole document, that is longer than a row
becomes several, which overlap. Each word has its label, and gets its
prediction, in one of them: the one where it stands farthest from the ends.

    unit          w0 w1 w2 w3 w4 w5 w6 w7 w8
    first row     w0 w1 w2 w3 w4 w5
    its labels    ^  ^  ^  ^
    second row             w3 w4 w5 w6 w7 w8
    its labels                ^  ^  ^  ^  ^

So the labels of all rows, one after the other, are those of the file.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from data import features, sequences
from data.text import vocabulary
from tasks.ner import conll

Ids = list[int]


class Window(NamedTuple):
    """Words of a row; numbers are those of the unit.

    Attributes:
        start, limit: its first word, and the first behind it.
        first, last: the first that has its label here, and the first behind.
    """

    start: int
    limit: int
    first: int
    last: int


def windows(lengths: list[int], room: int, stride: int) -> list[Window]:
    """Cuts a unit into windows.

    The k-th begins at the first word that has k * stride pieces before it;
    the last is filled up from the left. Where two overlap, the words up to
    the middle of the overlap belong to the first.

    Args:
        lengths: pieces of each word, from 1 to `longest_word`.
        room: pieces of a window at most.
        stride: pieces from one start to the next, half of `room` at most.

    Returns:
        windows; `first` to `last` of all are every word once, in order.
    """
    before = np.cumsum([0, *lengths])  # pieces before each word
    rest = max(0, int(before[-1]) - room)
    count = 1 - (-rest // stride)
    wanted = np.minimum(np.arange(count) * stride, rest)
    starts = np.searchsorted(before, wanted)
    limits = np.searchsorted(before, before[starts] + room, "right") - 1
    middles = before[starts[1:]] + before[limits[:-1]]
    borders = np.searchsorted(before[:-1] + before[1:], middles)
    edges = [0, *borders.tolist(), len(lengths)]
    return [
        Window(start, limit, first, last)
        for start, limit, first, last in zip(
            starts.tolist(), limits.tolist(), edges, edges[1:]
        )
        if first < last
    ]


def default_stride(room: int) -> int:
    """Half of the room: a word has a quarter on each side at least."""
    return max(1, room // 2)


def longest_word(room: int, stride: int) -> int:
    """Pieces of a word at most; with more, windows could miss a word."""
    return room - stride + 1


class RowMaker:
    """Makes rows of sentences.

    Args:
        ids_of: word -> ids of its pieces.
        vocab: token -> id.
        label_ids: label -> id; labels that are not in it count as the first.
        max_seq_length: S of the rows at most.
        stride: see `windows`; 0 for half of the row.
        document_context: a unit is a document; else it is a sentence.
    """

    def __init__(
        self,
        ids_of: Callable[[str], Ids],
        vocab: dict[str, int],
        label_ids: dict[str, int],
        max_seq_length: int,
        stride: int = 0,
        document_context: bool = False,
    ):
        self._ids_of = ids_of
        self._cls, self._sep, self._unk = (
            vocab[x] for x in (vocabulary.CLS, vocabulary.SEP, vocabulary.UNK)
        )
        self._label_ids = label_ids
        self._room = max_seq_length - 2
        self._stride = stride or default_stride(self._room)
        self._document_context = document_context

    def rows(self, sentences: Iterable[conll.Sentence]) -> Iterator[dict]:
        """Yields rows, in the order of the words.

        Args:
            sentences: with labels or without.

        Yields:
            input_ids, segment_ids, label_ids, label_weights, of one length.
        """
        units = itertools.groupby(
            enumerate(sentences),
            lambda x: x[1].document if self._document_context else x[0],
        )
        for _, unit in units:
            unit = [sentence for _, sentence in unit]
            words = [word for x in unit for word in x.words]
            labels = [label for x in unit for label in x.labels]
            yield from self._unit(words, labels or [None] * len(words))

    def _unit(self, words: list[str], labels: list) -> Iterator[dict]:
        longest = longest_word(self._room, self._stride)
        # A word may be of characters that the tokenizer drops.
        pieces = [self._ids_of(x)[:longest] or [self._unk] for x in words]
        found = windows([len(x) for x in pieces], self._room, self._stride)
        for window in found:
            ids, marks, weights = [], [], []
            for word in range(window.start, window.limit):
                owned = window.first <= word < window.last
                more = [0] * (len(pieces[word]) - 1)
                ids += pieces[word]
                marks += [self._label_ids.get(labels[word], 0) * owned, *more]
                weights += [float(owned), *more]
            ids, segments = sequences.join_pair(ids, [], self._cls, self._sep)
            yield {
                features.INPUT_IDS: ids,
                features.SEGMENT_IDS: segments,
                features.LABEL_IDS: [0, *marks, 0],
                features.LABEL_WEIGHTS: [0.0, *weights, 0.0],
            }
