"""Sentence pairs of documents, as ranges of tokens.

The algorithm is from google-research/bert `create_pretraining_data.py`. The
pairs have the same distribution, but different random numbers.

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
    """Documents of a partition as flat arrays, without empty sentences.

    Attributes:
        ids: int32 [T]. All tokens. With `word_boundaries`, ids from V on are
            wordpieces that continue the previous word.
        sentence_ends: int64 [N]. End of each sentence in `ids`.
        document_ends: int64 [D]. End of each document, counted in sentences.
    """

    ids: np.ndarray
    sentence_ends: np.ndarray
    document_ends: np.ndarray


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Sentence pairs in the order of the documents.

    Attributes:
        a_starts, a_ends, b_starts, b_ends: int64 [n]. Token ranges of the
            segments, truncated so that both fit into a sequence.
        is_random_next: bool [n]. Whether b is from another document.
    """

    a_starts: np.ndarray
    a_ends: np.ndarray
    b_starts: np.ndarray
    b_ends: np.ndarray
    is_random_next: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Lengths of `[CLS] a [SEP] b [SEP]`, int64 [n]."""
        return self.a_ends - self.a_starts + self.b_ends - self.b_starts + 3

    def take(self, numbers: np.ndarray) -> "Pairs":
        """Returns the pairs with these indices, int64 [n], in this order."""
        return Pairs(*(values[numbers] for values in vars(self).values()))


def draw_pairs(
    documents: TokenizedDocuments,
    settings: InstanceSettings,
    rng: np.random.Generator,
    fraction: float = 1.0,
) -> Pairs:
    """Splits documents into sentence pairs.

    Args:
        documents: TokenizedDocuments. At least two documents.
        settings: InstanceSettings. Lengths and probabilities.
        rng: np.random.Generator. Source of all random numbers.
        fraction: float. Probability that a document is used. Default: 1.
    """
    max_tokens = settings.max_seq_length - 3  # [CLS], [SEP], [SEP]
    count = len(documents.document_ends)
    used = np.flatnonzero(rng.random(count) < fraction)
    targets = np.where(
        rng.random(count) < settings.short_seq_prob,
        rng.integers(2, max_tokens, count, endpoint=True),
        max_tokens,
    )

    edges = np.concatenate([[0], documents.sentence_ends])  # in tokens
    firsts = np.concatenate([[0], documents.document_ends])  # in sentences
    starts, cuts, stops = _walk(edges, firsts, used, targets, rng)
    owners = np.searchsorted(firsts, starts, side="right") - 1

    # b continues a, or is from another document.
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
    """Divides documents into chunks, and each chunk into two segments.

    Args:
        edges: int64 [N + 1]. First token of each sentence, and T.
        firsts: int64 [D + 1]. First sentence of each document, and N.
        used: int64. Indices of the documents to divide.
        targets: int64 [D]. Target number of tokens of each document's chunks.
        rng: np.random.Generator. Source of the random divisions.

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

            # One number draws both the division and whether b is random.
            choices = 2 * (stop - start - 1)
            choice = int(draw() * choices) if choices else 1
            if choice % 2:
                stop = start + 1 + choice // 2  # the rest starts a new chunk
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
        edges, firsts: See `_walk`.
        owners: int64 [n]. Document of each pair.
        wanted: int64 [n]. Minimum number of tokens of the sentences, unless
            their document ends.
        rng: np.random.Generator. Source of documents and positions.

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

    The original drops one token at a time: from the longer segment, or from b
    if both have the same length, at a random end. So the number of tokens that
    a segment loses is fixed, and the number at its start has a binomial
    distribution.
    """
    a, b = a_ends - a_starts, b_ends - b_starts
    half = max_tokens // 2
    a_kept = np.minimum(a, np.maximum(max_tokens - b, max_tokens - half))
    b_kept = np.minimum(b, np.maximum(max_tokens - a, half))

    a_starts = a_starts + rng.binomial(a - a_kept, 0.5)
    b_starts = b_starts + rng.binomial(b - b_kept, 0.5)
    return a_starts, a_starts + a_kept, b_starts, b_starts + b_kept
