"""Fast batch tokenization: whole blocks of text, with arrays.

    lines -> distinct words   -> normalized text -> distinct words -> ids
             of white space                         of both kinds

A newline is a word too, without ids: it marks the end of a line.

All words that the vocabulary does not have walk a trie of it in step. In each
round a word takes its next character; where the trie has none, its longest
token so far is found, and the search goes on after that token. This is the
greedy search of `tokenization.WordpieceTokenizer`.

The nodes of the trie have addresses in one table: the child of a node for a
character is the entry at the node's address plus the character's class, which
holds the addresses of both. An entry that names another parent is no child.
"""

import collections
import itertools
import re
from collections.abc import Iterator

import numpy as np

from bert.data.text import normalization, vocabulary

LONGEST_WORD = 200  # characters; longer words are [UNK]
_BLOCK = 1 << 20  # characters that are split at once, about
_BLOCKS = 16  # maximum number of blocks whose words are tokenized together
# Neither a mark, nor cased, nor skipped in the search for the end of a word.
_LAST_CUT = re.compile(".*[ ,;!?/+()=\n\t]", re.DOTALL).match

_CODE_POINTS = 0x110000
_OTHER, _END = 0, 1  # classes: of no token; the space after a word
_ENTRIES = 4  # of the table for each node: with fewer, few are free
_ROUNDS = 300  # of draws for all nodes from the same entries
_SHIFT, _CHILD = np.int64(32), np.int64((1 << 32) - 1)
_NONE = -1


class FastTokenizer:
    """Tokenizes lines to the same ids as `tokenization.FullTokenizer`.

    Args:
        vocab: token -> id.
        do_lower_case: lower-case the text.
        strip_accents: strip accents.

    Attributes:
        vocab: token -> id.
    """

    def __init__(
        self, vocab: dict[str, int], do_lower_case: bool, strip_accents: bool
    ):
        self.vocab = vocab
        self._normalizer = normalization.Normalizer(
            do_lower_case, strip_accents
        )
        self._wordpieces = ArrayWordpieceTokenizer(self.vocab)
        # The words whose numbers are their ids; a space is in no word.
        self._known = {
            token if len(token) <= LONGEST_WORD else f" {i}": i
            for token, i in self.vocab.items()
        }
        self._known["\n"] = len(self.vocab)

    def ids_and_ends(self, lines: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Tokenizes lines.

        Args:
            lines: strings.

        Returns:
            int32 [T], the ids of all lines; int64 [lines], the end of each
            line among them.
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
            lines: strings.

        Returns:
            the token ids of each line.
        """
        return split(*self.ids_and_ends(lines))

    def _tokenize_distinct(
        self, words: list[str]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Tokenizes words of white space; returns their ids and ends."""
        text = self._normalizer.spaced("\n".join([*words, ""]))
        known = len(self.vocab)

        # Most of the normalized words are tokens, whose ids are known.
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
        vocab: token -> id.
    """

    def __init__(self, vocab: dict[str, int]):
        self._unknown = vocab[vocabulary.UNK]
        # No word has a space, which marks the ends of words here.
        vocab = {token: i for token, i in vocab.items() if " " not in token}

        # `#` is punctuation, so no word starts with `##`.
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
            words: words of `tokenization.BasicTokenizer`; they may be empty.

        Returns:
            int32 [T], the ids of all words; int64 [words], the end of each
            word among them.
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
            start: int64 [words], start of each word.
            classes: int32 [characters], with `_END` after each word.
            found: int32 [characters]; the ids of tokens are written where
                they start.

        Returns:
            int64 [...], where no token fits.
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

            # The longest token so far, and where it ends.
            ids = self._tokens[node]
            np.copyto(token, ids, where=ids >= 0)
            np.copyto(after, position, where=ids >= 0)

            # Where the trie ends, that token is taken, or the word has none.
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
    """Grows the trie of a vocabulary, whose first two nodes are the roots.

    Args:
        roots: int64 [V], 0 for a token that starts a word, else 1.
        classes: int32 [characters], of all tokens.
        ends: int64 [V], the end of each token among them.
        ids: int32 [V], of the tokens.

    Returns:
        of each node the parent, int64 [N]; the class of the character that
        leads to it, int64 [N]; and its token or `_NONE`, int32 [N].
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

        # A new node for each distinct pair of a node and a class.
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

    All nodes draw an address. Those whose entries are free, and wanted by no
    node with more children, keep it; the others draw again. Where many nodes
    have most of the characters as children, as in an alphabet of few letters,
    hardly any address stays free, so later rounds draw from new entries.

    Args:
        parents, classes: from `_grow`.

    Returns:
        int64 [...], the table; int64 [N], the address of each node.
    """
    count = len(parents)
    children = np.bincount(parents[2:], minlength=count)
    # Edges in the order of precedence, and the first edge of each node.
    rng = np.random.Generator(np.random.Philox(0))
    start, size = 0, _ENTRIES * count
    addresses = np.zeros(count, np.int64)
    owners = np.zeros(size, bool)  # addresses of nodes
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
    """Returns the items whose entries are taken, or wanted by earlier ones."""
    _, firsts = np.unique(wanted, return_index=True)
    lost = np.ones(len(items), bool)
    lost[firsts] = False
    return items[lost | taken[wanted]]


def split(ids: np.ndarray, ends: np.ndarray) -> list[list[int]]:
    """Splits the ids of lines into lists.

    Args:
        ids: int [T], of all lines.
        ends: int64 [lines], the end of each line among them.

    Returns:
        the ids of each line.
    """
    flat, limits = ids.tolist(), ends.tolist()
    return [flat[a:b] for a, b in zip([0, *limits], limits)]


def _words(lines: list[str]) -> list[str]:
    """Splits lines at spaces, with a newline at the end of each."""
    text = " \n ".join([*lines, ""])
    if text.count("\n") > len(lines):
        text = " \n ".join([*(x.replace("\n", " ") for x in lines), ""])
    return text.split(" ")


def _numbers(known: dict[str, int]) -> collections.defaultdict:
    """Word -> number; a new word gets the next number."""
    following = itertools.count(len(known)).__next__
    return collections.defaultdict(following, known)


def _number(words: list[str], numbers: collections.defaultdict) -> np.ndarray:
    """Returns the number of each word, int32 [words]; see `_numbers`."""
    return np.fromiter(map(numbers.__getitem__, words), np.int32, len(words))


def _take(
    ids: np.ndarray, ends: np.ndarray, which: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Takes the ids of some words, in any order and any number of times.

    Args:
        ids: int32 [T], the ids of all words.
        ends: int64 [N], the end of each word among them.
        which: int32 [n], numbers of words.

    Returns:
        int32 [t], the ids of these words; int64 [n], the end of each among
        them.
    """
    counts = np.diff(ends, prepend=0)[which]
    stops = np.cumsum(counts)
    shifts = np.repeat(ends[which] - stops, counts)
    return ids[shifts + np.arange(len(shifts))], stops


def _divide(lines: list[str]) -> tuple[list[str], np.ndarray | slice]:
    """Divides very long lines where no result depends on both sides.

    Returns:
        the parts of all lines; which of them are the last of their line.
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
