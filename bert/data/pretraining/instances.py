"""Sentence pairs of documents, as ranges of tokens.

The algorithm is that of google-research/bert `create_pretraining_data.py`: the
pairs have the same distribution, but other random numbers are drawn.

document    | sentence | sentence | sentence | sentence | ...
chunk       |<--------- at least the target length -------->|
pair        |<------- a ------->|<----------- b ----------->|
or          |<------- a ------->|  b is random; the next chunk starts here
"""

import bisect
import dataclasses
import itertools
from array import array

import numpy as np

from bert.data.pretraining.settings import InstanceSettings

_DRAWN_AT_ONCE = 4096


@dataclasses.dataclass(frozen=True)
class TokenizedDocuments:
    """Documents of a partition as flat arrays; no sentence is empty.

    Attributes:
        ids: int32 [T], all tokens. With `word_boundaries`, ids from V on are
            wordpieces that continue the word before them.
        sentence_ends: int64 [N], end of each sentence in `ids`.
        document_ends: int64 [D], end of each document, counted in sentences.
    """

    ids: np.ndarray
    sentence_ends: np.ndarray
    document_ends: np.ndarray


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Sentence pairs in the order of the documents.

    Attributes:
        a_starts, a_ends, b_starts, b_ends: int64 [n], ranges of tokens, which
            are truncated so that the two fit into a sequence.
        is_random_next: bool [n], whether b comes from another document.
    """

    a_starts: np.ndarray
    a_ends: np.ndarray
    b_starts: np.ndarray
    b_ends: np.ndarray
    is_random_next: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """int64 [n], tokens of `[CLS] a [SEP] b [SEP]`."""
        return self.a_ends - self.a_starts + self.b_ends - self.b_starts + 3

    def take(self, numbers: np.ndarray) -> "Pairs":
        """Some of the pairs, in this order: int64 [n]."""
        return Pairs(*(values[numbers] for values in vars(self).values()))


def draw_pairs(
    documents: TokenizedDocuments,
    settings: InstanceSettings,
    rng: np.random.Generator,
    share: float = 1.0,
) -> Pairs:
    """Splits documents into sentence pairs.

    Args:
        documents: at least two documents.
        settings: lengths and shares.
        rng: source of all random numbers.
        share: probability that a document is used.
    """
    max_tokens = settings.max_seq_length - 3  # [CLS], [SEP], [SEP]
    count = len(documents.document_ends)
    used = np.flatnonzero(rng.random(count) < share)
    targets = np.where(
        rng.random(count) < settings.short_seq_prob,
        rng.integers(2, max_tokens, count, endpoint=True),
        max_tokens,
    )

    edges = np.concatenate([[0], documents.sentence_ends])  # in tokens
    firsts = np.concatenate([[0], documents.document_ends])  # in sentences
    starts, cuts, stops = _walk(edges, firsts, used, targets, rng)
    owners = np.searchsorted(firsts, starts, side="right") - 1

    # b continues a, or comes from another document.
    is_random = stops < 0
    a_starts, a_ends = edges[starts], edges[cuts]
    b_firsts, b_stops = cuts.copy(), stops
    chosen = np.flatnonzero(is_random)
    b_firsts[chosen], b_stops[chosen] = _random_next(
        edges,
        firsts,
        owners[chosen],
        (targets[owners] - a_ends + a_starts)[chosen],
        rng,
    )

    ranges = _truncate(
        a_starts, a_ends, edges[b_firsts], edges[b_stops], max_tokens, rng
    )
    return Pairs(*ranges, is_random)


def _walk(
    edges: np.ndarray,
    firsts: np.ndarray,
    used: np.ndarray,
    targets: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, ...]:
    """Cuts documents into chunks, and each chunk into two segments.

    Args:
        edges: int64 [N + 1], first token of each sentence, and T.
        firsts: int64 [D + 1], first sentence of each document, and N.
        used: int64, numbers of the documents to cut.
        targets: int64 [D], tokens of a chunk of each document.
        rng: source of the cuts.

    Returns:
        (first sentence of a, sentence after a, sentence after b or -1 if b is
        random), int64 [n] each.
    """
    draw = itertools.chain.from_iterable(
        iter(lambda: rng.random(_DRAWN_AT_ONCE).tolist(), None)
    ).__next__
    starts, cuts, stops = array("q"), array("q"), array("q")
    tokens = edges.tolist()

    for document in used.tolist():
        start, last = int(firsts[document]), int(firsts[document + 1])
        target = int(targets[document])
        while start < last:
            stop = bisect.bisect_left(
                tokens, tokens[start] + target, start + 1, last
            )
            starts.append(start)

            # One number draws both the cut and whether b is random.
            choices = 2 * (stop - start - 1)
            choice = int(draw() * choices) if choices else 1
            if choice % 2:
                stop = start + 1 + choice // 2  # what follows is put back
                stops.append(-1)
                cuts.append(stop)
            else:
                stops.append(stop)
                cuts.append(start + 1 + choice // 2)
            start = stop
    return tuple(np.array(x, np.int64) for x in (starts, cuts, stops))


def _random_next(
    edges: np.ndarray,
    firsts: np.ndarray,
    owners: np.ndarray,
    wanted: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Draws sentences from a random position in another document.

    Args:
        edges, firsts: as in `_walk`.
        owners: int64 [n], document of each pair.
        wanted: int64 [n], tokens; the sentences have at least as many, if
            their document does.
        rng: source of documents and positions.

    Returns:
        (first sentence, sentence after the last), int64 [n] each.
    """
    count = len(firsts) - 1
    others = rng.integers(count, size=len(owners))
    for _ in range(9):
        same = np.flatnonzero(others == owners)
        others[same] = rng.integers(count, size=len(same))

    # After ten draws the original takes the same document and labels it random.
    others = np.where(others == owners, (owners + 1) % count, others)
    starts = rng.integers(firsts[others], firsts[others + 1])
    stops = np.searchsorted(edges, edges[starts] + wanted)
    return starts, np.clip(stops, starts + 1, firsts[others + 1])


def _truncate(
    a_starts: np.ndarray,
    a_ends: np.ndarray,
    b_starts: np.ndarray,
    b_ends: np.ndarray,
    max_tokens: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Truncates the longer segment, at random ends, until both fit.

    The original drops one token at a time: the longer segment loses it, or b
    if both have the same length, and a coin chooses the end. How many tokens
    each segment loses is therefore certain, and of these the number at its
    front has a binomial distribution.
    """
    a, b = a_ends - a_starts, b_ends - b_starts
    half = max_tokens // 2
    a_kept = np.minimum(a, np.maximum(max_tokens - b, max_tokens - half))
    b_kept = np.minimum(b, np.maximum(max_tokens - a, half))

    a_starts = a_starts + rng.binomial(a - a_kept, 0.5)
    b_starts = b_starts + rng.binomial(b - b_kept, 0.5)
    return a_starts, a_starts + a_kept, b_starts, b_starts + b_kept
