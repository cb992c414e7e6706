"""The tokenizer: a vocabulary and the normalization of text.

vocab.txt, casing -> Tokenizer -> exact, fast or graph tokenizer, same ids
"""

import functools
import hashlib
import itertools
import os
import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bert.common import processes
from bert.common.errors import UserError
from bert.common.formats import downloads
from bert.common.progress import log
from bert.data import feature_names, sequences
from bert.data.text import (
    fast_tokenization,
    tokenization,
    tokenizer_files,
    vocabulary,
)
from bert.data.text.array_inputs import strings
from bert.data.text.casing import Casing, strips

PADDING = ("longest", "max_length")
# For shorter texts, tokenizing word by word is faster than with arrays.
_FEW_CHARACTERS = 2_000
_KERNELS = ("exact", "fast", "_graph")  # megabytes, made when needed
Spans = list[tuple[int, int]]  # first character of a token, and end


class Tokens(NamedTuple):
    """The tokens of a text.

    ids: int32 [N]. Token ids.
    starts: int32 [N]. First character of each token.
    limits: int32 [N]. Character after the last character of each token.
    """

    ids: NDArray
    starts: NDArray
    limits: NDArray


class Tokenizer:
    """Converts texts to the inputs of the encoder, with fast kernels.

    Returns the same ids as the original's `FullTokenizer`. The vocabulary is
    read and checked once, and its kernels are made when they are needed.

        tokenizer = bert.Tokenizer("model/vocab.txt", do_lower_case=True)
        inputs = tokenizer(["the cat sees"], text_pairs=["a dog"])
        tokenizer.decode(inputs["input_ids"])  # ["the cat sees a dog"]

    Args:
        vocab_file: str. Path of the vocabulary, or the name of a published
            model, such as "hf://google-bert/bert-base-uncased".
        do_lower_case: bool or None. Whether to lower-case the text. Default:
            as recorded in a published model or in `tokenizer_config.json`
            beside the file. If it is not recorded, it is guessed from the
            vocabulary, and the guess is logged.
        strip_accents: bool or None. Whether to strip accents. Default: as
            recorded, else as `do_lower_case`.
        max_length: int or None. Maximum number of tokens of a sequence.
            Default: as recorded in a published model, else 512.
        tokens: list of str or None. Tokens of the vocabulary, for files in
            other formats. Default: read from the file.

    Attributes:
        path: str. The vocabulary's file.
        content: bytes. Content of a vocabulary file with the tokens.
        vocab: dict. Token -> id.
        tokens: list of str. Tokens in the order of their ids.
        max_length: int. Maximum number of tokens of a sequence.

    Raises:
        UserError: The file is not a vocabulary (`vocabulary.parse`), or a
            published model has another casing.
    """

    def __init__(
        self,
        vocab_file: str,
        do_lower_case: bool | None = None,
        strip_accents: bool | None = None,
        max_length: int | None = None,
        tokens: list[str] | None = None,
    ):
        if max_length is not None and max_length < 3:
            raise UserError(f"max_length={max_length}", expected="3 or more")
        recorded = Casing()
        folder = downloads.fetch(vocab_file, weights=False)
        if folder != vocab_file:
            vocab_file = os.path.join(folder, "vocab.txt")
            tokens, recorded = tokenizer_files.read(folder)
            max_length = max_length or tokenizer_files.read_length(folder)
            lower = recorded.do_lower_case
            if None not in (lower, do_lower_case) and lower != do_lower_case:
                raise UserError(
                    f"do_lower_case={do_lower_case}",
                    path=folder,
                    expected=f"{lower}, as in its training",
                )
        elif tokens is None and do_lower_case is None:
            recorded = tokenizer_files.read_casing(os.path.dirname(vocab_file))

        self._casing = Casing(do_lower_case, strip_accents).or_else(recorded)
        self.path, self.max_length = vocab_file, max_length or 512

        # The content of a vocab.txt with these tokens, so hashes are equal.
        if tokens is None:
            self.content = vocabulary.read_bytes(vocab_file)
        else:
            self.content = "".join(f"{x}\n" for x in tokens).encode()
        self.vocab = vocabulary.parse(self.content, vocab_file)
        self.tokens = list(self.vocab)

    @classmethod
    def of(cls, vocab_file: str, casing: Casing, **others) -> "Tokenizer":
        """Makes the tokenizer of a vocabulary and a casing."""
        return cls(
            vocab_file, casing.do_lower_case, casing.strip_accents, **others
        )

    def with_max_length(self, max_length: int) -> "Tokenizer":
        """Returns a copy with another maximum number of tokens."""
        changed = type(self).__new__(type(self))
        # With the kernels, which `copy.copy` would leave out.
        changed.__dict__ = vars(self) | {"max_length": max_length}
        return changed

    def __getstate__(self) -> dict:
        """Leaves out the kernels, which other processes make themselves."""
        return {k: v for k, v in vars(self).items() if k not in _KERNELS}

    @property
    def do_lower_case(self) -> bool:
        """Whether text is lower-cased: as given or recorded, else guessed."""
        known = self._casing.do_lower_case
        return self._guess if known is None else known

    @functools.cached_property
    def _guess(self) -> bool:
        # The guess is logged, as a wrong one changes most tokens.
        guess = tokenization.looks_lower_case(self.tokens)
        log(
            f"guessed do_lower_case={guess} from the vocabulary; pass "
            "--do_lower_case, or do_lower_case=, if that is wrong"
        )
        return guess

    @property
    def casing(self) -> Casing:
        """Normalization of text, see `do_lower_case`."""
        return Casing(self.do_lower_case, self.strip_accents)

    @property
    def strip_accents(self) -> bool | None:
        """Whether accents are stripped; None: as `do_lower_case`."""
        return self._casing.strip_accents

    @property
    def strips_accents(self) -> bool:
        """Whether accents are stripped, with a None resolved."""
        return strips(self.do_lower_case, self.strip_accents)

    @functools.cached_property
    def sha256(self) -> str:
        """Hash of the vocabulary file, in hex."""
        return hashlib.sha256(self.content).hexdigest()

    @functools.cached_property
    def exact(self) -> tokenization.FullTokenizer:
        """The original's tokenizer, which handles one word at a time."""
        return tokenization.FullTokenizer(
            self.vocab, self.do_lower_case, self.strip_accents
        )

    @functools.cached_property
    def fast(self) -> fast_tokenization.FastTokenizer:
        """The tokenizer for large blocks of text."""
        return fast_tokenization.FastTokenizer(
            self.vocab, self.do_lower_case, self.strips_accents
        )

    @property
    def graph(self):
        """The `text_ops.GraphTokenizer`; see `processes.check_not_forked`."""
        processes.check_not_forked(processes.TENSORFLOW)
        return self._graph

    @functools.cached_property
    def _graph(self):
        from bert.data.text import text_ops  # imports TensorFlow

        return text_ops.GraphTokenizer(
            self.tokens, self.do_lower_case, self.strip_accents
        )

    def same_as(
        self, other: "Tokenizer", fix: str, may_extend: bool = False
    ) -> None:
        """Checks that another tokenizer has the same vocabulary.

        Args:
            other: Tokenizer. The tokenizer of a checkpoint or a run.
            fix: str. Advice for the message.
            may_extend: bool. Whether this vocabulary may fill the other's
                `[unusedN]` slots and have more tokens. Default: False.

        Raises:
            UserError: A token differs; the message names the first.
        """
        # Tokens are never empty, so "" means the end of the shorter list.
        pairs = itertools.zip_longest(self.tokens, other.tokens, fillvalue="")
        for number, (token, expected) in enumerate(pairs, start=1):
            is_free = not expected or re.fullmatch(vocabulary.UNUSED, expected)
            if token != expected and not (may_extend and token and is_free):
                wanted = repr(expected) if expected else "the end"
                raise UserError(
                    f"token {token!r}" if token else "the end",
                    path=self.path,
                    line=number,
                    expected=f"{wanted}, as in {other.path}",
                    fix=fix,
                )

    def __call__(
        self,
        texts: str | list[str],
        text_pairs: str | list[str] | None = None,
        *,
        max_length: int | None = None,
        padding: str = "longest",
        offsets: bool = False,
        **others,
    ) -> dict[str, np.ndarray]:
        """Converts texts, or pairs of texts, to a batch.

        Args:
            texts: str, list, array or column of a table. One or several
                texts.
            text_pairs: Same types as `texts`, or None. The second text of
                each sequence.
            max_length: int or None. Maximum number of tokens. Longer sequences
                are truncated; for pairs, the longer text. Default: the
                tokenizer's.
            padding: str. "longest" pads to the longest sequence of the batch,
                "max_length" to `max_length`. Default: "longest".
            offsets: bool. Whether to return the character offsets of each
                token. Default: False.
            **others: Arguments of other libraries, which are rejected.

        Returns:
            dict. input_ids, input_mask, segment_ids: int32 [B, S]. With
            `offsets`, also offsets: int32 [B, S, 2], the first character of
            each token in its text and the character after its last. They are
            0, 0 for special tokens and padding.

        Raises:
            UserError: An argument is invalid.
        """
        if others:
            raise UserError(
                f"the argument {next(iter(others))}",
                expected="text_pairs, max_length, padding or offsets",
                fix="arrays of NumPy, padded and truncated, are returned",
            )

        texts = strings(texts, "texts")
        limit = self.max_length if max_length is None else max_length
        pairs = [""] * len(texts)
        if text_pairs is not None:
            pairs = strings(text_pairs, "text_pairs")
        self._check(texts, pairs, limit, padding)

        if offsets:
            rows, spans = self._rows_with_offsets(texts, pairs, limit)
        else:
            rows, spans = self.rows(texts, pairs, limit), None

        # The default is for an empty batch.
        longest = max((len(ids) for ids, _ in rows), default=0)
        width = limit if padding == "max_length" else longest
        lengths = np.array([len(ids) for ids, _ in rows], int)
        inside = np.arange(width) < lengths[:, None]  # [B, S]

        batch = {
            feature_names.INPUT_IDS: _fill(inside, [ids for ids, _ in rows]),
            feature_names.INPUT_MASK: inside.astype(np.int32),
            feature_names.SEGMENT_IDS: _fill(inside, [x for _, x in rows]),
        }
        if spans is not None:
            batch["offsets"] = np.zeros((*inside.shape, 2), np.int32)
            flat = list(itertools.chain.from_iterable(spans))
            batch["offsets"][inside] = np.reshape(flat, (-1, 2))

        return batch

    def rows(
        self,
        texts: list[str],
        pairs: list[str],
        max_length: int,
        truncate: str = sequences.HEAD,
    ) -> list[sequences.TokenSequence]:
        """Returns the ids and segment ids of each sequence, unpadded.

        Args:
            texts: list of str. The texts.
            pairs: list of str. The second texts, or "" for single texts.
            max_length: int. Maximum number of tokens of a sequence.
            truncate: str. Part of long texts to keep, see
                `sequences.kept_at_start`. Default: HEAD.
        """
        truncated = sequences.LongTexts(truncate)
        encoded = self.encode_texts(texts, pairs, max_length, truncated)
        return [row for (row,), *_ in encoded]

    def encode_texts(
        self,
        texts: list[str],
        pairs: list[str],
        max_length: int,
        long_texts: sequences.LongTexts = sequences.FIRST_TOKENS,
    ) -> list[sequences.Encoded]:
        """Returns the sequences of each text, with its number of tokens.

        Args:
            texts, pairs, max_length: See `rows`.
            long_texts: sequences.LongTexts. Handling of long texts. Default:
                truncation at the end.

        Raises:
            UserError: Windows are used, and second texts are given.
        """
        ids = self.ids_of([*texts, *pairs])
        cls, sep = self.vocab[vocabulary.CLS], self.vocab[vocabulary.SEP]
        joined = _join(ids, max_length, cls, sep, long_texts)
        encoded = []
        for rows, a, b in zip(joined, ids[: len(texts)], ids[len(texts) :]):
            count = len(a) + len(b) + (3 if b else 2)
            is_truncated = count > max_length and not long_texts.pool
            encoded.append(sequences.Encoded(rows, count, is_truncated))
        return encoded

    def ids_of(self, texts: list[str]) -> list[list[int]]:
        """Returns the token ids of each text, without special tokens."""
        # Both give the same ids; arrays are faster for longer texts.
        if sum(map(len, texts)) > _FEW_CHARACTERS:
            return self.fast.ids_of_lines(texts)
        tokens = map(self.exact.tokenize, texts)
        return list(map(self.exact.convert_tokens_to_ids, tokens))

    def decode(self, ids) -> str | list:
        """Joins tokens to text; drops `[CLS]`, `[SEP]` and `[PAD]`.

        Args:
            ids: array of int, [S] or [B, S]. Token ids.

        Returns:
            str or list of B str. The texts. Spaces and capitals that the
            tokenizer dropped are not restored.
        """
        ids = np.asarray(ids)
        if ids.ndim > 1:
            return [self.decode(row) for row in ids]

        dropped = (vocabulary.PAD, vocabulary.CLS, vocabulary.SEP)
        vocab = self.exact.inv_vocab
        tokens = [vocab.get(i, vocabulary.UNK) for i in ids.tolist()]

        # un ##aff ##able -> unaffable
        text = " ".join(x for x in tokens if x not in dropped)
        return text.replace(" ##", "")

    def _check(self, texts, pairs, max_length: int, padding: str) -> None:
        if len(texts) != len(pairs):
            raise UserError(
                f"{len(pairs)} text_pairs", expected=f"{len(texts)}, as texts"
            )

        if padding not in PADDING:
            raise UserError(
                f"padding={padding!r}", expected=f"one of {', '.join(PADDING)}"
            )

        if max_length not in range(3, self.max_length + 1):
            raise UserError(
                f"max_length={max_length}",
                expected=f"3 to {self.max_length}, the tokenizer's",
            )

    def with_offsets(self, texts: list[str]) -> list[Tokens]:
        """Splits texts into tokens with character offsets.

        Args:
            texts: list of str. The texts.

        Raises:
            UserError: A text has half a surrogate pair, which cannot be
                encoded in UTF-8.
        """
        try:
            for text in texts:
                text.encode()
        except UnicodeEncodeError as error:
            raise UserError(
                f"half a surrogate pair at {error.start} of "
                f"{error.object!a:.60}",
                expected="Unicode text, for offsets",
            ) from None

        ids, starts, limits, ends = self.fast.with_offsets(texts)
        edges = [0, *ends.tolist()]
        return [
            Tokens(ids[a:b], starts[a:b], limits[a:b])
            for a, b in itertools.pairwise(edges)
        ]

    def _rows_with_offsets(
        self, texts: list[str], pairs: list[str], max_length: int
    ) -> tuple[list, list[Spans]]:
        """Returns `rows`, and the offsets of each token of each sequence."""
        spans, ids = [], []
        for tokens in self.with_offsets([*texts, *pairs]):
            spans.append(
                list(zip(tokens.starts.tolist(), tokens.limits.tolist()))
            )
            ids.append(tokens.ids.tolist())

        # Spans are truncated like ids, so that their positions match.
        cls, sep = self.vocab[vocabulary.CLS], self.vocab[vocabulary.SEP]
        none = (0, 0)  # span of a special token
        joined = _join(spans, max_length, none, none)
        rows = _join(ids, max_length, cls, sep)
        return [row for (row,) in rows], [row for ((row, _),) in joined]


def _join(
    parts: list[list],
    max_length: int,
    cls,
    sep,
    long_texts: sequences.LongTexts = sequences.FIRST_TOKENS,
) -> list[list[tuple]]:
    """Joins the values (ids or spans) of texts and text pairs to sequences.

    Args:
        parts: list of 2 N lists. Values of the tokens of N texts, then of
            their N second texts.
        max_length: int. Maximum length of a sequence.
        cls, sep: Values of `[CLS]` and `[SEP]`.
        long_texts: sequences.LongTexts. Handling of long texts.

    Returns:
        list of N lists. For each text its sequences: values and segment ids.
    """
    count = len(parts) // 2
    return [
        long_texts.rows(a, b, max_length, cls, sep)
        for a, b in zip(parts[:count], parts[count:])
    ]


def _fill(inside: np.ndarray, rows: list[list[int]]) -> np.ndarray:
    """Returns int32 [B, S]: the rows where `inside` is true, else zeros."""
    filled = np.zeros(inside.shape, np.int32)
    filled[inside] = list(itertools.chain.from_iterable(rows))
    return filled
