"""Word counts of a corpus of any size, on all cores in bounded memory.

files -> lines -> every 100th is held out
               -> chunks of 2 MB -> words of a chunk -> one table

Chunks depend on the corpus only and are added in order, so the counts are the
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
from bert.data.text import fast_tokenization, normalization
from bert.data.text.casing import Casing

CHUNK_SIZE = 2_000_000  # characters that a process counts at once
TABLE_SIZE = 8_000_000  # see `WordTable`; learning takes at most 1.5 GB
HELD_OUT_SIZE = 2_000_000  # characters
HELD_OUT_EVERY = 100  # lines
FEWEST_LINES = 1000  # in shorter corpora no lines are held out
LONGEST_WORD = fast_tokenization.LONGEST_WORD


@dataclasses.dataclass(frozen=True)
class WordCounts:
    """Word counts of a corpus.

    Attributes:
        words: word -> count, to learn from.
        held_out: word -> count of the held-out lines; equal to `words` if
            the corpus is too short for held-out lines.
        is_held_out: whether `words` excludes `held_out`.
        dropped_below: some words that occur less often were dropped, as the
            table was full; 0 if none were.
    """

    words: Counter
    held_out: Counter
    is_held_out: bool
    dropped_below: int


def counter(casing: Casing) -> Callable[[str], Counter]:
    """Returns a function that counts words as the tokenizer splits them.

    Args:
        casing: of the tokenizer.

    Returns:
        text -> (word -> number of occurrences).
    """
    split = normalization.Normalizer(
        casing.do_lower_case, casing.strips_accents
    ).words
    return lambda text: Counter(split(text))


class WordTable:
    """Word counts of bounded size: a full table drops its rarest words.

    The size of a word is 4 plus its length. A full table keeps its most
    frequent words, up to half the size; a hash breaks ties, so that no
    alphabet is preferred. Words that are too long for any vocabulary are not
    counted.

    Args:
        size: size of a full table.

    Attributes:
        words: word -> count.
        dropped_below: as in `WordCounts`.
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

        # Half of the table is free afterwards, so that this is rare.
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
    """Lines held out to evaluate the vocabulary learned from the others.

    Every hundredth line is held out. When these become too many, every second
    one is released, and half as many are held out from then on.

    Attributes:
        lines: the held-out lines.
        seen: number of lines of the corpus, without blank ones.
    """

    def __init__(self):
        self.lines: list[str] = []
        self.seen = 0

    def filter(self, lines: Iterable[str]) -> Iterator[str]:
        """Yields the lines to learn from; of a short corpus, all lines."""
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

        # So few lines are all needed to learn from.
        if self.seen < FEWEST_LINES:
            yield from self.lines
            self.lines.clear()


def count_corpus(
    files: list[str], casing: Casing, num_processes: int
) -> WordCounts:
    """Counts the words of all files.

    Args:
        files: paths of the corpus.
        casing: of the tokenizer.
        num_processes: maximum number of processes; the counts are the same
            for any number.

    Returns:
        counts of the words to learn from and of the held-out words.

    Raises:
        UserError: a file cannot be read or is not UTF-8, or no line has text.
    """
    held_out, table = HeldOutLines(), WordTable(TABLE_SIZE)
    lines = chunks.divide(
        held_out.filter(_lines(files)), CHUNK_SIZE, lambda x: len(x) + 1
    )

    # Joined by spaces, across which the tokenizer never looks.
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

    # A short corpus has no held-out lines: it is measured on itself.
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
