"""What is odd about a set of pre-training records, from their counts."""

import math
import os

import numpy as np

from checks.record_statistics import Statistics
from common import storage
from common.errors import UserError
from common.findings import Finding, fine, suspicious, wrong
from data.pretraining import partitions
from data.pretraining.settings import Settings
from data.records import manifest
from data.text import vocabulary, vocabulary_checks

_DEVIATIONS = 6
_ENOUGH = 1000  # pieces, for a share of them
_AGAIN = "make the records again"


def check_listing(files: list[str]) -> list[Finding]:
    """Compares files with the manifests of their folders.

    Args:
        files: shards that are there.
    """
    found = []
    for folder in sorted({os.path.dirname(storage.absolute(f)) for f in files}):
        path = os.path.join(folder, manifest.MANIFEST)
        try:
            runs = manifest.read_runs(folder)
        except UserError as error:
            found.append(wrong(str(error)))
            continue
        listed = {name for run in runs for name in run["shards"]}
        found += [
            wrong(f"lists {name}, which is not there", path=path, fix=_AGAIN)
            for name in sorted(listed)
            if not storage.exists(os.path.join(folder, name))
        ]
        found += [
            suspicious(
                "not in the manifest", path=file, expected=f"it in {path}"
            )
            for file in files
            if listed
            and os.path.dirname(storage.absolute(file)) == folder
            and os.path.basename(file) not in listed
        ]
        for run in runs:
            documents = run.get("statistics", {}).get("documents", 2)
            if documents < 2:
                found.append(
                    wrong(
                        f"records of {documents} document",
                        path=path,
                        expected="at least 2: a random next sentence comes "
                        "from another document",
                        fix=f"put a blank line between documents and {_AGAIN}",
                    )
                )
    return found


def check_statistics(
    statistics: Statistics,
    settings: Settings,
    where: str,
    documents: dict[str, int] | None = None,
) -> list[Finding]:
    """Judges what was counted.

    Args:
        statistics: of all rows.
        settings: how the rows were made, as far as it is known.
        where: the files, for messages.
        documents: `documents` and `sentences` of the corpus, if known.
    """
    counts = statistics.counts
    found = [
        wrong(
            f"record {record}: {what}: {value}"
            + (f" (and {rows - 1} more records)" if rows > 1 else ""),
            path=path,
            fix=_AGAIN,
        )
        for what, (rows, path, record, value) in statistics.first_odd.items()
    ]
    if not counts["predictions"]:
        return [*found, wrong("nothing is masked", path=where, fix=_AGAIN)]
    # Without a manifest nothing is known of documents: these numbers warn
    # of nothing.
    counts = {
        "documents": 1,
        "sentences": 2,
        **(documents or {}),
        **counts,
        "tokens": counts["row_tokens"],
    }
    share = partitions.shares(counts, settings.max_seq_length)
    found += [
        suspicious(line, path=where)
        for line in partitions.warnings(counts, settings)
    ]
    if share["random_next"] < 0.35:
        found.append(
            suspicious(
                f"{share['random_next']:.0%} of the pairs are random",
                path=where,
                expected="about 50 %",
                fix=_AGAIN,
            )
        )
    if share["predicted"] > 1.5 * settings.masked_lm_prob:
        found.append(
            suspicious(
                f"{share['predicted']:.1%} of the pieces are predicted",
                path=where,
                expected=f"{settings.masked_lm_prob:.0%}",
                fix="are the rows very short?",
            )
        )
    again = counts["duplicates"] / counts["records"]
    if again > 0.05:
        found.append(
            suspicious(
                f"{again:.1%} of the rows stand here twice",
                path=where,
                fix="is a file given or written twice, is the corpus tiny, or "
                "--dupe_factor large?",
            )
        )
    if statistics.knows_masks:
        found += _check_replacements(counts, len(statistics.targets), where)
    return [*found, _describe(counts, share, where)]


def check_pieces(
    statistics: Statistics, vocab: dict[str, int], where: str
) -> list[Finding]:
    """Whether the pieces look like text of this vocabulary.

    Looks at what was hidden: random pieces stand in rows, but not there.

    Args:
        statistics: of all rows.
        vocab: token -> id.
        where: the files, for messages.
    """
    targets, tokens = statistics.targets, list(vocab)
    total = int(targets.sum())
    usual = [i for i in np.argsort(-targets, kind="stable")[:8] if targets[i]]
    usual = " ".join(tokens[i] for i in usual if i < len(tokens))
    found = [fine(f"most frequent pieces: {usual}", path=where)]
    if total < _ENOUGH:
        return found
    special = vocabulary_checks.special(vocab)
    unused = sorted(special - {vocab[vocabulary.UNK]})
    share = targets[unused].sum() / total
    if share > 0.001:
        most = tokens[max(unused, key=targets.__getitem__)]
        found.append(
            suspicious(
                f"{share:.1%} of the pieces are {most} and the like, which no "
                "text has",
                path=where,
                fix="is it the vocabulary of these records?",
            )
        )
    upper = [i for token, i in vocab.items() if token != token.lower()]
    share = targets[sorted(set(upper) - special)].sum() / total
    if vocabulary_checks.is_cased(vocab) and share < 0.002:
        found.append(
            suspicious(
                f"{share:.2%} of the pieces have a capital letter, in a "
                "vocabulary that has them",
                path=where,
                fix=f"{_AGAIN} with --nodo_lower_case, or an uncased "
                "vocabulary",
            )
        )
    return found


def unigram_loss(statistics: Statistics) -> float:
    """The loss, in nats, of knowing nothing but how often pieces occur."""
    counts = statistics.targets[statistics.targets > 0]
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _check_replacements(
    counts: dict[str, int], size: int, where: str
) -> list[Finding]:
    """80 % `[MASK]`, 10 % random, 10 % kept, within binomial bounds."""
    total = counts["predictions"]
    masked, changed = counts["predictions_masked"], counts["predictions_random"]
    found = []
    for what, hits, share in (
        ("hidden behind [MASK]", masked, 0.8 + 0.1 / size),
        ("replaced at random", changed, 0.1 - 0.2 / size),
        ("kept", total - masked - changed, 0.1 + 0.1 / size),
    ):
        bound = _DEVIATIONS * math.sqrt(share * (1 - share) / total)
        if abs(hits / total - share) > bound + 1 / total:
            found.append(
                suspicious(
                    f"{hits / total:.2%} of {total:,} masked places are {what}",
                    path=where,
                    expected=f"{share:.0%}, up to {bound:.2%} off",
                    fix="is it the vocabulary of these records?",
                )
            )
    return found


def _describe(counts: dict, share: dict[str, float], where: str) -> Finding:
    return fine(
        f"{counts['records']:,} records, {counts['instances']:,} pairs, "
        f"{share['fill']:.1%} full, {share['predicted']:.1%} predicted, "
        f"{share['random_next']:.1%} random next",
        path=where,
    )
