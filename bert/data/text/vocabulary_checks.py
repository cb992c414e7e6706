"""Warnings about a vocabulary that does not match its use."""

import itertools
import unicodedata
from collections.abc import Iterable

from bert.common.errors import UserError
from bert.common.progress import log
from bert.data.text import tokenization, vocabulary
from bert.data.text.casing import Casing
from bert.data.text.tokenizer import Tokenizer

_TEXTS = 1000  # number of texts that are checked
_FIRST = 1000  # number of characters of a text that are checked
_MOST_UNKNOWN = 0.01  # fraction of the tokens
_MOST_STRIPPED = 0.003  # fraction of the characters; 0.0005 in English
_NEW_MODEL = (
    "pass --nostrip_accents, also to create_vocab.py, or use a cased model"
)
_LONGEST_TOKEN = 256  # bytes without `##`; limit of TensorFlow Text


def mismatches(
    tokenizer: Tokenizer,
    vocab_size: int | None = None,
    config_file: str | None = None,
) -> list[UserError]:
    """Compares a vocabulary with its casing and the config.

    Args:
        tokenizer: Tokenizer. Tokenizer of the vocabulary.
        vocab_size: int or None. Number of tokens in the config; None without
            a config. A value that is too small is an error elsewhere.
        config_file: str or None. Path of the config, for messages.

    Returns:
        list of UserError. The suspected mismatches.
    """
    warnings, size = [], len(tokenizer.vocab)

    # Compared with `is`, as None (unknown) matches both.
    cased, lower = is_cased(tokenizer.vocab), tokenizer.do_lower_case
    if cased is not None and cased is lower:
        kind, fix = "no", "pass --do_lower_case, or words become [UNK]"
        if cased:
            kind, fix = "some", "pass --nodo_lower_case"
        warnings.append(
            UserError(
                f"has {kind} tokens with capital letters, do_lower_case is "
                f"{lower}",
                path=tokenizer.path,
                fix=fix,
            )
        )

    # A few embeddings without a token are common.
    if (
        vocab_size
        and vocab_size > size
        and not vocabulary.is_padded(vocab_size, size)
    ):
        warnings.append(wrong_size(tokenizer, vocab_size, config_file))

    return warnings


def wrong_size(
    tokenizer: Tokenizer, vocab_size: int, config_file: str | None
) -> UserError:
    """Returns the error of a config with another size than the vocabulary.

    Args:
        tokenizer: Tokenizer. Tokenizer of the vocabulary.
        vocab_size: int. Number of tokens in the config.
        config_file: str or None. Path of the config.
    """
    size = len(tokenizer.vocab)
    return UserError(
        f"vocab_size is {vocab_size}",
        path=config_file,
        expected=f"{size}, the number of tokens of {tokenizer.path}",
        fix="pass the config of this vocabulary, or to run_pretraining.py "
        f"--vocab_size={size}",
    )


def warn(
    tokenizer: Tokenizer,
    vocab_size: int | None = None,
    config_file: str | None = None,
    texts: Iterable[str] = (),
    trained: Casing | None = None,
) -> None:
    """Warns if a vocabulary does not seem to fit the network or the texts.

    Args:
        tokenizer, vocab_size, config_file: See `mismatches`.
        texts: iterable of str. Texts; the first thousand are checked.
        trained: Casing or None. Casing that the model records, if any.
    """
    texts = list(itertools.islice(texts, _TEXTS))
    warnings = mismatches(tokenizer, vocab_size, config_file)

    tokens = [x for ids in tokenizer.fast.ids_of_lines(texts) for x in ids]
    unknown = tokens.count(tokenizer.vocab[vocabulary.UNK])
    if unknown > _MOST_UNKNOWN * len(tokens):
        warnings.append(
            UserError(
                f"{unknown / len(tokens):.1%} of the tokens of the first "
                f"{len(texts):,} texts are [UNK]",
                path=tokenizer.path,
                expected=f"at most {_MOST_UNKNOWN:.0%}",
                fix="check that the vocabulary has this language and casing",
            )
        )

    for warning in warnings:
        log(f"warning: {warning}")
    fix = _NEW_MODEL
    # Another casing than the recorded one is an error.
    if trained and trained.strips_accents is not None:
        fix = "use a cased model, or one trained with --nostrip_accents"
    warn_of_accents(tokenizer.strips_accents, tokenizer.path, texts, fix)


def warn_of_accents(
    strips: bool, path: str, texts: list[str], fix: str = _NEW_MODEL
) -> None:
    """Warns if stripping accents changes too many characters of texts.

    In Hindi and Thai, vowels are lost; in German, other words result.

    Args:
        strips: bool. Whether accents are stripped.
        path: str. The vocabulary or the corpus, for the message.
        texts: list of str. A sample of the texts.
        fix: str. Advice. Default: the advice for a new model.
    """
    if not strips:
        return

    # NFD separates letters and marks; Mn is the category of accents.
    sample = "".join(text[:_FIRST] for text in texts)
    kinds = map(unicodedata.category, unicodedata.normalize("NFD", sample))
    stripped = list(kinds).count("Mn")
    if stripped <= _MOST_STRIPPED * len(sample):
        return

    warning = UserError(
        f"in a sample of {len(texts):,} texts, "
        f"{stripped / len(sample):.1%} of the characters are vowel signs, "
        "umlauts or accents that are stripped",
        path=path,
        expected=f"at most {_MOST_STRIPPED:.1%}",
        fix=fix,
    )
    log(f"warning: {warning}")


def is_too_long(token: str) -> bool:
    """Returns whether a token is too long for TensorFlow Text."""
    return len(token.removeprefix("##").encode()) > _LONGEST_TOKEN


def check_exportable(tokenizer: Tokenizer) -> None:
    """Rejects a vocabulary that `text_ops.GraphTokenizer` cannot represent.

    Raises:
        UserError: a token is too long or has a null character.
    """
    for token, i in tokenizer.vocab.items():
        if is_too_long(token) or "\0" in token:
            raise UserError(
                f"token {token[:9]!r}, {len(token.encode())} bytes",
                path=tokenizer.path,
                line=i + 1,
                expected=f"at most {_LONGEST_TOKEN} bytes without null bytes, "
                "the limit of TensorFlow Text",
                fix="replace it with an unused token such as [unused999]",
            )


def is_cased(vocab: dict[str, int]) -> bool | None:
    """Returns whether a vocabulary is cased; None if no letter has case.

    Args:
        vocab: dict. Token -> id.
    """
    # [UNK] has capitals in uncased vocabularies too.
    words = [x for x in vocab if not (x.startswith("[") and x.endswith("]"))]
    if all(word.lower() == word.upper() for word in words):
        return None

    return not tokenization.looks_lower_case(vocab)
