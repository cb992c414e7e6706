"""Fast batch tokenization of blocks of text, with array operations.

    lines -> distinct words -> normalized text -> distinct words -> ids

A newline is a word without ids, which marks the end of a line.
Words that are not in the vocabulary are split by `wordpiece_trie`.
"""

import collections
import itertools
import re
from collections.abc import Iterator

import numpy as np

from bert.data.text import normalization, vocabulary
from bert.data.text.wordpiece_trie import LONGEST_WORD, ArrayWordpieceTokenizer

_BLOCK = 1 << 21  # approximate number of characters that are split at once
# Characters that are not marks, cased or ignorable (see `unicode_tables`).
_LAST_CUT = re.compile(".*[ ,;!?/+()=\n\t]", re.DOTALL).match


class FastTokenizer:
    """Tokenizes lines to the same ids as `tokenization.FullTokenizer`.

    Args:
        vocab: dict. Token -> id.
        do_lower_case: bool. Whether to lower-case the text.
        strip_accents: bool. Whether to strip accents.

    Attributes:
        vocab: dict. Token -> id.
    """

    def __init__(
        self, vocab: dict[str, int], do_lower_case: bool, strip_accents: bool
    ):
        self.vocab = vocab
        self._normalizer = normalization.Normalizer(
            do_lower_case, strip_accents
        )
        self._wordpieces = ArrayWordpieceTokenizer(self.vocab)
        # Words whose numbers are their ids. Keys with a space never match.
        self._known = {
            token if len(token) <= LONGEST_WORD else f" {i}": i
            for token, i in self.vocab.items()
        }
        self._known["\n"] = len(self.vocab)
        lengths = [len(token.removeprefix("##")) for token in self.vocab]
        self._lengths = np.array(lengths, np.int32)

    def ids_and_ends(self, lines: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Tokenizes lines.

        Args:
            lines: list of str. Lines or other strings.

        Returns:
            (int32 [T], int64 [lines]). The ids of all lines, and the end of
            each line among them.
        """
        parts, owners = _divide(lines)
        ids = [np.zeros(0, np.int32)]
        ends = [np.zeros(0, np.int64)]

        done = 0
        for first, last in _blocks(parts):
            numbers = _numbers({"\n": 0})
            which = _number(_words(parts[first:last]), numbers)

            # Each distinct word of a block is tokenized once.
            words = ["", *itertools.islice(numbers, 1, None)]
            of_words, ends_of_words = self._tokenize_distinct(words)

            places, limits = _places(ends_of_words, which)
            ids.append(of_words[places])
            ends.append(limits[which == 0] + done)
            done += len(places)

        return np.concatenate(ids), np.concatenate(ends)[owners]

    def ids_of_lines(self, lines: list[str]) -> list[list[int]]:
        """Tokenizes lines.

        Args:
            lines: list of str. Lines or other strings.

        Returns:
            list of list of int. The token ids of each line.
        """
        return split(*self.ids_and_ends(lines))

    def with_offsets(
        self, lines: list[str]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Tokenizes lines; also returns the characters of each token.

        `line[start:limit]` are the characters of a token, including stripped
        accents and dropped characters between them. A character that expands
        to several belongs to each token with one of its parts. The offsets of
        `[UNK]` are the whole word.

        Args:
            lines: list of str. Lines or other strings.

        Returns:
            (int32 [T], int32 [T], int32 [T], int64 [lines]). The ids of all
            lines, the first character of each token in its line, the
            character after its last, and the end of each line among the ids.
        """
        ids, starts, limits = ([np.zeros(0, np.int32)] for _ in range(3))
        ends, done = [np.zeros(0, np.int64)], 0
        for first, last in _blocks(lines):
            found = self._block_with_offsets(lines[first:last])
            ids.append(found[0])
            starts.append(found[1])
            limits.append(found[2])
            ends.append(found[3] + done)
            done += len(found[0])

        return (
            np.concatenate(ids),
            np.concatenate(starts),
            np.concatenate(limits),
            np.concatenate(ends),
        )

    def _block_with_offsets(self, lines: list[str]) -> tuple[np.ndarray, ...]:
        """Computes `with_offsets` of lines that are tokenized together."""
        sizes = np.array([len(line) + 1 for line in lines])
        text = "\n".join([*(x.replace("\n", " ") for x in lines), ""])
        spaced, starts, limits = self._normalizer.spaced_with_offsets(text)
        ids, lengths, ends = self._tokenize(spaced)

        # The letters of all tokens are consecutive, but for the newlines.
        line = np.repeat(np.arange(len(lines)), np.diff(ends, prepend=0))
        after = np.cumsum(lengths) + line
        before = (np.cumsum(sizes) - sizes)[line]
        return (
            ids,
            (starts[after - lengths] - before).astype(np.int32),
            (limits[after - 1] - before).astype(np.int32),
            ends,
        )

    def _tokenize_distinct(
        self, words: list[str]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Tokenizes words without spaces; returns their ids and ends."""
        text = self._normalizer.spaced("\n".join([*words, ""]))
        ids, _, ends = self._tokenize(text)
        return ids, ends

    def _tokenize(
        self, spaced: str
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tokenizes normalized lines.

        Args:
            spaced: str. Words and a newline after each line, separated by
                spaces.

        Returns:
            (int32 [T], int32 [T], int64 [lines]). The ids of all lines, the
            number of letters of each token, and the end of each line.
        """
        known = len(self.vocab)

        # Most of the normalized words are tokens with a known id.
        numbers = _numbers(self._known)
        which = _number(spaced.split(" "), numbers)
        words = list(itertools.islice(numbers, known + 1, None))
        ids, ends = self._wordpieces.ids_of_words(words)

        # `[UNK]` has the letters of its word.
        lengths = self._lengths[ids]
        unknown = np.flatnonzero(ids == self.vocab[vocabulary.UNK])
        of_word = np.searchsorted(ends, unknown, side="right")
        lengths[unknown] = [len(words[i]) for i in of_word.tolist()]

        each = np.arange(known + 1, dtype=np.int32)
        ids = np.concatenate([each[:known], ids])
        lengths = np.concatenate([self._lengths, lengths])
        ends = np.concatenate([each[1:], each[-1:], known + ends])

        places, ends = _places(ends, which)
        return ids[places], lengths[places], ends[which == known]


def split(ids: np.ndarray, ends: np.ndarray) -> list[list[int]]:
    """Splits the ids of lines into lists.

    Args:
        ids: int [T]. Ids of all lines.
        ends: int64 [lines]. End of each line in `ids`.

    Returns:
        list of list of int. The ids of each line.
    """
    flat, limits = ids.tolist(), ends.tolist()
    return [flat[a:b] for a, b in zip([0, *limits], limits)]


def _words(lines: list[str]) -> list[str]:
    """Splits lines at spaces, and adds a newline word after each line."""
    text = " \n ".join([*lines, ""])
    if text.count("\n") > len(lines):
        text = " \n ".join([*(x.replace("\n", " ") for x in lines), ""])
    return text.split(" ")


def _numbers(known: dict[str, int]) -> collections.defaultdict:
    """Returns a dict word -> number that gives new words the next number."""
    following = itertools.count(len(known)).__next__
    return collections.defaultdict(following, known)


def _number(words: list[str], numbers: collections.defaultdict) -> np.ndarray:
    """Returns the number of each word, int32 [words]; see `_numbers`."""
    return np.fromiter(map(numbers.__getitem__, words), np.int32, len(words))


def _places(
    ends: np.ndarray, which: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Finds the tokens of words, in any order and any number of times.

    Args:
        ends: int64 [N]. End of each word among the tokens of all words.
        which: int32 [n]. Numbers of the words to find.

    Returns:
        (int64 [t], int64 [n]). The indices of the tokens of these words, and
        the end of each word among them.
    """
    counts = np.diff(ends, prepend=0)[which]
    stops = np.cumsum(counts)
    shifts = np.repeat(ends[which] - stops, counts)
    return shifts + np.arange(len(shifts)), stops


def _divide(lines: list[str]) -> tuple[list[str], np.ndarray | slice]:
    """Divides very long lines where the parts can be tokenized separately.

    Returns:
        The parts of all lines, and the indices of the last part of each line.
    """
    if max(map(len, lines), default=0) <= _BLOCK:
        return lines, slice(None)
    parts = [list(_parts(line)) for line in lines]
    last = np.cumsum([len(x) for x in parts], dtype=np.int64) - 1
    return list(itertools.chain.from_iterable(parts)), last


def _parts(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > _BLOCK:
        cut = _LAST_CUT(line, start, start + _BLOCK)
        if not cut:
            break
        yield line[start : cut.end()]
        start = cut.end()
    yield line[start:] if start else line


def _blocks(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yields the start and end of each block among the lines."""
    sizes = np.cumsum(np.fromiter(map(len, lines), np.int64, len(lines)))
    cuts = np.flatnonzero(np.diff(sizes // _BLOCK)) + 1
    edges = [0, *cuts.tolist(), len(lines)]
    return ((a, b) for a, b in itertools.pairwise(edges) if a < b)
