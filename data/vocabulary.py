"""Vocabulary files: read strictly, written the same way every time."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

from durable import write_whole
from errors import UserError

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)

_UNUSED = r"\[unused\d+\]"

# First bytes of files that people pass in place of a vocabulary.
_OTHER_KINDS = {
    b"\x80": "a pickle",
    b"PK\x03\x04": "a zip archive (a PyTorch or Keras file?)",
    b"\x89HDF": "an HDF5 file",
    b"\x1f\x8b": "a gzip file",
    b"\xff\xfe": "a UTF-16 text",
    b"\xfe\xff": "a UTF-16 text",
}


def read_vocabulary(path: str) -> dict[str, int]:
    """Reads a vocabulary file: UTF-8, one token a line, its id the line.

    Lines end at a newline only (a token may be any other character, such as
    U+2028), and ASCII white space around a token is dropped.

    Args:
        path: the file.

    Returns:
        token -> id, in the file's order.

    Raises:
        UserError: the file is missing or another kind of file, has a byte
            order mark, an invalid byte, an empty line or a token twice, or
            lacks one of the five special tokens.
    """
    raw = _read_bytes(path)
    vocabulary: dict[str, int] = {}
    lines = raw.split(b"\n")
    if lines and not lines[-1].strip():
        lines.pop()
    for number, line in enumerate(lines, start=1):
        token = _decode(line, path, number).strip(" \t\r\n")
        if not token:
            raise UserError(
                "empty line",
                path=path,
                line=number,
                expected="one token a line",
                fix="remove the line",
            )
        if "\t" in token:
            raise UserError(
                f"tab in token {token!r}",
                path=path,
                line=number,
                expected="one token a line",
                fix="a SentencePiece vocabulary cannot be used here",
            )
        if token in vocabulary:
            raise UserError(
                f"token {token!r} stands on line {vocabulary[token] + 1} too",
                path=path,
                line=number,
                expected="every token once",
                fix="remove one of the two",
            )
        vocabulary[token] = number - 1
    missing = [token for token in SPECIAL_TOKENS if token not in vocabulary]
    if missing:
        raise UserError(
            f"no {' '.join(missing)} among {len(vocabulary)} tokens",
            path=path,
            expected=f"the special tokens {' '.join(SPECIAL_TOKENS)}",
            fix="add them, each on a line of its own",
        )
    return vocabulary


def vocabulary_hash(path: str) -> str:
    """The sha256 of the file's bytes, as hexadecimal digits."""
    return hashlib.sha256(_read_bytes(path)).hexdigest()


def learn_vocabulary(
    words: Counter,
    vocab_size: int,
    *,
    min_frequency: int = 2,
    num_unused: int = 99,
    limit_alphabet: int = 1000,
    max_chars_per_word: int = 200,
) -> list[str]:
    """Learns a WordPiece vocabulary from counted words.

    The pieces are merged by Hugging Face `tokenizers`. It draws the ids of
    single characters in the order of a hash table, which changes from run to
    run and decides ties; so the alphabet is chosen and ordered here and
    handed over as fixed tokens. The same words give the same vocabulary.

    Args:
        words: word -> count, from `word_counts.count_corpus`.
        vocab_size: length of the vocabulary, special and unused tokens
            included; a small corpus may give fewer.
        min_frequency: a pair of pieces is merged when seen so often.
        num_unused: `[unusedN]` slots after `[PAD]`; 99 puts `[UNK]`, `[CLS]`,
            `[SEP]` and `[MASK]` at 100 to 103 as in the released files.
        limit_alphabet: this many characters, the most frequent, are kept.
        max_chars_per_word: longer words are `[UNK]` and teach nothing.

    Returns:
        the tokens: `[PAD]`, unused, special, characters, merged pieces.

    Raises:
        UserError: `vocab_size` leaves no room for the characters, or there
            is no word.
    """
    import tokenizers

    words = Counter(
        {w: n for w, n in words.items() if len(w) <= max_chars_per_word}
    )
    head = [PAD, *(f"[unused{i}]" for i in range(num_unused))]
    head += [UNK, CLS, SEP, MASK]
    alphabet = _alphabet(words, limit_alphabet)
    if not alphabet:
        raise UserError("the corpus has no word", expected="text")
    room = vocab_size - len(head)
    if room < len(alphabet):
        raise UserError(
            f"--vocab_size={vocab_size} is too small",
            expected=f"at least {len(head) + len(alphabet)}: {len(head)} "
            f"special and unused tokens and {len(alphabet)} characters",
        )
    model = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token=UNK))
    model.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=room,
        min_frequency=min_frequency,
        special_tokens=alphabet,
        continuing_subword_prefix="##",
        show_progress=False,
    )
    known = set(alphabet)
    model.train_from_iterator(_repeat(words, known), trainer)
    learned = sorted(model.get_vocab().items(), key=lambda item: item[1])
    pieces = [token for token, _ in learned if token not in known]
    return head + alphabet + pieces[: room - len(alphabet)]


def write_vocabulary(path: str, tokens: list[str]) -> None:
    """Writes one token a line; the file appears whole or not at all."""
    write_whole(path, "".join(f"{token}\n" for token in tokens))


def read_words(path: str) -> list[str]:
    """Reads words to add to a vocabulary, one a line; blank lines are none.

    Raises:
        UserError: the file cannot be read, or a word has white space in it
            or stands there twice.
    """
    lines: dict[str, int] = {}
    for number, line in enumerate(_read_bytes(path).split(b"\n"), start=1):
        word = _decode(line, path, number).strip(" \t\r")
        if word in lines or word.split() not in ([], [word]):
            raise UserError(
                f"{word!r}" + (" stands there twice" if word in lines else ""),
                path=path,
                line=number,
                expected="one word a line, every word once",
            )
        if word:
            lines[word] = number
    return list(lines)


def place_words(
    tokens: list[str], words: list[str]
) -> tuple[list[str], list[int]]:
    """Finds ids for new words: those of unused slots first, then new ones.

    Args:
        tokens: of the vocabulary, in order of their ids.
        words: none of which is a token.

    Returns:
        the new tokens, and the id of each word.
    """
    tokens = list(tokens)
    free = unused_slots(tokens)
    rows = []
    for word in words:
        if free:
            row = free.pop(0)
            tokens[row] = word
        else:
            row = len(tokens)
            tokens.append(word)
        rows.append(row)
    return tokens, rows


def unused_slots(tokens: list[str]) -> list[int]:
    """Ids of the `[unusedN]` tokens, in order."""
    return [i for i, t in enumerate(tokens) if re.fullmatch(_UNUSED, t)]


def looks_lower_case(tokens: Iterable[str]) -> bool:
    """Whether no token has a capital letter, special tokens aside."""
    return all(
        token == token.lower()
        for token in tokens
        if not (token.startswith("[") and token.endswith("]"))
    )


def _alphabet(words: Counter, limit_alphabet: int) -> list[str]:
    """Single-character pieces of the most frequent characters, in order."""
    counts: Counter = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    kept = sorted(counts, key=lambda c: (-counts[c], c))[:limit_alphabet]
    inside = {character for word in words for character in word[1:]}
    return sorted(kept) + [f"##{c}" for c in sorted(inside & set(kept))]


def _repeat(words: Counter, known: set[str]):
    """Lines that hold each word as often as it was counted, in order.

    A word with a character outside the alphabet is `[UNK]` as a whole, so
    it teaches nothing.
    """
    for word in sorted(words):
        letters = {word[0], *(f"##{c}" for c in word[1:])}
        if letters <= known:
            left = words[word]
            while left > 0:
                yield " ".join([word] * min(left, 1000))
                left -= 1000


def _read_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except IsADirectoryError:
        raise UserError(
            "is a folder", path=path, expected="a vocabulary file"
        ) from None
    except OSError as error:
        raise UserError(
            error.strerror or str(error),
            path=path,
            expected="a vocabulary file",
        ) from None
    for start, kind in _OTHER_KINDS.items():
        if raw.startswith(start):
            raise UserError(
                f"this is {kind}", path=path, expected="a vocabulary file"
            )
    if raw.startswith(b"\xef\xbb\xbf"):
        raise UserError(
            "starts with a UTF-8 byte order mark",
            path=path,
            line=1,
            fix="save it without one",
        )
    return raw


def _decode(line: bytes, path: str, number: int) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"invalid UTF-8 byte 0x{line[error.start]:02x}",
            path=path,
            line=number,
            fix="save the file as UTF-8",
        ) from None
