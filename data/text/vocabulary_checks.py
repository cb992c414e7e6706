"""Checks of a vocabulary, and of its use."""

import itertools
import unicodedata
from collections.abc import Iterable

from bert.common.errors import UserError
from bert.common.findings import SUSPICIOUS, Finding, fine, suspicious, wrong
from bert.common.progress import say
from bert.data.text import tokenization, vocabulary
from bert.data.text.tokenizer import Tokenizer

_TEXTS = 1000
_FIRST = 1000  # characters of a text
_MOST_UNKNOWN = 0.01  # share of the tokens
_MOST_STRIPPED = 0.003  # share of the characters; in English 0.0005
_LONGEST_TOKEN = 256  # bytes without `##`; limit of TensorFlow Text


def check_file(tokenizer: Tokenizer) -> list[Finding]:
    """Examines the file of a vocabulary."""
    found, path, vocab = [], tokenizer.path, tokenizer.vocab
    if b"\r\n" in tokenizer.content + b"\n":
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
    return found


def check_use(
    tokenizer: Tokenizer,
    vocab_size: int | None = None,
    config_file: str | None = None,
) -> list[Finding]:
    """Compares a vocabulary with its casing and the config.

    Args:
        tokenizer: its `do_lower_case` may be None: unknown.
        vocab_size: from the config; None without a config.
        config_file: path of the config, for messages.

    Returns:
        findings.
    """
    found, path, size = [], tokenizer.path, len(tokenizer.vocab)
    cased = is_cased(tokenizer.vocab)
    if tokenizer.do_lower_case is True and cased is True:
        found.append(
            suspicious(
                "has tokens with capital letters, do_lower_case is True",
                path=path,
                expected="an uncased vocabulary, or do_lower_case False",
                fix="pass --nodo_lower_case",
            )
        )
    if tokenizer.do_lower_case is False and cased is False:
        found.append(
            suspicious(
                "has no token with a capital letter, do_lower_case is False",
                path=path,
                expected="a cased vocabulary, or do_lower_case True",
                fix="words with capital letters become [UNK]",
            )
        )
    if vocab_size in (None, size):
        return found
    message = {
        "path": config_file,
        "expected": f"{size}, the number of tokens of {path}",
        "fix": "pass the config of this vocabulary, or to run_pretraining.py "
        f"--vocab_size={size}",
    }
    level = fine if vocabulary.is_padded(vocab_size, size) else suspicious
    level = wrong if vocab_size < size else level
    return [*found, level(f"vocab_size is {vocab_size}", **message)]


def check_hash(tokenizer: Tokenizer, runs: list[dict]) -> list[Finding]:
    """Checks that records were created with this vocabulary.

    Args:
        tokenizer: of the vocabulary.
        runs: entries of the records' manifest.

    Returns:
        one finding for each other vocabulary.
    """
    others = {run["vocab_sha256"]: run["vocab_file"] for run in runs}
    others.pop(tokenizer.sha256, None)
    return [
        wrong(
            f"sha256 is {tokenizer.sha256[:12]}…",
            path=tokenizer.path,
            expected=f"{other[:12]}…, the vocabulary of the records",
            fix=f"pass --vocab_file={file}",
        )
        for other, file in others.items()
    ]


def check_texts(tokenizer: Tokenizer, texts: list[str]) -> list[Finding]:
    """Checks the share of [UNK] in some texts."""
    first = [tokenizer.exact.tokenize(text) for text in texts]
    total = sum(map(len, first))
    unknown = sum(tokens.count(vocabulary.UNK) for tokens in first)
    if unknown <= _MOST_UNKNOWN * total:
        return []
    return [
        suspicious(
            f"{unknown / total:.1%} of the tokens of the first {len(first):,} "
            "texts are [UNK]",
            path=tokenizer.path,
            expected=f"at most {_MOST_UNKNOWN:.0%}",
            fix="check that the vocabulary has this language and casing",
        )
    ]


def warn(
    tokenizer: Tokenizer,
    vocab_size: int | None = None,
    config_file: str | None = None,
    texts: Iterable[str] = (),
) -> None:
    """Warns if a vocabulary does not seem to fit the network or the texts.

    Args:
        tokenizer, vocab_size, config_file: see `check_use`.
        texts: texts, of which the first thousand are looked at.
    """
    texts = list(itertools.islice(texts, _TEXTS))
    findings = check_use(tokenizer, vocab_size, config_file)
    findings += check_texts(tokenizer, texts)
    for finding in findings:
        if finding.level == SUSPICIOUS:
            say(f"warning: {finding.message}")

    warn_of_accents(tokenizer.strips_accents, tokenizer.path, texts)


def warn_of_accents(strips: bool, path: str, texts: list[str]) -> None:
    """Warns if too many characters of texts are lost with the accents.

    In Hindi and Thai these are vowels; in German they make another word.

    Args:
        strips: whether accents are stripped.
        path: the vocabulary or the corpus, for the message.
        texts: a sample.
    """
    if not strips:
        return
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
        fix="pass --nostrip_accents, from create_vocab.py on; or use a cased "
        "model",
    )
    say(f"warning: {warning}")


def is_too_long(token: str) -> bool:
    """Returns whether no graph of TensorFlow Text could hold a token."""
    return len(token.removeprefix("##").encode()) > _LONGEST_TOKEN


def check_exportable(tokenizer: Tokenizer) -> None:
    """Rejects a vocabulary that `text_ops.GraphTokenizer` cannot represent.

    Raises:
        UserError: a token is too long or has a null character.
    """
    for token, i in tokenizer.vocab.items():
        found, size = None, len(token.removeprefix("##").encode())
        if size > _LONGEST_TOKEN:
            found = f"token {token[:9]!r}... has {size} bytes"
        elif "\0" in token:
            found = f"token {token[:9]!r} contains a null character"
        if found:
            raise UserError(
                found,
                path=tokenizer.path,
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
    words = [x for x in vocab if not (x.startswith("[") and x.endswith("]"))]
    if all(word.lower() == word.upper() for word in words):
        return None
    return not tokenization.looks_lower_case(vocab)
