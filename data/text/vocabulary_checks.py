"""Checks of a vocabulary and of its use, for the doctor."""

import itertools
from collections.abc import Callable, Iterable

from common import storage
from common.errors import UserError
from common.findings import Finding, fine, suspicious, wrong
from data.text import tokenization, vocabulary

_TEXTS = 1000
_MOST_UNKNOWN = 0.01  # share of the tokens
_LONGEST_TOKEN = 256  # bytes without `##`; limit of TensorFlow Text


def check_file(path: str) -> tuple[list[Finding], dict[str, int] | None]:
    """Reads and examines a vocabulary.

    Args:
        path: the file.

    Returns:
        findings; and token -> id, or None if the file cannot be used.
    """
    try:
        vocab = vocabulary.read_vocabulary(path)
    except UserError as error:
        return [wrong(str(error))], None
    found = []
    with storage.open_file(path, "rb") as file:
        lines = file.read().split(b"\n")
    if any(line.endswith(b"\r") for line in lines):
        found.append(
            suspicious(
                "lines end in CR LF",
                path=path,
                expected="LF: other tools read the CR as part of the token",
                fix=f"sed -i 's/\\r$//' {path}",
            )
        )
    if vocab[vocabulary.PAD] != 0:
        found.append(
            suspicious(
                f"[PAD] is token {vocab[vocabulary.PAD]}",
                path=path,
                expected="0, the id of padding",
                fix="move it to the first line, and make the records again",
            )
        )
    casing = {
        True: "cased",
        False: "uncased",
        None: "without letters of either case",
    }
    found.append(
        fine(f"{len(vocab):,} tokens, {casing[is_cased(vocab)]}", path=path)
    )
    return found, vocab


def check_use(
    path: str,
    vocab: dict[str, int],
    do_lower_case: bool | None,
    vocab_size: int | None,
    config_file: str | None,
) -> list[Finding]:
    """Compares a vocabulary with the casing and the config.

    Args:
        path: the vocabulary.
        vocab: token -> id.
        do_lower_case: whether text is lower-cased; None if unknown.
        vocab_size: from the config; None without a config.
        config_file: path of the config, for messages.

    Returns:
        findings.
    """
    found = []
    cased = is_cased(vocab)
    if do_lower_case is True and cased is True:
        found.append(
            suspicious(
                "has tokens with capital letters, do_lower_case is True",
                path=path,
                expected="an uncased vocabulary, or do_lower_case False",
                fix="pass --nodo_lower_case",
            )
        )
    if do_lower_case is False and cased is False:
        found.append(
            suspicious(
                "has no token with a capital letter, do_lower_case is False",
                path=path,
                expected="a cased vocabulary, or do_lower_case True",
                fix="words with capital letters become [UNK]",
            )
        )
    if vocab_size is None or vocab_size == len(vocab):
        return found
    message = {
        "path": config_file,
        "expected": f"{len(vocab)}, the number of tokens of {path}",
        "fix": "pass the config of this vocabulary, or to run_pretraining.py "
        f"--vocab_size={len(vocab)}",
    }
    level = fine if vocabulary.is_padded(vocab_size, len(vocab)) else suspicious
    level = wrong if vocab_size < len(vocab) else level
    return [*found, level(f"vocab_size is {vocab_size}", **message)]


def check_hash(path: str, runs: list[dict]) -> list[Finding]:
    """Checks that records were created with this vocabulary.

    Args:
        path: the vocabulary.
        runs: entries of the records' manifest.

    Returns:
        one finding for each other vocabulary.
    """
    digest = vocabulary.vocabulary_hash(path)
    others = {run["vocab_sha256"]: run["vocab_file"] for run in runs}
    others.pop(digest, None)
    return [
        wrong(
            f"sha256 is {digest[:12]}…",
            path=path,
            expected=f"{other[:12]}…, the vocabulary of the records",
            fix=f"pass --vocab_file={file}",
        )
        for other, file in others.items()
    ]


def check_texts(
    path: str, tokenize: Callable[[str], list[str]], texts: Iterable[str]
) -> list[Finding]:
    """Checks the share of [UNK] in the first thousand texts.

    Args:
        path: the vocabulary.
        tokenize: function from a text to its tokens.
        texts: any number of texts.

    Returns:
        a finding if the share is high, else none.
    """
    first = [tokenize(text) for text in itertools.islice(texts, _TEXTS)]
    total = sum(map(len, first))
    unknown = sum(tokens.count(vocabulary.UNK) for tokens in first)
    if unknown <= _MOST_UNKNOWN * total:
        return []
    return [
        suspicious(
            f"{unknown / total:.1%} of the tokens of the first {len(first):,} "
            "texts are [UNK]",
            path=path,
            expected=f"at most {_MOST_UNKNOWN:.0%}",
            fix="check that the vocabulary has this language and casing",
        )
    ]


def is_too_long(token: str) -> bool:
    """Returns whether no graph of TensorFlow Text could hold a token."""
    return len(token.removeprefix("##").encode()) > _LONGEST_TOKEN


def check_exportable(path: str, vocab: dict[str, int]) -> None:
    """Rejects a vocabulary that `text_ops.GraphTokenizer` cannot represent.

    Args:
        path: the vocabulary.
        vocab: token -> id.

    Raises:
        UserError: a token is too long or has a null character.
    """
    for token, i in vocab.items():
        found, size = None, len(token.removeprefix("##").encode())
        if size > _LONGEST_TOKEN:
            found = f"token {token[:9]!r}... has {size} bytes"
        elif "\0" in token:
            found = f"token {token[:9]!r} contains a null character"
        if found:
            raise UserError(
                found,
                path=path,
                line=i + 1,
                expected=f"at most {_LONGEST_TOKEN} bytes, none of them null: "
                "TensorFlow Text supports no other token",
                fix="replace it with an unused token such as [unused999]",
            )


def is_cased(vocab: dict[str, int]) -> bool | None:
    """Returns whether a vocabulary is cased; None if no letter has case.

    Args:
        vocab: token -> id.
    """
    skipped = special(vocab)
    words = (token for token, i in vocab.items() if i not in skipped)
    if all(word.lower() == word.upper() for word in words):
        return None
    return not tokenization.looks_lower_case(vocab)


def special(vocab: dict[str, int]) -> set[int]:
    """Returns the ids of tokens in brackets: `[CLS]`, `[unused1]`."""
    return {
        i
        for token, i in vocab.items()
        if token.startswith("[") and token.endswith("]")
    }
