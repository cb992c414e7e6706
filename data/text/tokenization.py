"""Text to WordPiece tokens, as the original release does it.

text -> BasicTokenizer -> words -> WordpieceTokenizer -> pieces -> ids

    "unaffable, Über"  ->  unaffable , uber  ->  un ##aff ##able , uber

The results equal those of google-research/bert `tokenization.py` on every
string, under the Unicode version of `data/text/unicode_tables.py`; speed comes
from tables of characters and a memo of words.
"""

import functools
import itertools
import re
from collections.abc import Iterable

from common.errors import UserError
from data.text import unicode_tables as tables
from data.text import vocabulary as vocabulary_lib

_MEMO_SIZE = 1 << 20  # words; about 200 MB at the most

# Blocks of CJK ideographs; Hangul, Hiragana and Katakana are written with
# spaces or in words, and are left as they are.
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
    """Whether no token has a capital letter, special tokens aside."""
    return all(
        token == token.lower()
        for token in tokens
        if not (token.startswith("[") and token.endswith("]"))
    )


def validate_case_matches_checkpoint(
    do_lower_case: bool, init_checkpoint: str | None
) -> None:
    """Refuses a casing that contradicts the name of a released checkpoint.

    Args:
        do_lower_case: whether text is lower-cased.
        init_checkpoint: path of the checkpoint, or None.

    Raises:
        UserError: the folder is a released model of the other casing.
    """
    match = re.match(
        r"^.*?([A-Za-z0-9_-]+)/bert_model.ckpt", init_checkpoint or ""
    )
    name = match.group(1) if match else None
    if name in _UNCASED_MODELS and not do_lower_case:
        found, fix = "is lower-cased, --do_lower_case=False", "True"
    elif name in _CASED_MODELS and do_lower_case:
        found, fix = "is cased, --do_lower_case=True", "False"
    else:
        return
    raise UserError(
        f"the model {name} {found}",
        path=init_checkpoint,
        fix=f"pass --do_lower_case={fix}",
    )


def strips_accents(do_lower_case: bool, strip_accents: bool | None) -> bool:
    """Whether accents are stripped; if that is None, as text is lower-cased.

    Hugging Face's `strip_accents` has the same three values.
    """
    return do_lower_case if strip_accents is None else strip_accents


def convert_to_unicode(text: str | bytes) -> str:
    """Returns `text` as a string; invalid UTF-8 in bytes is left out."""
    if isinstance(text, bytes):
        return text.decode("utf-8", "ignore")
    if isinstance(text, str):
        return text
    raise ValueError(f"expected str or bytes, got {type(text).__name__}")


def printable_text(text: str | bytes) -> str:
    """Returns `text` as it can be printed or logged."""
    return convert_to_unicode(text)


def load_vocab(vocab_file: str) -> dict[str, int]:
    """Reads a vocabulary: token -> id (see `vocabulary.read_vocabulary`)."""
    return vocabulary_lib.read_vocabulary(vocab_file)


def convert_by_vocab(vocab: dict, items) -> list:
    """Looks each of `items` up in `vocab`; an unknown one is a KeyError."""
    return [vocab[item] for item in items]


def convert_tokens_to_ids(vocab: dict[str, int], tokens) -> list[int]:
    """Tokens to their ids."""
    return convert_by_vocab(vocab, tokens)


def convert_ids_to_tokens(inv_vocab: dict[int, str], ids) -> list[str]:
    """Ids to their tokens."""
    return convert_by_vocab(inv_vocab, ids)


def whitespace_tokenize(text: str) -> list[str]:
    """Splits at any Unicode white space."""
    return text.split()


class FullTokenizer:
    """Text to WordPiece tokens and ids.

    Args:
        vocab_file: path of the vocabulary.
        do_lower_case: lower-case the text.
        strip_accents: strip accents; None: as `do_lower_case`.
    """

    def __init__(
        self,
        vocab_file: str,
        do_lower_case: bool = True,
        strip_accents: bool | None = None,
    ):
        self.vocab = load_vocab(vocab_file)
        self.inv_vocab = {i: token for token, i in self.vocab.items()}
        self.basic_tokenizer = BasicTokenizer(do_lower_case, strip_accents)
        self.wordpiece_tokenizer = WordpieceTokenizer(vocab=self.vocab)
        self._memo: dict[str, list[str]] = {}

    def tokenize(self, text: str | bytes) -> list[str]:
        """Splits text into pieces of the vocabulary.

        Nothing in either tokenizer looks past white space, so the pieces of
        each white-space word are remembered.
        """
        pieces: list[str] = []
        for word in self.basic_tokenizer.clean(text).split():
            known = self._memo.get(word)
            if known is None:
                known = [
                    piece
                    for token in self.basic_tokenizer.split_word(word)
                    for piece in self.wordpiece_tokenizer.tokenize(token)
                ]
                if len(self._memo) >= _MEMO_SIZE:
                    self._memo.clear()
                self._memo[word] = known
            pieces.extend(known)
        return pieces

    def convert_tokens_to_ids(self, tokens) -> list[int]:
        """Tokens to their ids; an unknown token is a KeyError."""
        return convert_tokens_to_ids(self.vocab, tokens)

    def convert_ids_to_tokens(self, ids) -> list[str]:
        """Ids to their tokens; an unknown id is a KeyError."""
        return convert_ids_to_tokens(self.inv_vocab, ids)


class BasicTokenizer:
    """Cleans text and splits it into words and punctuation.

    Args:
        do_lower_case: lower-case the text.
        strip_accents: strip accents; None: as `do_lower_case`.
    """

    def __init__(
        self, do_lower_case: bool = True, strip_accents: bool | None = None
    ):
        self.do_lower_case = do_lower_case
        self.strip_accents = strips_accents(do_lower_case, strip_accents)
        self._cleaning = _CleanTable()
        self._splitting = _SplitTable(do_lower_case, self.strip_accents)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Splits text into words and punctuation marks."""
        words = self.clean(text).split()
        return [token for word in words for token in self.split_word(word)]

    def clean(self, text: str | bytes) -> str:
        """Drops control characters; spaces around CJK, white space to space."""
        return convert_to_unicode(text).translate(self._cleaning)

    def split_word(self, word: str) -> list[str]:
        """Normalises one word of clean text and splits off punctuation."""
        if not word.isascii():
            word = self._splitting.resolve(word)
        # str.split: normalisation may leave nothing, or white space.
        return word.translate(self._splitting).split()


class WordpieceTokenizer:
    """Splits words into the longest pieces that the vocabulary has.

    Args:
        vocab: token -> id; pieces inside a word start with `##`.
        unk_token: stands for a word that cannot be split.
        max_input_chars_per_word: a longer word is `unk_token`.
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
        """Splits each word greedily, longest piece first.

            "unaffable" -> un ##aff ##able

        Args:
            text: words that passed through `BasicTokenizer`.

        Returns:
            pieces, one `unk_token` for each word that has none.
        """
        pieces: list[str] = []
        for word in whitespace_tokenize(convert_to_unicode(text)):
            pieces.extend(self._split(word) or [self.unk_token])
        return pieces

    def _split(self, word: str) -> list[str] | None:
        if len(word) > self.max_input_chars_per_word:
            return None
        pieces = []
        start, prefix = 0, ""
        while start < len(word):
            end = min(len(word), start + self._longest)
            while end > start and prefix + word[start:end] not in self.vocab:
                end -= 1
            if end == start:
                return None
            pieces.append(prefix + word[start:end])
            start, prefix = end, "##"
        return pieces


class _CleanTable(dict):
    """Code point -> what `BasicTokenizer.clean` puts in its place."""

    def __missing__(self, code: int) -> str:
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
    """Code point -> what `BasicTokenizer.split_word` puts in its place.

    Args:
        do_lower_case: lower-case the text.
        strip_accents: strip accents.
    """

    def __init__(self, do_lower_case: bool, strip_accents: bool):
        self._entries = tables.entries(do_lower_case, strip_accents)
        self._expansions = tables.expansions(strip_accents)
        self._depends = _dependent(do_lower_case, strip_accents).search

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

    def resolve(self, word: str) -> str:
        """Replaces what takes a look at the neighbours, as the graph does.

        See `text_ops`: capital sigmas become one of the two small ones, and
        marks that stay are put in order.
        """
        if not self._depends(word):
            return word
        word = self._lower_sigmas(word)
        word = "".join(
            self[ord(character)]
            if self._kind(character) == tables.EXPANDS
            else character
            for character in word
        )
        kept = [
            (character, self._class(character))
            for character in word
            if self._kind(character) != tables.ACCENT
            or not self._class(character)
        ]
        blocks = itertools.accumulate(order == 0 for _, order in kept)
        ordered = sorted(
            (block, order, place, character)
            for place, (block, (character, order)) in enumerate(
                zip(blocks, kept)
            )
        )
        return "".join(character for *_, character in ordered)

    def _lower_sigmas(self, word: str) -> str:
        """Lower-cases capital sigmas; the last letter of a word is another."""
        letters = list(word)
        entries = [int(self._entries[ord(x)]) for x in word]
        seen = [i for i, x in enumerate(entries) if not x & tables.IGNORABLE]
        cased = [bool(entries[i] & tables.CASED) for i in seen]
        around = zip(seen, [False, *cased], [*cased[1:], False])
        for place, after_cased, before_cased in around:
            if entries[place] & tables.KIND == tables.SIGMA:
                final = after_cased and not before_cased
                letters[place] = "ς" if final else "σ"
        return "".join(letters)

    def _kind(self, character: str) -> int:
        return int(self._entries[ord(character)]) & tables.KIND

    def _class(self, character: str) -> int:
        entry = int(self._entries[ord(character)])
        return entry >> tables.CLASS_SHIFT & tables.CLASS


@functools.cache
def _dependent(do_lower_case: bool, strip_accents: bool) -> re.Pattern:
    """Matches a character that takes a look at its neighbours."""
    entries = tables.entries(do_lower_case, strip_accents)
    kinds = entries & tables.KIND
    depend = (kinds == tables.SIGMA) | (kinds == tables.MARK)
    expansions = tables.expansions(strip_accents)
    for code in (kinds == tables.EXPANDS).nonzero()[0].tolist():
        parts = expansions[code + (entries[code] >> tables.DELTA_SHIFT)]
        depend[code] = any(depend[ord(part)] for part in parts)
    characters = "".join(map(chr, depend.nonzero()[0].tolist()))
    return re.compile(f"[{re.escape(characters)}]" if characters else "(?!)")


def _is_cjk(code: int) -> bool:
    return any(first <= code <= last for first, last in _CJK_BLOCKS)


def is_punctuation(character: str) -> bool:
    """ASCII signs count as punctuation, `^`, `$` and "`" too."""
    code = ord(character)
    kind = tables.entries(False, False)[code] & tables.KIND
    return bool(kind == tables.ALONE) and not _is_cjk(code)
