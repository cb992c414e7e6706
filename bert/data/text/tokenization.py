"""Tokenizes text to wordpieces, as in the original release.

text -> BasicTokenizer -> words -> WordpieceTokenizer -> tokens -> ids

    "unaffable, Über"  ->  unaffable , uber  ->  un ##aff ##able , uber

The results are the same as from google-research/bert `tokenization.py`, for the
Unicode version of `bert/data/text/unicode_tables.py`. This module is faster
because characters are looked up in tables and words are memoized. Words with
characters that depend on their neighbours, such as capital sigmas, are handled
by `normalization`.
"""

import functools
import re
import sys
from collections.abc import Callable, Iterable

from bert.common.errors import UserError
from bert.data.text import normalization
from bert.data.text import unicode_tables as tables
from bert.data.text import vocabulary as vocabulary_lib
from bert.data.text.casing import Casing

MEMO_BYTES = 50_000_000  # see `WordMemo`
_MEMO_LONGEST = 32  # characters; longer words are rarely repeated
_MEMO_ENTRY = 200  # maximum bytes of a dict entry without its objects

# Blocks of CJK ideographs. Hangul, Hiragana and Katakana are not split into
# characters.
_CJK_BLOCKS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)

_UNCASED_MODELS = (
    "uncased_L-24_H-1024_A-16",
    "uncased_L-12_H-768_A-12",
    "multilingual_L-12_H-768_A-12",
    "chinese_L-12_H-768_A-12",
)
_CASED_MODELS = (
    "cased_L-12_H-768_A-12",
    "cased_L-24_H-1024_A-16",
    "multi_cased_L-12_H-768_A-12",
)


def looks_lower_case(tokens: Iterable[str]) -> bool:
    """Returns whether all tokens but the special tokens are lower-case."""
    return all(
        token == token.lower()
        for token in tokens
        if not (token.startswith("[") and token.endswith("]"))
    )


def validate_case_matches_checkpoint(
    do_lower_case: bool, init_checkpoint: str | None
) -> None:
    """Rejects a casing that contradicts the name of a released checkpoint.

    Args:
        do_lower_case: bool. Whether text is lower-cased.
        init_checkpoint: str or None. Path of the checkpoint.

    Raises:
        UserError: The folder has the name of a released model with the other
            casing.
    """
    # The name is in the folder: .../cased_L-12_H-768_A-12/bert_model.ckpt
    match = re.match(
        r"^.*?([A-Za-z0-9_-]+)/bert_model.ckpt", init_checkpoint or ""
    )
    name = match.group(1) if match else None
    if name in _UNCASED_MODELS and not do_lower_case:
        mistake, fix = "is lower-cased, --do_lower_case=False", "True"
    elif name in _CASED_MODELS and do_lower_case:
        mistake, fix = "is cased, --do_lower_case=True", "False"
    else:
        return
    raise UserError(
        f"the model {name} {mistake}",
        path=init_checkpoint,
        fix=f"pass --do_lower_case={fix}",
    )


def convert_to_unicode(text: str | bytes) -> str:
    """Returns `text` as a string; drops bytes that are not UTF-8."""
    if isinstance(text, bytes):
        return text.decode("utf-8", "ignore")
    if isinstance(text, str):
        return text
    raise ValueError(f"expected str or bytes, got {type(text).__name__}")


def printable_text(text: str | bytes) -> str:
    """Returns `text` as a string that can be printed."""
    return convert_to_unicode(text)


def load_vocab(vocab_file: str) -> dict[str, int]:
    """Reads a vocabulary: token -> id (see `vocabulary.read_vocabulary`)."""
    return vocabulary_lib.read_vocabulary(vocab_file)


def convert_by_vocab(vocab: dict, items) -> list:
    """Looks up each of `items` in `vocab`; KeyError if one is unknown."""
    return [vocab[item] for item in items]


def convert_tokens_to_ids(vocab: dict[str, int], tokens) -> list[int]:
    """Converts tokens to ids."""
    return convert_by_vocab(vocab, tokens)


def convert_ids_to_tokens(inv_vocab: dict[int, str], ids) -> list[str]:
    """Converts ids to tokens."""
    return convert_by_vocab(inv_vocab, ids)


def whitespace_tokenize(text: str) -> list[str]:
    """Splits text at Unicode white space."""
    return text.split()


class WordMemo(dict):
    """Cache of bounded size: word -> tokens, computed on first use.

    Only short words are kept. When the cache exceeds `MEMO_BYTES`, it is
    cleared.

    Args:
        compute: callable. Maps a word to its tokens, strings or ids.
    """

    def __init__(self, compute: Callable[[str], tuple]):
        super().__init__()
        self._compute, self._bytes = compute, 0

    def __missing__(self, word: str) -> tuple:
        found = self._compute(word)
        if len(word) > _MEMO_LONGEST:
            return found

        # Approximate memory of the entry and its objects.
        sizes = map(sys.getsizeof, (word, found, *found))
        self._bytes += _MEMO_ENTRY + sum(sizes)
        if self._bytes > MEMO_BYTES:
            self.clear()
            self._bytes = 0
        self[word] = found
        return found


class FullTokenizer:
    """Converts text to WordPiece tokens and ids.

    Args:
        vocab_file: str or dict. Path of the vocabulary, or token -> id.
        do_lower_case: bool. Whether to lower-case the text. Default: True.
        strip_accents: bool or None. Whether to strip accents. Default: as
            `do_lower_case`.
    """

    def __init__(
        self,
        vocab_file: str | dict[str, int],
        do_lower_case: bool = True,
        strip_accents: bool | None = None,
    ):
        if isinstance(vocab_file, dict):
            self.vocab = vocab_file
        else:
            self.vocab = load_vocab(vocab_file)
        self.inv_vocab = {i: token for token, i in self.vocab.items()}
        self.basic_tokenizer = BasicTokenizer(do_lower_case, strip_accents)
        self.wordpiece_tokenizer = WordpieceTokenizer(vocab=self.vocab)
        self._memo = WordMemo(self._split)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Splits text into tokens of the vocabulary.

        Tokens do not depend on text beyond white space, so the tokens of each
        white-space word are memoized.
        """
        words = self.basic_tokenizer.clean(text).split()
        return [token for word in words for token in self._memo[word]]

    def _split(self, word: str) -> tuple[str, ...]:
        """Splits one white-space word of clean text into tokens."""
        parts = " ".join(self.basic_tokenizer.split_word(word))
        return tuple(self.wordpiece_tokenizer.tokenize(parts))

    def convert_tokens_to_ids(self, tokens) -> list[int]:
        """Converts tokens to ids; KeyError if one is unknown."""
        return convert_tokens_to_ids(self.vocab, tokens)

    def convert_ids_to_tokens(self, ids) -> list[str]:
        """Converts ids to tokens; KeyError if one is unknown."""
        return convert_ids_to_tokens(self.inv_vocab, ids)


class BasicTokenizer:
    """Cleans text and splits it into words and punctuation.

    Args:
        do_lower_case: bool. Whether to lower-case the text. Default: True.
        strip_accents: bool or None. Whether to strip accents. Default: as
            `do_lower_case`.
    """

    def __init__(
        self, do_lower_case: bool = True, strip_accents: bool | None = None
    ):
        self.do_lower_case = do_lower_case
        self.strip_accents = Casing(do_lower_case, strip_accents).strips_accents
        self._cleaning = _CleanTable()
        self._splitting = _SplitTable(do_lower_case, self.strip_accents)
        self._depends = _dependent(do_lower_case, self.strip_accents).search

    @functools.cached_property
    def _normalizer(self) -> normalization.Normalizer:
        return normalization.Normalizer(self.do_lower_case, self.strip_accents)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Splits text into words and punctuation marks."""
        words = self.clean(text).split()
        return [token for word in words for token in self.split_word(word)]

    def clean(self, text: str | bytes) -> str:
        """Drops control characters; puts spaces around CJK ideographs."""
        return convert_to_unicode(text).translate(self._cleaning)

    def split_word(self, word: str) -> list[str]:
        """Normalizes one word of clean text and splits off punctuation."""
        if not word.isascii() and self._depends(word):
            return self._normalizer.words(word)
        # With split, as normalization may leave nothing or white space.
        return word.translate(self._splitting).split()


class WordpieceTokenizer:
    """Splits words into the longest tokens of the vocabulary.

    Args:
        vocab: dict. Token -> id; tokens inside a word start with `##`.
        unk_token: str. Token for words that cannot be split. Default: "[UNK]".
        max_input_chars_per_word: int. Longer words become `unk_token`.
            Default: 200.
    """

    def __init__(
        self,
        vocab: dict[str, int],
        unk_token: str = vocabulary_lib.UNK,
        max_input_chars_per_word: int = 200,
    ):
        self.vocab = vocab
        self.unk_token = unk_token
        self.max_input_chars_per_word = max_input_chars_per_word
        self._longest = max(map(len, vocab), default=0)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Splits each word greedily, longest token first.

            "unaffable" -> un ##aff ##able

        Args:
            text: str or bytes. Words of `BasicTokenizer`, separated by white
                space.

        Returns:
            list of str. The tokens; `unk_token` for each word that cannot be
            split.
        """
        tokens: list[str] = []
        for word in whitespace_tokenize(convert_to_unicode(text)):
            tokens.extend(self._split(word) or [self.unk_token])
        return tokens

    def _split(self, word: str) -> list[str] | None:
        if len(word) > self.max_input_chars_per_word:
            return None

        # Limited to the longest token, to avoid quadratic time.
        tokens = []
        start, prefix = 0, ""
        while start < len(word):
            end = min(len(word), start + self._longest)
            while end > start and prefix + word[start:end] not in self.vocab:
                end -= 1

            # If no token fits at a position, the whole word is unknown.
            if end == start:
                return None
            tokens.append(prefix + word[start:end])
            start, prefix = end, "##"
        return tokens


class _CleanTable(dict):
    """Code point -> its replacement in `BasicTokenizer.clean`."""

    def __missing__(self, code: int) -> str:
        # `str.translate` calls this once for each distinct character.
        kind = tables.entries(False, False)[code] & tables.KIND
        if kind == tables.SPACE:
            clean = " "
        elif kind == tables.CONTROL:
            clean = ""
        elif _is_cjk(code):
            clean = f" {chr(code)} "
        else:
            clean = chr(code)
        self[code] = clean
        return clean


class _SplitTable(dict):
    """Code point -> its replacement in `BasicTokenizer.split_word`.

    Args:
        do_lower_case: bool. Whether to lower-case the text.
        strip_accents: bool. Whether to strip accents.
    """

    def __init__(self, do_lower_case: bool, strip_accents: bool):
        self._entries = tables.entries(do_lower_case, strip_accents)
        self._expansions = tables.expansions(strip_accents)

    def __missing__(self, code: int) -> str:
        entry = int(self._entries[code])
        kind = entry & tables.KIND
        letter = code + (entry >> tables.DELTA_SHIFT)

        if kind == tables.SPACE:
            letters = " "
        elif kind in (tables.CONTROL, tables.ACCENT):
            letters = ""
        elif kind == tables.EXPANDS:
            letters = self._expansions[letter]
        elif kind == tables.ALONE:
            letters = f" {chr(letter)} "
        else:
            letters = chr(letter)

        self[code] = letters
        return letters


@functools.cache
def _dependent(do_lower_case: bool, strip_accents: bool) -> re.Pattern:
    """Returns a pattern of characters that depend on their neighbours."""
    entries = tables.entries(do_lower_case, strip_accents)
    kinds = entries & tables.KIND
    depend = (kinds == tables.SIGMA) | (kinds == tables.MARK)

    # The parts of an expanding character may depend on their neighbours.
    expansions = tables.expansions(strip_accents)
    for code in (kinds == tables.EXPANDS).nonzero()[0].tolist():
        parts = expansions[code + (entries[code] >> tables.DELTA_SHIFT)]
        depend[code] = any(depend[ord(part)] for part in parts)

    # An empty class is not a valid pattern; (?!) never matches.
    characters = "".join(map(chr, depend.nonzero()[0].tolist()))
    return re.compile(f"[{re.escape(characters)}]" if characters else "(?!)")


def _is_cjk(code: int) -> bool:
    return any(first <= code <= last for first, last in _CJK_BLOCKS)


def is_punctuation(character: str) -> bool:
    """Returns whether a character is punctuation or an ASCII symbol."""
    code = ord(character)
    kind = tables.entries(False, False)[code] & tables.KIND
    return bool(kind == tables.ALONE) and not _is_cjk(code)
