"""Fast batch tokenization with TensorFlow Text's kernel, where it is exact.

The kernel is many times faster than the exact tokenizer but differs from it
on some characters. The constructor compares the two on each candidate
character with the given vocabulary; a line with any other character takes the
exact path.
"""

import re

from data.text import tokenization, unicode_tables, vocabulary

# Latin, Greek and Cyrillic letters, punctuation, symbols. No combining marks
# and no capital sigma: their result depends on the neighbouring characters.
_ACCENTS = unicode_tables.entries(False, True) & unicode_tables.KIND == (
    unicode_tables.ACCENT
)
_CANDIDATES = [
    chr(code)
    for first, last in (
        (0x20, 0x7E),
        (0xA0, 0x2FF),
        (0x370, 0x52F),
        (0x1E00, 0x1FFF),
        (0x2010, 0x2027),
        (0x2030, 0x205E),
        (0x20A0, 0x20BF),
        (0x2190, 0x22FF),
    )
    for code in range(first, last + 1)
    if chr(code) != "Σ" and not _ACCENTS[code]
]
_AROUND = ("a{}b", "{}", " {} ", "{0}{0}", "a{}", "{}a", "x {}1.", "A{}'{}")
_LONGEST_WORD = 200  # characters; longer words are [UNK]
_MOST_BYTES = 3  # per candidate character, in UTF-8
_BATCH = 2048  # lines per call


class FastTokenizer:
    """Tokenizes lines to the same ids as `tokenization.FullTokenizer`.

    Args:
        vocab_file: path of the vocabulary.
        do_lower_case: lower-case the text.
        strip_accents: strip accents; None: as `do_lower_case`. The kernel
            does both or neither, so with any other value, lines with accents
            take the exact path.
    """

    def __init__(
        self,
        vocab_file: str,
        do_lower_case: bool = True,
        strip_accents: bool | None = None,
    ):
        import tensorflow_text

        self._exact = tokenization.FullTokenizer(
            vocab_file, do_lower_case, strip_accents
        )
        self.vocab = self._exact.vocab
        try:
            self._kernel = tensorflow_text.FastBertTokenizer(
                vocab=list(self.vocab),
                unknown_token=vocabulary.UNK,
                max_bytes_per_word=_LONGEST_WORD,
                token_out_type="int32",
                lower_case_nfd_strip_accents=do_lower_case,
            )
        except RuntimeError:  # see `vocabulary_checks.check_exportable`
            self._kernel = None
        proven = "".join(re.escape(c) for c in self._proven_characters())
        self._proven = re.compile(
            f"[{proven}]*" if proven else "(?!)"
        ).fullmatch

    def ids_of_lines(self, lines: list[str]) -> list[list[int]]:
        """Tokenizes lines.

        Args:
            lines: strings.

        Returns:
            the token ids of each line.
        """
        ids: list[list[int]] = []
        for start in range(0, len(lines), _BATCH):
            batch = lines[start : start + _BATCH]
            fast = [self._is_proven(line) for line in batch]
            taken = iter(self._fast([x for x, ok in zip(batch, fast) if ok]))
            ids += [
                next(taken) if ok else self._slow(line)
                for line, ok in zip(batch, fast)
            ]
        return ids

    def _is_proven(self, line: str) -> bool:
        if not self._proven(line):
            return False
        if line.isascii():  # a byte is a character
            return True
        longest = max(map(len, line.split()), default=0)
        return longest * _MOST_BYTES <= _LONGEST_WORD

    def _fast(self, lines: list[str]) -> list[list[int]]:
        if not lines:
            return []
        tokens = self._kernel.tokenize(lines)
        flat = tokens.flat_values.numpy().tolist()
        while tokens.ragged_rank > 1:
            tokens = tokens.merge_dims(1, 2)
        ends = tokens.row_splits.numpy().tolist()
        return [flat[a:b] for a, b in zip(ends, ends[1:])]

    def _slow(self, line: str) -> list[int]:
        return self._exact.convert_tokens_to_ids(self._exact.tokenize(line))

    def _proven_characters(self) -> list[str]:
        """Candidates on which the kernel equals the exact tokenizer."""
        if self._kernel is None:
            return []
        texts = [
            around.format(character, character)
            for character in _CANDIDATES
            for around in _AROUND
        ]
        equal = [
            fast == self._slow(text)
            for fast, text in zip(self._fast(texts), texts, strict=True)
        ]
        count = len(_AROUND)
        return [
            character
            for index, character in enumerate(_CANDIDATES)
            if all(equal[index * count : (index + 1) * count])
        ]
