"""Checks of pre-training records: files, features and statistics."""

import dataclasses
import functools
import math
import os
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bert.checks.findings import Finding, fine, suspicious, wrong
from bert.checks.record_statistics import Counter
from bert.common import storage
from bert.common.errors import UserError, name_of
from bert.common.progress import counted, log
from bert.data.corpus import documents
from bert.data.pretraining import record_fractions
from bert.data.pretraining.settings import InstanceSettings
from bert.data.records import content_check, shard_check, shards
from bert.data.records.manifest import Manifest
from bert.data.records.shards import Records
from bert.data.text.tokenizer import Tokenizer

_DEVIATIONS = 6  # standard deviations
_MAX_VOCAB_SIZE = 1 << 20  # if neither config nor vocabulary is known
_REMAKE = "make the records again"


@dataclasses.dataclass
class Scan:
    """Result of a scan of records.

    Attributes:
        findings: list of Finding. Findings so far.
        manifests: list of Manifest. Manifests of the files, if they have any.
        tokenizer: Tokenizer or None. Tokenizer of the records, if known.
        max_seq_length: int. S of the readable files; 0 if no file is readable.
        targets: int64 [V] or None. Number of times that each token was
            masked. None without records.
    """

    findings: list[Finding] = dataclasses.field(default_factory=list)
    manifests: list[Manifest] = dataclasses.field(default_factory=list)
    tokenizer: Tokenizer | None = None
    max_seq_length: int = 0
    targets: NDArray | None = None


def scan(
    patterns: str, tokenizer: Tokenizer | None, vocab_size: int | None
) -> Scan:
    """Checks records.

    Args:
        patterns: str. Value of --input_file.
        tokenizer: Tokenizer or None. Used for records without a manifest.
        vocab_size: int or None. V of the config, if known; all ids must be
            below it.

    Raises:
        UserError: A pattern matches no file.
    """
    files = shards.list_files(patterns, "input_file")
    log(f"reading the records of {counted(len(files), 'file')}")
    result = Scan(tokenizer=tokenizer)
    try:
        _scan(files, result, vocab_size)
    except UserError as error:
        result.findings.append(wrong(str(error)))
    return result


def _scan(files: list[str], result: Scan, vocab_size: int | None) -> None:
    """Fills in a `Scan`; raises a UserError if the scan cannot continue."""
    listed = shards.find_shards(files)
    result.manifests = [x.manifest for x in listed if x.manifest]
    result.findings += _check_missing(result.manifests)

    # Damage is found without TensorFlow, which may abort the process.
    whole = []
    for shard in listed:
        path = shard.path
        damage = shard_check.check_shard(path, shard.entry)
        if damage:
            result.findings.append(wrong(damage, path=path, fix=_REMAKE))
        else:
            whole.append(path)
    if not whole:
        return
    if whole == files:
        count = "file is" if len(files) == 1 else f"{len(files)} files are"
        result.findings.append(
            fine(f"the {count} undamaged", path=name_of(files))
        )

    # The other shards are checked even if one is damaged.
    records = Records.open(",".join(whole))
    result.max_seq_length = records.max_seq_length
    if result.manifests:
        result.tokenizer = result.manifests[0].tokenizer()
    vocab = result.tokenizer.vocab if result.tokenizer else None
    limit = vocab_size or (len(vocab) if vocab else _MAX_VOCAB_SIZE)

    counter = Counter(max(limit, len(vocab or ())), vocab)

    # The error of one shard does not end the reading of the others.
    for path, on_read in documents.follow("examined", whole):
        add = functools.partial(_add, counter, path, on_read)
        try:
            content_check.check_records(path, records.schema, limit, add)
        except UserError as error:
            result.findings.append(wrong(str(error)))
    if counter.counts["records"]:
        result.targets = counter.targets
        result.findings += _judge(result, counter, name_of(files))


def _add(counter: Counter, path: str, on_read, batch, first, position) -> None:
    counter.add(batch, path, first)
    on_read(position)


def _check_missing(manifests: list[Manifest]) -> list[Finding]:
    """Checks that the shards of some manifests exist."""
    return [
        wrong(f"lists {name}, which is missing", path=path, fix=_REMAKE)
        for path, manifest in {x.path: x for x in manifests}.items()
        for name in sorted(manifest.shards)
        if not storage.exists(os.path.join(os.path.dirname(path), name))
    ]


def _judge(result: Scan, counter: Counter, where: str) -> list[Finding]:
    """Checks the statistics of all records."""
    counts = counter.counts
    findings = [
        wrong(
            f"record {record}: {problem}: {value}"
            + (f" (and {count - 1} more records)" if count > 1 else ""),
            path=path,
            fix=_REMAKE,
        )
        for problem, (count, path, record, value) in counter.problems.items()
    ]

    # These are divisors below, so zeros are reported first.
    for name, missing in (
        ("predictions", "no token is masked"),
        ("row_tokens", "input_mask is 0 everywhere"),
        ("instances", "next_sentence_weights is 0 everywhere"),
    ):
        if not counts[name]:
            return [*findings, wrong(missing, path=where, fix=_REMAKE)]

    # Without a manifest, use counts of documents that cause no warning.
    of_corpus = {"documents": 1, "sentences": 2, "continued_lines": 0}
    settings, statistics = {}, {}
    if result.manifests:
        settings = result.manifests[0].settings
        statistics = result.manifests[0].statistics
    listed = {name: x for name, x in statistics.items() if x}
    counts = {**of_corpus, **listed, **counts, "tokens": counts["row_tokens"]}
    names = {field.name for field in dataclasses.fields(InstanceSettings)}
    values = {name: settings[name] for name in names & settings.keys()}
    values["max_seq_length"] = result.max_seq_length
    made_with = InstanceSettings(**values)
    lines = record_fractions.warnings(counts, made_with)

    # `warnings` reports too many random pairs, but not too few.
    found = record_fractions.fractions(counts, result.max_seq_length)
    usual = record_fractions.usual_random_next(made_with)
    if found["random_next"] < 0.35:
        lines.append(
            f"{found['random_next']:.0%} of the pairs are random (usual: "
            f"{usual:.0%})"
        )
    findings += [suspicious(line, path=where) for line in lines]

    # Without a vocabulary, the id of [MASK] is unknown.
    tokens = list(result.tokenizer.vocab) if result.tokenizer else []
    if tokens:
        findings += _check_replacements(counts, len(counter.targets), where)
        order = np.argsort(-counter.targets, kind="stable")[:8]
        usual = " ".join(tokens[i] for i in order if i < len(tokens))
        findings.append(fine(f"most frequent tokens: {usual}", path=where))

    described = (
        f"{counts['records']:,} records, {counts['instances']:,} pairs, "
        f"{found['fill']:.1%} full, {found['predicted']:.1%} predicted, "
        f"{found['random_next']:.1%} random next"
    )
    return [*findings, fine(described, path=where)]


def _check_replacements(
    counts: Mapping[str, float], size: int, where: str
) -> list[Finding]:
    """Checks for 80% `[MASK]`, 10% random, 10% kept, in binomial bounds."""
    total = counts["predictions"]
    masked, changed = counts["predictions_masked"], counts["predictions_random"]

    # A random token may be [MASK] or the original token.
    findings = []
    for what, hits, fraction in (
        ("replaced by [MASK]", masked, 0.8 + 0.1 / size),
        ("replaced at random", changed, 0.1 - 0.2 / size),
        ("kept", total - masked - changed, 0.1 + 0.1 / size),
    ):
        bound = _DEVIATIONS * math.sqrt(fraction * (1 - fraction) / total)
        if abs(hits / total - fraction) > bound + 1 / total:
            findings.append(
                suspicious(
                    f"{hits / total:.2%} of {total:,} masked tokens are {what}",
                    path=where,
                    expected=f"{fraction:.0%}, within {bound:.2%}",
                    fix="do the records belong to this vocabulary?",
                )
            )
    return findings
