"""Checks of pre-training records: files, features and statistics."""

import dataclasses
import math
import os

import numpy as np

from checks.record_statistics import Counter, Statistics
from common import storage
from common.errors import UserError
from common.findings import Finding, fine, suspicious, wrong
from common.progress import say
from data import features
from data.corpus import documents
from data.pretraining import partitions
from data.pretraining.settings import InstanceSettings
from data.records import manifest
from data.records.shard_check import check_shard
from data.text import vocabulary, vocabulary_checks
from data.text.tokenizer import Tokenizer

_DEVIATIONS = 6  # standard deviations
_MIN_TOKENS = 1000  # for shares of tokens
_REMAKE = "make the records again"


def check_listing(files: list[str]) -> list[Finding]:
    """Compares files with the manifests of their folders.

    Args:
        files: paths of existing shards.
    """
    found = []
    for folder in sorted({os.path.dirname(storage.absolute(f)) for f in files}):
        try:
            runs = manifest.read_runs(folder)
        except UserError as error:
            found.append(wrong(str(error)))
            continue
        listed = {
            name: run["manifest"] for run in runs for name in run["shards"]
        }
        found += [
            wrong(f"lists {name}, which is missing", path=path, fix=_REMAKE)
            for name, path in sorted(listed.items())
            if not storage.exists(os.path.join(folder, name))
        ]
        found += [
            suspicious(
                "in no manifest",
                path=file,
                expected="an entry in "
                f"{os.path.join(folder, manifest.name_for(file))}",
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
                        f"only {documents} document",
                        path=run["manifest"],
                        expected="at least 2: a random next sentence comes "
                        "from another document",
                        fix=f"put a blank line between documents and {_REMAKE}",
                    )
                )
    return found


def check_statistics(
    statistics: Statistics,
    settings: InstanceSettings,
    where: str,
    documents: dict[str, int] | None = None,
) -> list[Finding]:
    """Checks the statistics of records.

    Args:
        statistics: statistics of all records.
        settings: settings of the records, as far as they are known.
        where: name of the files, for messages.
        documents: counts of the corpus, if known.
    """
    counts = statistics.counts
    found = [
        wrong(
            f"record {record}: {problem}: {value}"
            + (f" (and {count - 1} more records)" if count > 1 else ""),
            path=path,
            fix=_REMAKE,
        )
        for problem, (count, path, record, value) in statistics.problems.items()
    ]
    for name, missing in (
        ("predictions", "no token is masked"),
        ("row_tokens", "input_mask is 0 everywhere"),
        ("instances", "next_sentence_weights is 0 everywhere"),
    ):
        if not counts[name]:
            return [*found, wrong(missing, path=where, fix=_REMAKE)]
    # Without a manifest: counts of documents that cause no warning.
    counts = {
        "documents": 1,
        "sentences": 2,
        "continued_lines": 0,
        **{name: x for name, x in (documents or {}).items() if x},
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
                fix=_REMAKE,
            )
        )
    if share["predicted"] > 1.5 * settings.masked_lm_prob:
        found.append(
            suspicious(
                f"{share['predicted']:.1%} of the tokens are predicted",
                path=where,
                expected=f"{settings.masked_lm_prob:.0%}",
                fix="are the sequences very short?",
            )
        )
    duplicates = counts["duplicates"] / counts["records"]
    if duplicates > 0.05:
        found.append(
            suspicious(
                f"{duplicates:.1%} of the records are duplicates",
                path=where,
                fix="is a file passed or written twice, is the corpus tiny, or "
                "--dupe_factor large?",
            )
        )
    if statistics.knows_masks:
        found += _check_replacements(counts, len(statistics.targets), where)
    return [*found, _describe(counts, share, where)]


def check_tokens(
    statistics: Statistics,
    vocab: dict[str, int],
    where: str,
    do_lower_case: bool | None = None,
) -> list[Finding]:
    """Checks that the tokens look like text of this vocabulary.

    Uses the labels: unlike the inputs, they contain no random tokens.

    Args:
        statistics: statistics of all records.
        vocab: token -> id.
        where: name of the files, for messages.
        do_lower_case: casing of the records, if it is known. Text that was
            not lower-cased may be of a script without capital letters.
    """
    targets, tokens = statistics.targets, list(vocab)
    total = int(targets.sum())
    usual = [i for i in np.argsort(-targets, kind="stable")[:8] if targets[i]]
    usual = " ".join(tokens[i] for i in usual if i < len(tokens))
    found = [fine(f"most frequent tokens: {usual}", path=where)]
    if total < _MIN_TOKENS:
        return found
    special = vocabulary_checks.special(vocab)
    unused = sorted(special - {vocab[vocabulary.UNK]})
    share = targets[unused].sum() / total
    if share > 0.001:
        most = tokens[max(unused, key=targets.__getitem__)]
        found.append(
            suspicious(
                f"{share:.1%} of the tokens are {most} or similar, which "
                "do not occur in text",
                path=where,
                fix="do the records belong to this vocabulary?",
            )
        )
    if do_lower_case is False:
        return found
    upper = [i for token, i in vocab.items() if token != token.lower()]
    share = targets[sorted(set(upper) - special)].sum() / total
    if vocabulary_checks.is_cased(vocab) and share < 0.002:
        found.append(
            suspicious(
                f"{share:.2%} of the tokens have a capital letter, although "
                "the vocabulary is cased",
                path=where,
                fix=f"{_REMAKE} with --nodo_lower_case, or with an uncased "
                "vocabulary",
            )
        )
    return found


def unigram_loss(statistics: Statistics) -> float:
    """Masked-LM loss, in nats, of a network that knows only frequencies."""
    counts = statistics.targets[statistics.targets > 0]
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _check_replacements(
    counts: dict[str, int], size: int, where: str
) -> list[Finding]:
    """Checks for 80 % `[MASK]`, 10 % random, 10 % kept, in binomial bounds."""
    total = counts["predictions"]
    masked, changed = counts["predictions_masked"], counts["predictions_random"]
    found = []
    for what, hits, share in (
        ("replaced by [MASK]", masked, 0.8 + 0.1 / size),
        ("replaced at random", changed, 0.1 - 0.2 / size),
        ("kept", total - masked - changed, 0.1 + 0.1 / size),
    ):
        bound = _DEVIATIONS * math.sqrt(share * (1 - share) / total)
        if abs(hits / total - share) > bound + 1 / total:
            found.append(
                suspicious(
                    f"{hits / total:.2%} of {total:,} masked tokens are {what}",
                    path=where,
                    expected=f"{share:.0%}, within {bound:.2%}",
                    fix="do the records belong to this vocabulary?",
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


_MAX_VOCAB_SIZE = 1 << 20  # if neither config nor vocabulary is known


@dataclasses.dataclass
class Scan:
    """Result of a scan of records.

    Attributes:
        files: paths of the shards.
        findings: findings so far.
        listed: manifest entry of each file, or None.
        tokenizer: of the records, if known.
        max_seq_length: S of the first file that is whole.
        statistics: statistics of the files that can be read, if any.
    """

    files: list[str] = dataclasses.field(default_factory=list)
    findings: list[Finding] = dataclasses.field(default_factory=list)
    listed: list[dict | None] = dataclasses.field(default_factory=list)
    tokenizer: Tokenizer | None = None
    max_seq_length: int | None = None
    statistics: Statistics | None = None

    @property
    def runs(self) -> list[dict]:
        """Manifest entries of the files that have one."""
        return [run for run in self.listed if run]


def scan(
    files: list[str], tokenizer: Tokenizer | None, vocab_size: int | None
) -> Scan:
    """Checks records.

    Args:
        files: paths of existing shards.
        tokenizer: for records without a vocabulary in a manifest.
        vocab_size: V of the config, if known; all ids must be below it.
    """
    say(f"reading the records of {documents.number_of(files)}")
    from data.records import reader  # imports TensorFlow

    result = Scan(files, check_listing(files), _listed(files))
    result.tokenizer = _read_vocabulary(result) or tokenizer
    vocab = result.tokenizer and result.tokenizer.vocab
    limit = vocab_size or (len(vocab) if vocab else _MAX_VOCAB_SIZE)
    counter = Counter(max(limit, len(vocab or ())), vocab)
    schemas, whole = {}, 0
    followed = documents.follow("examined", files, map(storage.size, files))
    for run, (path, on_read) in zip(result.listed, followed, strict=True):

        def on_batch(batch, first, position, path=path, on_read=on_read):
            counter.add(batch, path, first)
            on_read(position)

        try:
            schema = _check_whole(path, run)
            whole += 1
            if schema:
                schemas[path] = schema
                reader.check_records(path, schema, limit, on_batch)
        except UserError as error:
            result.findings.append(wrong(str(error)))
    if whole == len(files):
        count = "file is" if whole == 1 else f"{whole} files are"
        result.findings.append(
            fine(f"the {count} whole", path=storage.name_of(files))
        )
    if schemas:
        result.findings += _compare(schemas)
        first = next(iter(schemas.values()))
        result.max_seq_length = first[features.INPUT_IDS][1]
    if counter.statistics.counts["records"]:
        result.statistics = counter.finish()
        result.findings += _judge(result, storage.name_of(files))
    return result


def read_schema(path: str) -> dict[str, tuple[str, int]]:
    """Reads the schema of a file from its first record.

    Raises:
        UserError: it is not a pre-training record.
    """
    import tensorflow as tf

    record = next(iter(tf.data.TFRecordDataset(path).take(1))).numpy()
    try:
        found = tf.train.Example.FromString(record).features.feature
    except Exception as error:  # protobuf's DecodeError is not public
        raise UserError(
            f"record 0: not a tf.train.Example: {error}", path=path
        ) from None
    lengths = {
        name: len(value.int64_list.value) or len(value.float_list.value)
        for name, value in found.items()
    }
    wanted = features.pretraining_schema(0, 0)
    lacking = [name for name in wanted if not lengths.get(name)]
    if lacking:
        raise UserError(
            f"record 0: no {', '.join(lacking)}",
            path=path,
            expected="records for pre-training",
            fix="pass records of create_pretraining_data.py",
        )
    sizes = lengths[features.INPUT_IDS], lengths[features.MASKED_LM_POSITIONS]
    if features.SEQUENCE_IDS not in lengths:
        return features.pretraining_schema(*sizes)
    return features.packed_schema(
        *sizes, lengths.get(features.NEXT_SENTENCE_POSITIONS, 0)
    )


def _listed(files: list[str]) -> list[dict | None]:
    try:
        return manifest.listed_runs(files)
    except UserError:  # reported by `check_listing`
        if len(files) == 1:
            return [None]
        return [run for file in files for run in _listed([file])]


def _read_vocabulary(result: Scan) -> Tokenizer | None:
    """Reads the vocabulary beside the manifest."""
    if not result.runs:
        return None
    try:
        return manifest.tokenizer_of(result.runs[0])
    except UserError as error:
        result.findings.append(wrong(str(error)))
        return None


def _check_whole(
    path: str, run: dict | None
) -> dict[str, tuple[str, int]] | None:
    """Checks a file and reads its schema; None if it is meant to be empty.

    Raises:
        UserError: the file is damaged, or differs from its manifest.
    """
    entry = run["shards"][os.path.basename(path)] if run else None
    damage = check_shard(path, entry)
    if damage:
        raise UserError(damage, path=path, fix=_REMAKE)
    if entry and not entry["records"]:
        return None
    schema = read_schema(path)
    for name, feature in (
        ("max_seq_length", features.INPUT_IDS),
        ("max_predictions_per_seq", features.MASKED_LM_POSITIONS),
    ):
        if run and run[name] != schema[feature][1]:
            raise UserError(
                f"record 0: {feature} has {schema[feature][1]} values",
                path=path,
                expected=f"{run[name]}, {name} in the manifest",
                fix=_REMAKE,
            )
    return schema


def _compare(schemas: dict[str, dict]) -> list[Finding]:
    """Reports files whose features differ from those of the first file."""
    (first, expected), *others = schemas.items()
    return [
        wrong(
            f"{name} has {schema[name][1] if name in schema else 'no'} values",
            path=path,
            expected=f"{expected[name][1]}, as in {first}",
            fix="pass files of the same length and kind",
        )
        for path, schema in others
        for name in (
            features.INPUT_IDS,
            features.MASKED_LM_POSITIONS,
            features.NEXT_SENTENCE_LABELS,
        )
        if schema[name][1] != expected[name][1]
    ]


def _judge(result: Scan, where: str) -> list[Finding]:
    """Checks the statistics of all records."""
    made = result.runs[0] if result.runs else {}
    names = {field.name for field in dataclasses.fields(InstanceSettings)}
    settings = {name: value for name, value in made.items() if name in names}
    settings["max_seq_length"] = result.max_seq_length
    found = check_statistics(
        result.statistics,
        InstanceSettings(**settings),
        where,
        made.get("statistics"),
    )
    if result.tokenizer:
        found += check_tokens(
            result.statistics,
            result.tokenizer.vocab,
            where,
            made.get("do_lower_case"),
        )
    return found
