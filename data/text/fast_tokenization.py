"""Fast batch tokenization: whole blocks of text, TensorFlow Text's kernel.

    lines -> normalized text -> words and wordpieces -> ids
             whole arrays       the kernel

A block of lines is one string for the kernel, with a word that the vocabulary
does not have after each line. Its token marks the end of the line.
"""

import itertools
import re
from collections.abc import Iterator

import numpy as np

from data.text import normalization, tokenization, vocabulary

_BLOCK = 1 << 20  # characters per call of the kernel, about
# Neither a mark, nor cased, nor skipped in the search for the end of a word.
_LAST_CUT = re.compile(".*[ ,;!?/+()=\n\t]", re.DOTALL).match
_MOST_BYTES = 4 * normalization.LONGEST_WORD
_END = f" {normalization.LINE_END} ".encode()


class FastTokenizer:
    """Tokenizes lines to the same ids as `tokenization.FullTokenizer`.

    Args:
        vocab_file: path of the vocabulary.
        do_lower_case: lower-case the text.
        strip_accents: strip accents; None: as `do_lower_case`.

    Attributes:
        vocab: token -> id.
    """

    def __init__(
        self,
        vocab_file: str,
        do_lower_case: bool = True,
        strip_accents: bool | None = None,
    ):
        self._exact = tokenization.FullTokenizer(
            vocab_file, do_lower_case, strip_accents
        )
        self.vocab = self._exact.vocab
        self._normalizer = normalization.Normalizer(
            do_lower_case, strip_accents
        )
        self._kernel = _kernel(list(self.vocab))

    def ids_and_ends(self, lines: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Tokenizes lines.

        Args:
            lines: strings.

        Returns:
            int32 [T], the ids of all lines; int64 [lines], the end of each
            line among them.
        """
        ids = [np.zeros(0, np.int32)]
        ends = [np.zeros(0, np.int64)]
        done = 0
        parts = [list(_parts(line)) for line in lines]
        for block in _blocks(list(itertools.chain.from_iterable(parts))):
            found, limits = self._tokenize(block)
            ids.append(found)
            ends.append(limits + done)
            done += len(found)
        last = np.cumsum([len(part) for part in parts], dtype=np.int64) - 1
        return np.concatenate(ids), np.concatenate(ends)[last]

    def ids_of_lines(self, lines: list[str]) -> list[list[int]]:
        """Tokenizes lines.

        Args:
            lines: strings.

        Returns:
            the token ids of each line.
        """
        return split(*self.ids_and_ends(lines))

    def _tokenize(self, lines: list[str]) -> tuple[np.ndarray, np.ndarray]:
        if self._kernel is None:
            ids = [
                self._exact.convert_tokens_to_ids(self._exact.tokenize(line))
                for line in lines
            ]
            return join(ids)
        text = self._normalizer.lines(lines).replace(b"\n", _END)
        ids = self._kernel.tokenize([text]).flat_values.numpy()
        is_end = ids == len(self.vocab)
        ends = np.flatnonzero(is_end)
        return ids[~is_end], ends - np.arange(len(ends))


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


def join(ids: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Joins the ids of lines; the inverse of `split`.

    Args:
        ids: the ids of each line.

    Returns:
        int32 [T], the ids of all lines; int64 [lines], the end of each line
        among them.
    """
    flat = np.array([i for line in ids for i in line], np.int32)
    return flat, np.cumsum([len(line) for line in ids], dtype=np.int64)


def _kernel(tokens: list[str]):
    """Returns the kernel; None if it is not exact with the vocabulary."""
    import tensorflow_text

    if normalization.RESERVED & set("".join(tokens)):
        return None
    try:
        return tensorflow_text.FastWordpieceTokenizer(
            [*tokens, normalization.LINE_END],
            max_bytes_per_word=_MOST_BYTES,
            token_out_type="int32",
            unknown_token=vocabulary.UNK,
        )
    except RuntimeError:  # see `vocabulary_checks.check_exportable`
        return None


def _parts(line: str) -> Iterator[str]:
    """Divides a very long line where no result depends on both sides."""
    start = 0
    while len(line) - start > _BLOCK:
        found = _LAST_CUT(line, start, start + _BLOCK)
        if not found:
            break
        yield line[start : found.end()]
        start = found.end()
    yield line[start:] if start else line


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    start = size = 0
    for end, line in enumerate(lines, start=1):
        size += len(line)
        if size >= _BLOCK or end == len(lines):
            yield lines[start:end]
            start, size = end, 0
