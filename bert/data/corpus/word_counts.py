"""Counts the words of a corpus of any size, in parallel and bounded memory.

files -> lines -> every 100th line is held out
               -> chunks of 2 MB -> words of a chunk -> one table

Chunks depend only on the corpus and are added in order, so the counts are the
same for any number of processes.
"""

import dataclasses
import functools
import itertools
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from bert.common import processes, text_lines
from bert.common.errors import UserError
from bert.data.corpus import chunks, documents
from bert.data.text import normalization, wordpiece_trie
from bert.data.text.casing import NewCasing

CHUNK_SIZE = 2_000_000  # characters that a process counts at once
TABLE_SIZE = 8_000_000  # see `WordTable`; learning needs at most 1.5 GB
HELD_OUT_SIZE = 2_000_000  # characters
HELD_OUT_EVERY = 100  # lines
FEWEST_LINES = 1000  # in shorter corpora no lines are held out
LONGEST_WORD = wordpiece_trie.LONGEST_WORD


@dataclasses.dataclass(frozen=True)
class WordCounts:
    """Word counts of a corpus.

    Attributes:
        words: Counter. Word -> count in the lines for learning.
        held_out: Counter. Word -> count in the held-out lines; equal to
            `words` if the corpus is too short for held-out lines.
        is_held_out: bool. Whether `words` excludes `held_out`.
        dropped_below: int. Some words with lower counts were dropped because
            the table was full. 0: no word was dropped.
    """

    words: Counter
    held_out: Counter
    is_held_out: bool
    dropped_below: int


def counter(casing: NewCasing) -> Callable[[str], Counter]:
    """Returns a function that counts words as the tokenizer splits them.

    Args:
        casing: NewCasing. Casing of the tokenizer.

    Returns:
        A function that maps a text to a Counter of its words.
    """
    split = normalization.Normalizer(
        casing.do_lower_case, casing.strips_accents
    ).words
    return lambda text: Counter(split(text))


class WordTable:
    """Word counts of bounded size: a full table drops its rarest words.

    The size of a word is 4 plus its length. A full table keeps its most
    frequent words, up to half the size. Ties are broken by a hash, so that no
    alphabet is preferred. Words that are too long for a vocabulary are not
    counted.

    Args:
        size: int. Size of a full table.

    Attributes:
        words: Counter. Word -> count.
        dropped_below: int. See `WordCounts`.
    """

    def __init__(self, size: int):
        self.words: Counter = Counter()
        self.dropped_below = 0
        self._size, self._used = size, 0

    def add(self, counts: Counter) -> None:
        """Adds the counts of one chunk."""
        words = self.words
        for word, count in counts.items():
            if word in words:
                words[word] += count
            elif len(word) <= LONGEST_WORD:
                words[word] = count
                self._used += _size(word)

        if self._used > self._size:
            self._drop()

    def _drop(self) -> None:
        words, total = list(self.words), len(self.words)
        counts = np.fromiter(self.words.values(), np.int64, total)
        sizes = np.fromiter(map(_size, words), np.int64, total)
        hashes = np.fromiter(
            (zlib.crc32(word.encode()) for word in words), np.int64, total
        )
        order = np.lexsort((hashes, -counts))

        # Half of the table is freed, so that this happens rarely.
        used = np.cumsum(sizes[order])
        kept = int(np.searchsorted(used, self._size // 2, "right"))
        if kept < total:
            rarest = int(counts[order[kept]]) + 1
            self.dropped_below = max(self.dropped_below, rarest)

        self.words = Counter(
            {words[i]: self.words[words[i]] for i in order[:kept].tolist()}
        )
        self._used = sum(map(_size, self.words))


class HeldOutLines:
    """Lines held out to evaluate the vocabulary learned from the other lines.

    Every hundredth line is held out. When they exceed `HELD_OUT_SIZE`, every
    second one is released, and half as many are held out from then on.

    Attributes:
        lines: list of str. The held-out lines.
        seen: int. Number of lines of the corpus that are not blank.
    """

    def __init__(self):
        self.lines: list[str] = []
        self.seen = 0

    def filter(self, lines: Iterable[str]) -> Iterator[str]:
        """Yields the lines to learn from; all lines of a short corpus."""
        every, size = HELD_OUT_EVERY, 0
        for line in filter(None, lines):
            self.seen += 1
            if self.seen % every:
                yield line
                continue

            self.lines.append(line)
            size += len(line)
            while size > HELD_OUT_SIZE:
                yield from self.lines[::2]
                del self.lines[::2]
                every *= 2
                size = sum(map(len, self.lines))

        # Short corpora need all their lines for learning.
        if self.seen < FEWEST_LINES:
            yield from self.lines
            self.lines.clear()


def count_corpus(
    files: list[str], casing: NewCasing, num_processes: int
) -> WordCounts:
    """Counts the words of all files.

    Args:
        files: list of str. Paths of the corpus.
        casing: NewCasing. Casing of the tokenizer.
        num_processes: int. Maximum number of processes, which does not change
            the counts.

    Returns:
        WordCounts. Counts of the lines for learning and the held-out lines.

    Raises:
        UserError: A file cannot be read or is not UTF-8, or no line has text.
    """
    held_out, table = HeldOutLines(), WordTable(TABLE_SIZE)
    lines = chunks.divide(
        held_out.filter(_lines(files)), CHUNK_SIZE, lambda x: len(x) + 1
    )

    # The tokenizer always splits at the spaces between the lines.
    texts = map(" ".join, lines)

    # A small corpus needs few processes.
    first = list(itertools.islice(texts, num_processes))
    texts = itertools.chain(first, texts)
    for counts in processes.map_in_order(
        functools.partial(counter, casing), texts, max(1, len(first))
    ):
        table.add(counts)

    if not held_out.seen:
        raise UserError(
            "no document", path=",".join(files), expected="lines of text"
        )

    # Without held-out lines, the fit is measured on the same words.
    words = table.words
    if held_out.lines:
        words = counter(casing)(" ".join(held_out.lines))
    return WordCounts(
        table.words, words, bool(held_out.lines), table.dropped_below
    )


def _lines(files: list[str]) -> Iterator[str]:
    for path, on_read in documents.follow("counting words", files):
        for _, line in text_lines.lines(path, on_read):
            yield line.strip()


def _size(word: str) -> int:
    return len(word) + 4
