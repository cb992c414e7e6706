"""Which records run_pretraining reads, and whether they go together."""

import contextlib
import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterator

from common import flags, storage
from common.errors import UserError
from common.progress import Progress, say
from data import features
from data.pretraining.settings import InstanceSettings
from data.records import manifest
from data.text import vocabulary
from modeling.config import BertConfig
from tasks.pretraining.settings import Settings

_HASHED_BYTES = 4 << 30  # some seconds


@dataclasses.dataclass(frozen=True)
class Records:
    """Shards that are read together.

    Attributes:
        files: their paths.
        listed: the manifest's entry of each, or None.
        schema: their features.
    """

    files: list[str]
    listed: list[dict | None]
    schema: dict[str, tuple[str, int]]

    def entries(self) -> list[dict | None]:
        """`{"records", "bytes", "sha256"}` of each file, or None."""
        return [
            run["shards"][os.path.basename(path)] if run else None
            for path, run in zip(self.files, self.listed, strict=True)
        ]


@dataclasses.dataclass(frozen=True)
class Phase:
    """Steps that read the same records.

    Attributes:
        records: what they read.
        masks: how new masks are drawn at each epoch, or None.
        batch_size: rows of a batch, over all devices.
        first: steps before the phase.
        last: its last step.
    """

    records: Records
    masks: InstanceSettings | None
    batch_size: int
    first: int
    last: int


@dataclasses.dataclass(frozen=True)
class Inputs:
    """All that a run reads, checked.

    Attributes:
        phases: what it learns from, one after the other.
        held_out: what it is evaluated on, or None.
        do_lower_case, strip_accents: casing of the records; None if it is
            not known.
        vocab_file: vocabulary of the records; None if it is not known.
    """

    phases: list[Phase]
    held_out: Records | None
    do_lower_case: bool | None
    strip_accents: bool | None
    vocab_file: str | None

    @property
    def packed(self) -> bool:
        """Whether rows hold several pairs."""
        return features.SEQUENCE_IDS in self.phases[0].records.schema


def read_inputs(settings: Settings, config: BertConfig) -> Inputs:
    """Finds the records that the flags name.

    Raises:
        UserError: they do not go together, or not with the config.
    """
    wanted = read_phases(settings)
    sets = [storage.list_files(patterns, flag) for flag, patterns, *_ in wanted]
    if settings.eval_input_file:
        sets.append(
            storage.list_files(settings.eval_input_file, "eval_input_file")
        )
    listed = [[manifest.manifest_of(path) for path in files] for files in sets]
    everything = [run for runs in listed for run in runs]
    check_packing(everything)
    runs = [run for run in everything if run]
    check_vocabulary(runs, config, settings.training.model.bert_config_file)
    check_text_flags(settings, runs, config)
    records = [
        Records(files, runs, read_schema(settings, files, runs, config))
        for files, runs in zip(sets, listed, strict=True)
    ]
    held_out = records.pop() if settings.eval_input_file else None
    phases = [
        Phase(
            part,
            read_masks(settings, part) if settings.dynamic_masking else None,
            batch_size,
            first,
            last,
        )
        for part, (*_, batch_size, first, last) in zip(
            records, wanted, strict=True
        )
    ]
    made = runs[0] if runs else {}
    return Inputs(
        phases,
        held_out,
        made.get("do_lower_case", settings.do_lower_case),
        made.get("strip_accents", settings.strip_accents),
        settings.vocab_file or made.get("vocab_file"),
    )


def read_phases(
    settings: Settings,
) -> list[tuple[str, str, int, int, int]]:
    """What is trained on, in order, from --phases or --input_file.

    Returns:
        (flag, file pattern, batch size, steps before it, its last step) of
        each phase.

    Raises:
        UserError: both are given or none, or --phases cannot be read.
    """
    if bool(settings.phases) == bool(settings.input_file):
        raise UserError(
            "both --input_file and --phases"
            if settings.phases
            else "neither --input_file nor --phases",
            expected="one of them",
        )
    steps = settings.num_train_steps
    if not settings.phases:
        files, batch_size = (
            settings.input_file,
            settings.training.train_batch_size,
        )
        return [("input_file", files, batch_size, 0, steps)]
    parts = []
    for part in settings.phases.split(","):
        match = re.fullmatch(r"(.+?):([1-9]\d*)(?::([1-9]\d*))?", part)
        if match is None:
            raise UserError(
                f"--phases: {part!r}",
                expected="files:share or files:share:batch_size, as in "
                "'128/*.tfrecord*:90,512/*.tfrecord*:10'",
            )
        files, share, batch_size = match.groups()
        parts.append(
            (
                files,
                int(share),
                int(batch_size or settings.training.train_batch_size),
            )
        )
    total = sum(share for _, share, _ in parts)
    phases, passed, first = [], 0, 0
    for files, share, batch_size in parts:
        passed += share
        last = steps * passed // total
        if last == first:
            raise UserError(
                f"--phases: no step of {steps} is left for {files!r}",
                expected="at least one",
                fix="raise --num_train_steps or its share",
            )
        phases.append(("phases", files, batch_size, first, last))
        first = last
    return phases


def length_from(
    settings: Settings, files: list[str], runs: list[dict], name: str
) -> int:
    """A length from the flag, the manifests and the first record.

    The first record is read where there is no manifest and no flag.
    """
    wanted = {run[name] for run in runs}
    given = {name: getattr(settings, name)} if name in settings.given else {}
    wanted |= set(given.values())
    if len(wanted) > 1:
        flag = f"--{name}={given[name]}, " if given else ""
        listed = ", ".join(map(str, sorted({run[name] for run in runs})))
        raise UserError(
            f"{flag}the records have {listed}",
            path=storage.name_of(files),
            expected="one length",
            fix="leave the flag out, or make the records again",
        )
    if wanted:
        return wanted.pop()
    from data.records import reader

    found = reader.read_lengths(files[0])
    return found.get(name) or getattr(settings, name)


def check_packing(listed: list[dict | None]) -> None:
    """Refuses packed rows together with others."""
    packed = [bool(run and run.get("pack_sequences")) for run in listed]
    if any(packed) and not all(packed):
        raise UserError(
            f"{sum(packed)} of {len(packed)} files have packed rows",
            expected="all or none, those of --eval_input_file too",
            fix="make the others with --pack_sequences",
        )


def read_schema(
    settings: Settings,
    files: list[str],
    listed: list[dict | None],
    config: BertConfig,
) -> dict[str, tuple[str, int]]:
    """The features of the records, which all must have."""
    runs = [run for run in listed if run]
    lengths = {
        name: length_from(settings, files, runs, name)
        for name in ("max_seq_length", "max_predictions_per_seq")
    }
    config.check_length(
        lengths["max_seq_length"],
        "max_seq_length",
        settings.training.model.bert_config_file,
    )
    if not runs or not runs[0].get("pack_sequences"):
        return features.pretraining_schema(**lengths)
    return features.packed_schema(
        **lengths, max_sequences_per_row=runs[0]["max_sequences_per_row"]
    )


def read_masks(settings: Settings, train: Records) -> InstanceSettings:
    """How the records were masked, from their manifest.

    Raises:
        UserError: there is no manifest, the records were masked in different
            ways, or by words that the records do not show.
    """
    masking = [x for x in flags.flags_of(InstanceSettings) if x.masking]
    made = set()
    for path, run in zip(train.files, train.listed, strict=True):
        if run is None:
            raise UserError(
                "--dynamic_masking: not in a manifest",
                path=path,
                expected="records of create_pretraining_data.py",
            )
        if run.get("word_boundaries"):
            raise UserError(
                "--dynamic_masking: masked by --word_boundaries",
                path=path,
                expected="words that the pieces show",
                fix="raise --dupe_factor of the records instead",
            )
        made.add(
            InstanceSettings(
                **{x.name: run[x.name] for x in masking if x.name in run},
                random_seed=settings.training.random_seed,
            )
        )
    if len(made) > 1:
        raise UserError(
            "--dynamic_masking: the files were masked in different ways",
            path=",".join(train.files),
            expected="records of one command line",
        )
    return made.pop()


def check_vocabulary(
    runs: list[dict], config: BertConfig, config_file: str
) -> None:
    """Refuses records of several vocabularies, or of a larger one.

    Warns of a vocabulary that does not have their words.
    """
    made = {
        (
            run["vocab_sha256"],
            run["do_lower_case"],
            run["strip_accents"],
        ): run["vocab_file"]
        for run in runs
    }
    if len(made) > 1:
        listed = [
            f"{path} with do_lower_case={lower}, strip_accents={strip}"
            for (_, lower, strip), path in made.items()
        ]
        raise UserError(
            f"the records were made with {' and '.join(sorted(listed))}",
            expected="one vocabulary and casing",
        )
    for run in runs:
        if run["vocab_size"] > config.vocab_size:
            raise UserError(
                f"vocab_size is {config.vocab_size}",
                path=config_file,
                expected=f"at least {run['vocab_size']}, the tokens of "
                f"{run['vocab_file']}",
            )
    unknown = max(
        (x.get("shares", {}).get("unknown", 0) for x in runs), default=0
    )
    if unknown > 0.01:
        say(
            f"warning: {unknown:.1%} of the tokens of the records are [UNK]; "
            "were they made with the vocabulary of their language and casing?"
        )


def check_text_flags(
    settings: Settings, runs: list[dict], config: BertConfig
) -> None:
    """Compares --vocab_file and the flags of the casing with the records."""
    for run in runs:
        for name in ("do_lower_case", "strip_accents"):
            given = getattr(settings, name)
            if given not in (None, run[name]):
                raise UserError(
                    f"--{name}={given}",
                    expected=f"{run[name]}, by which the records were made "
                    "(manifest.json)",
                )
    if not settings.vocab_file:
        return
    tokens = vocabulary.read_vocabulary(settings.vocab_file)
    config.check_vocabulary(
        tokens, settings.vocab_file, settings.training.model.bert_config_file
    )
    digest = vocabulary.vocabulary_hash(settings.vocab_file)
    for run in runs:
        if run["vocab_sha256"] != digest:
            raise UserError(
                f"sha256 {digest[:8]}",
                path=settings.vocab_file,
                expected=f"{run['vocab_sha256'][:8]}, of the vocabulary that "
                f"the records were made with, {run['vocab_file']}",
            )


def check_all_records(inputs: Inputs, config: BertConfig) -> list[int]:
    """Checks all records of a run; returns the number of each phase's.

    Raises:
        UserError: as of `check_records`.
    """
    sets = [phase.records for phase in inputs.phases]
    sets += [inputs.held_out] if inputs.held_out else []
    counts = [check_records(records, config.vocab_size) for records in sets]
    return counts[: len(inputs.phases)]


def check_records(records: Records, vocab_size: int) -> int:
    """Reads what can be read before step 1, and counts.

    Shards in a manifest are compared with its hashes, if all of them together
    are no more than 4 GB; of more only sizes were compared. All others are
    read from end to end.

    Args:
        records: that a run will read.
        vocab_size: ids must be below.

    Returns:
        the number of records.

    Raises:
        UserError: one is damaged, or does not fit.
    """
    from data.records import reader

    entries = records.entries()
    total = sum(entry["bytes"] for entry in entries if entry)
    progress = Progress("compared", total / 1e6, "MB")
    count = done = 0
    for path, entry in zip(records.files, entries, strict=True):
        if entry is None:
            say(f"{path}: not in a manifest, checking every record")
            count += reader.check_records(path, records.schema, vocab_size)
            continue
        if total <= _HASHED_BYTES:
            _check_shard(path, entry)
            done += entry["bytes"]
            progress.update(done / 1e6)
        count += entry["records"]
    if total > _HASHED_BYTES:
        say(
            f"{storage.name_of(records.files)}: {total / 1e9:.0f} GB, sizes "
            "compared; doctor.py reads them from end to end"
        )
    if count == 0:
        raise UserError(
            "no records", path=",".join(records.files), expected="TFRecords"
        )
    return count


@contextlib.contextmanager
def locating_damage(inputs: Inputs) -> Iterator[None]:
    """Finds the damaged shard when TensorFlow cannot read the records.

    Raises:
        UserError: with the file, the record and the cause.
    """
    import tensorflow as tf

    try:
        yield
    except (
        tf.errors.DataLossError,
        tf.errors.InvalidArgumentError,
        tf.errors.NotFoundError,
    ):
        for phase in inputs.phases:
            entries = phase.records.entries()
            for path, entry in zip(phase.records.files, entries, strict=True):
                _check_shard(path, entry)
        raise


def fingerprint(inputs: Inputs) -> str:
    """sha256 over the names, sizes and hashes of what a run learns from."""
    shards = [
        [
            [
                os.path.basename(path),
                storage.size(path),
                (entry or {}).get("sha256"),
            ]
            for path, entry in zip(
                phase.records.files, phase.records.entries(), strict=True
            )
        ]
        for phase in inputs.phases
    ]
    return hashlib.sha256(json.dumps(shards).encode()).hexdigest()


def _check_shard(path: str, entry: dict | None) -> None:
    from data.records import shard_check

    try:
        damage = shard_check.check_shard(path, entry)
    except OSError as error:
        damage = f"cannot be read: {error}"
    if damage:
        raise UserError(
            damage,
            path=path,
            fix="make the records again; a run goes on from its checkpoint",
        )
