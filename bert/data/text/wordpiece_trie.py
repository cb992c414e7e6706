"""Splits many words into wordpieces at once, with array operations.

Words are searched in a trie of the vocabulary, all in parallel. In each round,
each word takes its next character. If the trie has no child for it, the word's
longest token so far is taken, and the search continues after that token. This
is the same greedy search as in `tokenization.WordpieceTokenizer`.

The trie is stored in one table. The entry for a node and a character is at the
node's address plus the character's class. It has the addresses of the parent
and the child. If it has another parent, the node has no such child.
"""

import numpy as np

from bert.data.text import normalization, vocabulary

LONGEST_WORD = 200  # characters; longer words are [UNK]

_CODE_POINTS = 0x110000
_OTHER, _END = 0, 1  # classes: in no token; the space after a word
_ENTRIES = 4  # table entries per node; fewer would leave few free entries
_ROUNDS = 300  # rounds of draws before the table grows
_SHIFT, _CHILD = np.int64(32), np.int64((1 << 32) - 1)
_NONE = -1


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
