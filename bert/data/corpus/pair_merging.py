"""Learns the tokens of a WordPiece vocabulary by merging frequent pairs.

    tokens of counted words        h ##u ##g (10)   p ##u ##g (5)
    the most frequent pair         ##u ##g (15)  ->  ##ug

Byte-pair encoding (Sennrich et al., 2016, https://arxiv.org/abs/1508.07909)
with the tokens and the order of the Hugging Face `tokenizers` trainer. The
trainer reads each occurrence of a word. This module takes word counts, so time
and memory depend only on the number of different words.
"""

import bisect
import heapq
import unicodedata
from collections.abc import Mapping

import numpy as np

from bert.common.progress import Progress

_PREFIX = "##"
_CODE_POINTS = 0x110000


def merge_pairs(
    words: Mapping[str, int],
    alphabet: list[str],
    size: int,
    min_frequency: int,
) -> list[str]:
    """Merges pairs until there are enough tokens; symbols are not merged.

    Args:
        words: mapping. Word -> count; words consist of characters of the
            alphabet.
        alphabet: list of str. A token for each character, `a` or `##a`. Ties
            between equally frequent pairs are broken by this order.
        size: int. Number of tokens, including the alphabet.
        min_frequency: int. Minimum frequency of a merged pair.

    Returns:
        list of str. The new tokens, in the order of the merges.
    """
    tokens = list(alphabet)
    ids = {token: i for i, token in enumerate(tokens)}
    text = _Text(words, ids, max(size, len(tokens)))

    progress = Progress("merging", size - len(alphabet), "tokens")
    while len(tokens) < size:
        progress.update(len(tokens) - len(alphabet))

        pair = text.most_frequent(max(min_frequency, 1))
        if pair is None:
            break

        token = tokens[pair[0]] + tokens[pair[1]].removeprefix(_PREFIX)

        # The pair was removed from the heap, so the next one is chosen.
        if is_symbols(token):
            continue
        if token not in ids:  # pairs such as ab ##c and a ##bc give the same
            ids[token] = len(tokens)
            tokens.append(token)
        text.merge(ids[token])
    return tokens[len(alphabet) :]


def is_symbols(word: str) -> bool:
    """Returns whether a word is several symbols, such as a table border."""
    return len(word) > 1 and not any(
        unicodedata.category(character)[0] in "LMN" for character in word
    )


class _Text:
    """Tokens of all words, and their adjacent pairs.

    A position is the index of a character in the concatenated words. A token
    has the position of its first character. The position after the last
    character is a sentinel: the neighbour of the first and last token of words.

    Args:
        words: mapping. Word -> count.
        ids: dict. Token of the alphabet -> id.
        size: int. Upper bound of the ids.
    """

    def __init__(self, words: Mapping[str, int], ids: dict[str, int], size):
        self._size = size
        ordered = sorted(words)
        lengths = np.array([len(word) for word in ordered], np.int64)
        counts = np.array([words[word] for word in ordered], np.int64)
        ends = np.cumsum(lengths)
        firsts, lasts = ends - lengths, ends - 1

        # Linked lists: a merge changes only the neighbours of its pair.
        self._none = none = int(lengths.sum())
        self._tokens = _tokens("".join(ordered), firsts, ids)
        self._counts = np.repeat(counts, lengths)
        self._next = np.arange(1, none + 2, dtype=np.int32)
        self._next[lasts] = self._next[none] = none
        self._previous = np.arange(-1, none, dtype=np.int32)
        self._previous[firsts] = none

        # Keys of pairs are left * size + right. Heap entries are (negative
        # count, key, number of the group of positions).
        self._pair_counts: dict[int, int] = {}
        self._heap: list[tuple[int, int, int]] = []
        self._groups = _Groups()
        self._pair, self._chosen = (0, 0), self._next[:0]

        # All characters except the last of a word begin a pair.
        starts = np.flatnonzero(self._next[:-1] < none).astype(np.int32)
        keys = self._tokens[starts].astype(np.int64) * size
        self._add(keys + self._tokens[starts + 1], starts)

    def most_frequent(self, min_frequency: int) -> tuple[int, int] | None:
        """Chooses the pair to merge.

        Args:
            min_frequency: int. Minimum count of the pair, at least 1.

        Returns:
            (int, int) or None. Ids of its tokens; None if every pair is rarer.
        """
        while self._heap:
            count, key, group = heapq.heappop(self._heap)
            current = self._pair_counts[key]
            if current != -count:  # outdated: other merges changed the count
                heapq.heappush(self._heap, (-current, key, group))
                continue
            if current < min_frequency:
                return None
            self._pair = divmod(key, self._size)
            self._chosen = self._positions(group)
            return self._pair
        return None

    def merge(self, token: int) -> None:
        """Replaces the chosen pair by a token.

        As in `tokenizers`, the count of the chosen pair itself is kept. It
        matters if two pairs give the same token.

        Args:
            token: int. Id of the token.
        """
        left, right = self._pair
        starts, size, none = self._chosen, self._size, self._none

        # Pairs of equal tokens overlap: only one pair of a a a is merged.
        if left == right:
            starts = starts[_every_second(starts, self._next[starts])]

        seconds = self._next[starts]
        before, after = self._previous[starts], self._next[seconds]
        counts = self._counts[starts]
        touching = seconds[:-1] == before[1:]  # a b a b

        lefts = (before < none) & ~np.append(False, touching)[: len(starts)]
        rights = (after < none) & ~np.append(touching, False)[: len(starts)]
        neighbours = before[lefts], after[rights]
        before_ids, after_ids = (
            self._tokens[x].astype(np.int64) for x in neighbours
        )

        # -1: the second position no longer has a token.
        self._tokens[starts], self._tokens[seconds] = token, -1
        self._next[starts] = after
        self._previous[after] = starts

        # a b a b: between adjacent merged pairs, the pair b a becomes ab ab.
        if touching.any():
            firsts = starts[:-1][touching]
            total = int(self._counts[firsts].sum())
            self._pair_counts[right * size + left] -= total
            self._add(np.full(len(firsts), token * size + token), firsts)

        # x a b y: the pairs x a and b y become x ab and ab y.
        self._replace(
            before_ids * size, left, token, neighbours[0], counts[lefts]
        )
        self._replace(
            after_ids,
            right * size,
            token * size,
            starts[rights],
            counts[rights],
        )

    def _replace(self, others, old: int, new: int, positions, counts) -> None:
        """Replaces an old token by a new token in pairs.

        Args:
            others: int64 [N]. The neighbour's part of the keys.
            old, new: int. The other part of the keys: old and new token.
            positions: int32 [N]. Positions of the pairs.
            counts: int64 [N]. Counts of the words.
        """
        if not len(others):
            return
        others, positions, counts, begins = _group(others, positions, counts)
        totals = np.add.reduceat(counts, begins).tolist()
        others = others[begins]
        for key, total in zip((others + old).tolist(), totals):
            self._pair_counts[key] -= total
        self._push(others + new, totals, positions, begins)

    def _add(self, keys: np.ndarray, positions: np.ndarray) -> None:
        """Adds pairs: int64 [N] keys, int32 [N] positions."""
        if not len(keys):
            return
        counts = self._counts[positions]
        keys, positions, counts, begins = _group(keys, positions, counts)
        totals = np.add.reduceat(counts, begins).tolist()
        self._push(keys[begins], totals, positions, begins)

    def _push(self, keys, totals: list[int], positions, begins) -> None:
        """Adds groups of equal pairs; `begins` has the start of each group."""
        first = self._groups.add(positions, begins)
        for group, (key, total) in enumerate(zip(keys.tolist(), totals), first):
            total += self._pair_counts.get(key, 0)
            self._pair_counts[key] = total
            heapq.heappush(self._heap, (-total, key, group))

    def _positions(self, group: int) -> np.ndarray:
        """Returns positions where a group still has the chosen pair: int32."""
        positions = self._groups.get(group)
        left, right = self._pair
        positions = positions[self._tokens[positions] == left]
        return positions[self._tokens[self._next[positions]] == right]


class _Groups:
    """Numbered groups of positions; many are added at once."""

    def __init__(self):
        self._blocks: list[tuple[np.ndarray, np.ndarray]] = []
        self._firsts: list[int] = []
        self._count = 0

    def add(self, positions: np.ndarray, begins: np.ndarray) -> int:
        """Adds groups that start at `begins`; returns the first number."""
        first, self._count = self._count, self._count + len(begins)
        self._blocks.append((positions, np.append(begins, len(positions))))
        self._firsts.append(first)
        return first

    def get(self, number: int) -> np.ndarray:
        """Returns the positions of a group."""
        block = bisect.bisect_right(self._firsts, number) - 1
        positions, limits = self._blocks[block]
        start, end = limits[number - self._firsts[block] :][:2]
        return positions[start:end]


def _tokens(text: str, firsts: np.ndarray, ids: dict[str, int]) -> np.ndarray:
    """Returns the ids of the characters of all words, and -1 at the end.

    Args:
        text: str. All words, joined.
        firsts: int64 [W]. Start of each word.
        ids: dict. Token of the alphabet -> id.
    """
    codes = np.frombuffer(text.encode("utf-32-le"), np.int32)
    table = np.full((2, _CODE_POINTS), -1, np.int32)
    for token, i in ids.items():
        inside = len(token) > 1
        table[int(inside), ord(token[-1])] = i
    tokens = np.append(table[1][codes], np.int32(-1))
    tokens[firsts] = table[0][codes[firsts]]
    return tokens


def _group(keys, positions, counts) -> tuple[np.ndarray, ...]:
    """Sorts by key; the fourth returned array is the start of each key."""
    order = np.argsort(keys, kind="stable")
    keys, positions, counts = keys[order], positions[order], counts[order]
    changes = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    return keys, positions, counts, np.append(0, changes)


def _every_second(starts: np.ndarray, nexts: np.ndarray) -> np.ndarray:
    """Selects the first, third, ... of overlapping pairs: bool [N]."""
    index = np.arange(len(starts))
    alone = np.append(True, starts[1:] != nexts[:-1])[: len(starts)]
    return (index - np.maximum.accumulate(np.where(alone, index, 0))) % 2 == 0
