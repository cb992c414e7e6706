"""Tokenizes text to wordpieces, as in the original release.

text -> BasicTokenizer -> words -> WordpieceTokenizer -> tokens -> ids

    "unaffable, Über"  ->  unaffable , uber  ->  un ##aff ##able , uber

The results are the same as from google-research/bert `tokenization.py`, for the
Unicode version of `bert/data/text/unicode_tables.py`. This module is faster
because `normalization` looks up characters in tables, and words are memoized.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator

from bert.common.errors import UserError
from bert.data.text import casing, normalization
from bert.data.text import unicode_tables as tables
from bert.data.text import vocabulary as vocabulary_lib

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

# Control characters that the tokenizer drops, but `str.split` splits at.
_DROPPED = re.compile("[\x0b\x0c\x1c-\x1f\x85]")

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


def split_at_spaces(text: str) -> list[str]:
    """Splits text at white space that `BasicTokenizer` does not drop."""
    return _DROPPED.sub("", text).split()


def whitespace_tokenize(text: str) -> list[str]:
    """Splits text at Unicode white space."""
    return text.split()


class WordMemo(dict):
    """Cache of bounded size: word -> tokens, computed on first use.

    Only short words are kept. When the cache exceeds `MEMO_BYTES`, it is
    cleared.

    Args:
        compute: callable. Maps a list of words to the tokens of each, strings
            or ids. Many words at once are faster than one by one.
    """

    def __init__(self, compute: Callable[[list[str]], Iterable[tuple]]):
        super().__init__()
        self._compute, self._bytes = compute, 0

    def add(self, words: Iterable[str]) -> None:
        """Adds the short words that are missing, all at once."""
        new = [word for word in {*words} if word not in self]
        if new:
            short = [word for word in new if len(word) <= _MEMO_LONGEST]
            for word, found in zip(short, self._compute(short)):
                self._keep(word, found)

    def __missing__(self, word: str) -> tuple:
        (found,) = self._compute([word])
        if len(word) <= _MEMO_LONGEST:
            self._keep(word, found)
        return found

    def _keep(self, word: str, found: tuple) -> None:
        # Approximate memory of the entry and its objects.
        sizes = map(sys.getsizeof, (word, found, *found))
        self._bytes += _MEMO_ENTRY + sum(sizes)
        if self._bytes > MEMO_BYTES:
            self.clear()
            self._bytes = 0
        self[word] = found


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
        words = split_at_spaces(convert_to_unicode(text))
        self._memo.add(words)
        return [token for word in words for token in self._memo[word]]

    def _split(self, words: list[str]) -> Iterator[tuple[str, ...]]:
        """Yields the tokens of each white-space word."""
        for parts in self.basic_tokenizer.tokenize_words(words):
            yield tuple(self.wordpiece_tokenizer.tokenize(" ".join(parts)))

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
        self.strip_accents = casing.strips(do_lower_case, strip_accents)
        self._normalizer = normalization.Normalizer(
            do_lower_case, self.strip_accents
        )

    def tokenize(self, text: str | bytes) -> list[str]:
        """Splits text into words and punctuation marks."""
        return self._normalizer.words(convert_to_unicode(text))

    def tokenize_words(self, words: list[str]) -> list[list[str]]:
        """Splits words without white space like `tokenize`, all at once."""
        lines = self._normalizer.spaced("\n".join(words)).split("\n")
        return [line.split() for line in lines[: len(words)]]


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


def _is_cjk(code: int) -> bool:
    return any(first <= code <= last for first, last in _CJK_BLOCKS)


def is_punctuation(character: str) -> bool:
    """Returns whether a character is punctuation or an ASCII symbol."""
    code = ord(character)
    kind = tables.entries(False, False)[code] & tables.KIND
    return bool(kind == tables.ALONE) and not _is_cjk(code)
