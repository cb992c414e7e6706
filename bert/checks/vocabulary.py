"""Checks of a vocabulary against its casing, the config and the records."""

from bert.checks.findings import (
    SUSPICIOUS,
    WRONG,
    Finding,
    fine,
    suspicious,
    wrong,
)
from bert.data.records.manifest import Manifest
from bert.data.text import vocabulary, vocabulary_checks
from bert.data.text.tokenizer import Tokenizer


def check_file(tokenizer: Tokenizer) -> list[Finding]:
    """Checks the file of a vocabulary."""
    findings, path, vocab = [], tokenizer.path, tokenizer.vocab
    # Rows are padded with 0, even if [PAD] has another id.
    if vocab[vocabulary.PAD] != 0:
        findings.append(
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
    }[vocabulary_checks.is_cased(vocab)]
    findings.append(fine(f"{len(vocab):,} tokens, {casing}", path=path))
    return findings


def check_use(
    tokenizer: Tokenizer,
    vocab_size: int | None = None,
    config_file: str | None = None,
) -> list[Finding]:
    """Compares a vocabulary with its casing and the config.

    Args:
        tokenizer, vocab_size, config_file: See `vocabulary_checks.mismatches`.
    """
    warnings = vocabulary_checks.mismatches(tokenizer, vocab_size, config_file)
    findings = [Finding(SUSPICIOUS, str(warning)) for warning in warnings]

    # More embeddings than tokens may be padding; fewer are an error.
    if vocab_size and vocab_size < len(tokenizer.vocab):
        error = vocabulary_checks.wrong_size(tokenizer, vocab_size, config_file)
        findings.append(Finding(WRONG, str(error)))
    return findings


def check_hash(
    tokenizer: Tokenizer, manifests: list[Manifest]
) -> list[Finding]:
    """Checks that records were created with this vocabulary.

    Args:
        tokenizer: Tokenizer. Tokenizer of the vocabulary.
        manifests: list of Manifest. Manifests of the records.

    Returns:
        list of Finding. One finding for each different vocabulary.
    """
    # Hashes are compared, as a file may have been moved or renamed.
    others = {x.vocab_sha256: x.vocab_file for x in manifests}
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
