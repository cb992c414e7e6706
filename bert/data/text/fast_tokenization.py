"""Fast batch tokenization of blocks of text, with array operations.

    lines -> distinct words -> normalized text -> distinct words -> ids

A newline is a word without ids, which marks the end of a line.

Words that are not in the vocabulary are searched in a trie of the vocabulary,
all in parallel. In each round, each word takes its next character. If the trie
has no child for it, the word's longest token so far is taken, and the search
continues after that token. This is the same greedy search as in
`tokenization.WordpieceTokenizer`.

The trie is stored in one table. The entry for a node and a character is at the
node's address plus the character's class. It has the addresses of the parent
and the child. If it has another parent, the node has no such child.
"""

import collections
import itertools
import re
from collections.abc import Iterator

import numpy as np

from bert.data.text import normalization, vocabulary

LONGEST_WORD = 200  # characters; longer words are [UNK]
_BLOCK = 1 << 20  # approximate number of characters that are split at once
_BLOCKS = 16  # maximum number of blocks whose words are tokenized together
# Characters that are not marks, cased or ignorable (see `unicode_tables`).
_LAST_CUT = re.compile(".*[ ,;!?/+()=\n\t]", re.DOTALL).match

_CODE_POINTS = 0x110000
_OTHER, _END = 0, 1  # classes: in no token; the space after a word
_ENTRIES = 4  # table entries per node; fewer would leave few free entries
_ROUNDS = 300  # rounds of draws before the table grows
_SHIFT, _CHILD = np.int64(32), np.int64((1 << 32) - 1)
_NONE = -1


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

        numbers, held = _numbers({"\n": 0}), []
        done = seen = size = 0
        for first, last in _blocks(parts):
            held.append(_number(_words(parts[first:last]), numbers))
            size += sum(map(len, itertools.islice(numbers, seen, None)))
            seen = len(numbers)

            is_full = size >= _BLOCK or len(held) == _BLOCKS
            if not is_full and last < len(parts):
                continue

            # Each distinct word of these blocks is tokenized once.
            words = ["", *itertools.islice(numbers, 1, None)]
            tokens = self._tokenize_distinct(words)

            for which in held:
                found, limits = _take(*tokens, which)
                ids.append(found)
                ends.append(limits[which == 0] + done)
                done += len(found)
            numbers, held = _numbers({"\n": 0}), []
            seen = size = 0

        return np.concatenate(ids), np.concatenate(ends)[owners]

    def ids_of_lines(self, lines: list[str]) -> list[list[int]]:
        """Tokenizes lines.

        Args:
            lines: list of str. Lines or other strings.

        Returns:
            list of list of int. The token ids of each line.
        """
        return split(*self.ids_and_ends(lines))

    def _tokenize_distinct(
        self, words: list[str]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Tokenizes words without spaces; returns their ids and ends."""
        text = self._normalizer.spaced("\n".join([*words, ""]))
        known = len(self.vocab)

        # Most of the normalized words are tokens with a known id.
        numbers = _numbers(self._known)
        which = _number(text.split(" "), numbers)
        words = list(itertools.islice(numbers, known + 1, None))
        ids, ends = self._wordpieces.ids_of_words(words)

        each = np.arange(known + 1, dtype=np.int32)
        ids = np.concatenate([each[:known], ids])
        ends = np.concatenate([each[1:], each[-1:], known + ends])

        ids, ends = _take(ids, ends, which)
        return ids, ends[which == known]


class ArrayWordpieceTokenizer:
    """Splits words into the longest tokens of a vocabulary.

    Args:
        vocab: dict. Token -> id.
    """

    def __init__(self, vocab: dict[str, int]):
        self._unknown = vocab[vocabulary.UNK]
        # Words have no spaces, so a space marks the end of a word. `#` is
        # punctuation, so no word starts with `##`.
        vocab = {
            token: i
            for token, i in vocab.items()
            if " " not in token
            and len(token.removeprefix("##")) <= LONGEST_WORD
        }
        parts = [token.removeprefix("##") for token in vocab]
        lengths = np.fromiter(map(len, parts), np.int64, len(parts))
        codes = normalization.codes("".join(parts))

        self._classes = np.zeros(_CODE_POINTS, np.int32)
        distinct = np.unique(codes)
        self._classes[distinct] = np.arange(2, len(distinct) + 2)
        self._classes[ord(" ")] = _END

        roots = [token.startswith("##") for token in vocab]
        parents, classes, tokens = _grow(
            np.array(roots, np.int64),
            self._classes[codes],
            np.cumsum(lengths),
            np.fromiter(vocab.values(), np.int32, len(parts)),
        )

        self._table, addresses = _arrange(parents, classes)
        self._roots = addresses[:2]
        self._tokens = np.full(len(self._table), _NONE, np.int32)
        self._tokens[addresses] = tokens

    def ids_of_words(self, words: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Tokenizes words.

        Args:
            words: list of str. Words of `tokenization.BasicTokenizer`, or "".

        Returns:
            (int32 [T], int64 [words]). The ids of all words, and the end of
            each word among them.
        """
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        starts = np.cumsum(lengths + 1) - lengths - 1
        classes = self._classes[normalization.codes(" ".join([*words, ""]))]

        found = np.full(len(classes), _NONE, np.int32)
        long = lengths > LONGEST_WORD
        failed = self._search(starts[(lengths > 0) & ~long], classes, found)

        unknown = np.searchsorted(starts, failed, side="right") - 1
        for word in unknown.tolist():
            found[starts[word] : starts[word] + lengths[word]] = _NONE
        found[starts[unknown]] = found[starts[long]] = self._unknown

        there = found >= 0
        return found[there], np.cumsum(there)[starts + lengths]

    def _search(
        self, start: np.ndarray, classes: np.ndarray, found: np.ndarray
    ) -> np.ndarray:
        """Finds the tokens of words.

        Args:
            start: int64 [words]. Start of each word.
            classes: int32 [characters]. Classes, with `_END` after each word.
            found: int32 [characters]. Receives the id of each token at the
                start of the token.

        Returns:
            int64 [...]. Positions where no token fits.
        """
        failed = []
        node = np.full(len(start), self._roots[0])
        position, after = start.copy(), start.copy()
        token = np.full(len(start), _NONE, np.int32)

        while len(start):
            entry = self._table[node + classes[position]]
            goes = entry >> _SHIFT == node
            node = np.where(goes, entry & _CHILD, node)
            position += goes

            # The longest token so far, and its end.
            ids = self._tokens[node]
            np.copyto(token, ids, where=ids >= 0)
            np.copyto(after, position, where=ids >= 0)

            # If the search stops, this token is taken, or the word is unknown.
            stops = np.flatnonzero(~goes)
            fits = token[stops] >= 0
            failed.append(start[stops[~fits]])
            stopped = stops[fits]
            found[start[stopped]] = token[stopped]
            start[stopped] = position[stopped] = after[stopped]
            node[stopped], token[stopped] = self._roots[1], _NONE

            on = np.ones(len(start), bool)
            on[stops[~fits]] = False
            on[stopped] = classes[after[stopped]] != _END
            if not on.all():
                start, position, after = start[on], position[on], after[on]
                node, token = node[on], token[on]

        return np.concatenate([np.zeros(0, np.int64), *failed])


def _grow(
    roots: np.ndarray, classes: np.ndarray, ends: np.ndarray, ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Builds the trie of a vocabulary, whose first two nodes are the roots.

    Args:
        roots: int64 [V]. 0 for a token that starts a word, else 1.
        classes: int32 [characters]. Character classes of all tokens.
        ends: int64 [V]. End of each token in `classes`.
        ids: int32 [V]. Ids of the tokens.

    Returns:
        (int64 [N], int64 [N], int32 [N]). For each node its parent, the class
        of its character, and its token or `_NONE`.
    """
    parents, kinds = [np.full(2, _NONE)], [np.full(2, _OTHER)]
    node, count = roots, 2
    position = np.concatenate([[0], ends[:-1]])
    rows = np.flatnonzero(position < ends)
    last = np.full(len(ids), _NONE)

    while len(rows):
        here = position[rows]
        keys, which = np.unique(
            node[rows] << _SHIFT | classes[here], return_inverse=True
        )
        parents.append(keys >> _SHIFT)
        kinds.append(keys & _CHILD)

        # Each distinct pair of a node and a class is a new node.
        node[rows] = count + which
        count += len(keys)
        position[rows] += 1

        is_last = position[rows] == ends[rows]
        last[rows[is_last]] = node[rows[is_last]]
        rows = rows[~is_last]

    tokens = np.full(count, _NONE, np.int32)
    tokens[last[last >= 0]] = ids[last >= 0]
    return np.concatenate(parents), np.concatenate(kinds), tokens


def _arrange(
    parents: np.ndarray, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Finds addresses for the nodes of a trie.

    All nodes draw a random address. A node keeps it if its entries are free
    and not drawn by a node with more children; the other nodes draw again. In a
    small alphabet, many nodes have most characters as children, and few entries
    stay free. So later rounds draw from new entries.

    Args:
        parents, classes: Results of `_grow`.

    Returns:
        (int64 [...], int64 [N]). The table, and the address of each node.
    """
    count = len(parents)
    children = np.bincount(parents[2:], minlength=count)
    # Edges and nodes are sorted by precedence below.
    rng = np.random.Generator(np.random.Philox(0))
    start, size = 0, _ENTRIES * count
    addresses = np.zeros(count, np.int64)
    owners = np.zeros(size, bool)  # whether an address belongs to a node
    taken = np.zeros(size + classes.max() + 1, bool)

    edges = 2 + np.argsort(-children[parents[2:]], kind="stable")
    nodes = np.argsort(-children, kind="stable")
    rounds = 0

    while len(nodes):
        rounds += 1
        if rounds > _ROUNDS:
            more = _ENTRIES * max(len(nodes), len(edges))
            start, size = size, size + more
            owners, taken = (np.pad(x, (0, more)) for x in (owners, taken))

        addresses[nodes] = rng.integers(start, size, size=len(nodes))
        lost = np.zeros(count, bool)
        lost[_losers(nodes, addresses[nodes], owners)] = True
        slots = addresses[parents[edges]] + classes[edges]
        lost[parents[_losers(edges, slots, taken)]] = True

        won = edges[~lost[parents[edges]]]
        taken[addresses[parents[won]] + classes[won]] = True
        owners[addresses[nodes[~lost[nodes]]]] = True

        nodes, edges = nodes[lost[nodes]], edges[lost[parents[edges]]]

    table = np.full(len(taken), np.int64(_NONE))
    above = addresses[parents[2:]]
    table[above + classes[2:]] = above << _SHIFT | addresses[2:]
    return table, addresses


def _losers(
    items: np.ndarray, wanted: np.ndarray, taken: np.ndarray
) -> np.ndarray:
    """Returns items whose entries are taken, or claimed by earlier items."""
    _, firsts = np.unique(wanted, return_index=True)
    lost = np.ones(len(items), bool)
    lost[firsts] = False
    return items[lost | taken[wanted]]


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


def _take(
    ids: np.ndarray, ends: np.ndarray, which: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gathers the ids of words, in any order and any number of times.

    Args:
        ids: int32 [T]. Ids of all words.
        ends: int64 [N]. End of each word in `ids`.
        which: int32 [n]. Numbers of the words to gather.

    Returns:
        (int32 [t], int64 [n]). The ids of these words, and the end of each
        word among them.
    """
    counts = np.diff(ends, prepend=0)[which]
    stops = np.cumsum(counts)
    shifts = np.repeat(ends[which] - stops, counts)
    return ids[shifts + np.arange(len(shifts))], stops


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
