"""Input records of run_pretraining.py, and their checks against each other."""

import contextlib
import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterator

from common import storage
from common.errors import UserError
from common.progress import Progress, say
from data import features
from data.pretraining.masking import MaskSettings
from data.records import manifest
from data.text import vocabulary
from modeling.config import BertConfig
from tasks.pretraining.settings import Settings

_ANY_ID = 1 << 31
_HASHED_BYTES = 4 << 30  # takes some seconds


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

    def entries(self) -> list[tuple[str, dict | None]]:
        """Path and `{"records", "bytes", "sha256"}`, or None, of each file."""
        return [
            (path, run["shards"][os.path.basename(path)] if run else None)
            for path, run in zip(self.files, self.listed, strict=True)
        ]


@dataclasses.dataclass(frozen=True)
class Phase:
    """Training steps that read the same records.

    Attributes:
        records: the training records.
        masks: settings of dynamic masking, or None.
        batch_size: examples of a batch, over all devices.
        first: number of steps before the phase.
        last: its last step.
    """

    records: Records
    masks: MaskSettings | None
    batch_size: int
    first: int
    last: int


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Checked inputs of a run.

    Attributes:
        phases: training data, in order.
        held_out: evaluation data, or None.
        do_lower_case, strip_accents: casing of the records; None: unknown.
        vocab_file: vocabulary of the records; None: unknown.
    """

    phases: list[Phase]
    held_out: Records | None
    do_lower_case: bool | None
    strip_accents: bool | None
    vocab_file: str | None

    @property
    def packed(self) -> bool:
        """Whether a row holds several pairs."""
        return features.SEQUENCE_IDS in self.phases[0].records.schema


def read_inputs(settings: Settings, config: BertConfig) -> Inputs:
    """Finds the records that the flags name, and checks their settings.

    Raises:
        UserError: they contradict each other or the config.
    """
    steps = read_phases(settings)
    flag = "phases" if settings.phases else "input_file"
    sets = [manifest.list_shards(pattern, flag) for pattern, *_ in steps]
    if settings.eval_input_file:
        sets.append(
            manifest.list_shards(settings.eval_input_file, "eval_input_file")
        )
    listed = [manifest.manifests_of(files) for files in sets]
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
            *batch_size_and_steps,
        )
        for part, (_, *batch_size_and_steps) in zip(records, steps, strict=True)
    ]
    made = runs[0] if runs else {}
    return Inputs(
        phases,
        held_out,
        made.get("do_lower_case", settings.do_lower_case),
        made.get("strip_accents", settings.strip_accents),
        settings.vocab_file
        or (made and manifest.check_vocabulary(made))
        or None,
    )


def read_phases(settings: Settings) -> list[tuple[str, int, int, int]]:
    """Parses --phases or --input_file.

    Returns:
        (file pattern, batch size, steps before it, its last step) of each
        phase, in order.

    Raises:
        UserError: both are given or none, or --phases cannot be parsed.
    """
    if bool(settings.phases) == bool(settings.input_file):
        raise UserError(
            "both --input_file and --phases"
            if settings.phases
            else "neither --input_file nor --phases",
            expected="one of them",
        )
    batch_size = settings.training.train_batch_size
    parts = [] if settings.phases else [(settings.input_file, 1, batch_size)]
    for part in settings.phases.split(",") if settings.phases else ():
        match = re.fullmatch(r"(.+?):([1-9]\d*)(?::([1-9]\d*))?", part)
        if match is None:
            raise UserError(
                f"--phases: {part!r}",
                expected="files:share or files:share:batch_size, as in "
                "'128/*.tfrecord*:90,512/*.tfrecord*:10'",
            )
        files, share, own_size = match.groups()
        parts.append((files, int(share), int(own_size or batch_size)))
    steps, total = settings.num_train_steps, sum(share for _, share, _ in parts)
    phases, passed, first = [], 0, 0
    for files, share, size in parts:
        passed += share
        last = steps * passed // total
        if last == first:
            raise UserError(
                f"--phases: none of {steps} steps for {files!r}",
                expected="at least one",
                fix="raise --num_train_steps or its share",
            )
        phases.append((files, size, first, last))
        first = last
    return phases


def read_length(
    settings: Settings, files: list[str], runs: list[dict], name: str
) -> int:
    """A length from the flag, the manifests or, without both, a record."""
    listed = {run[name] for run in runs}
    given = {getattr(settings, name)} if name in settings.given else set()
    if len(given | listed) > 1:
        flag = "".join(f"--{name}={length}, " for length in given)
        raise UserError(
            f"{flag}the records have {', '.join(map(str, sorted(listed)))}",
            path=storage.name_of(files),
            expected="one length",
            fix="omit the flag, or make the records again",
        )
    if given or listed:
        return (given | listed).pop()
    from data.records import reader

    found = reader.read_lengths(files[0])
    return found.get(name) or getattr(settings, name)


def check_packing(listed: list[dict | None]) -> None:
    """Checks that all rows are packed, or none.

    Raises:
        UserError: only some are.
    """
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
    """The schema that all of these records must have.

    Raises:
        UserError: their lengths differ, or do not fit the config.
    """
    runs = [run for run in listed if run]
    lengths = {
        name: read_length(settings, files, runs, name)
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


def read_masks(settings: Settings, train: Records) -> MaskSettings:
    """Masking settings of the records, from their manifest.

    Raises:
        UserError: there is no manifest, or the settings differ, or depend on
            words that the tokens do not show.
    """
    names = {field.name for field in dataclasses.fields(MaskSettings)}
    made = set()
    for path, run in zip(train.files, train.listed, strict=True):
        if run is None:
            raise UserError(
                "is in no manifest, which --dynamic_masking needs",
                path=path,
                expected="records of create_pretraining_data.py",
            )
        if run.get("word_boundaries"):
            raise UserError(
                "--dynamic_masking does not support --word_boundaries",
                path=path,
                fix="raise --dupe_factor of the records instead",
            )
        masks = MaskSettings(**{name: run[name] for name in names & set(run)})
        seed = settings.training.random_seed
        made.add(dataclasses.replace(masks, random_seed=seed))
    if len(made) > 1:
        raise UserError(
            "--dynamic_masking: the files were masked in different ways",
            path=",".join(train.files),
            expected="records of one command line",
        )
    return made.pop()


def check_one_vocabulary(runs: list[dict]) -> None:
    """Checks that all records have the same vocabulary and casing.

    Raises:
        UserError: they do not.
    """
    casing = ("do_lower_case", "strip_accents")
    made = {
        (run["vocab_sha256"], *(run[x] for x in casing)): run["vocab_file"]
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


def check_vocabulary(
    runs: list[dict], config: BertConfig, config_file: str
) -> None:
    """Checks that the records have one vocabulary, which fits the config.

    Warns if many tokens are unknown.

    Raises:
        UserError: there are several vocabularies, or it is too large.
    """
    if not runs:
        return
    check_one_vocabulary(runs)
    size, path = config.vocab_size, runs[0]["vocab_file"]
    tokens = runs[0]["vocab_size"]
    if tokens > size:
        raise UserError(
            f"vocab_size is {size}",
            path=config_file,
            expected=f"at least {tokens}, the tokens of {path}",
        )
    if tokens < size and not vocabulary.is_padded(size, tokens):
        say(
            f"warning: {config_file}: vocab_size is {size}, {path} has "
            f"{tokens} tokens: the others are never trained; pass "
            f"--vocab_size={tokens}"
        )
    unknown = max(x.get("shares", {}).get("unknown", 0) for x in runs)
    if unknown > 0.01:
        say(
            f"warning: {unknown:.1%} of the tokens of the records are [UNK]; "
            "were they made with the vocabulary of their language and casing?"
        )


def check_text_flags(
    settings: Settings, runs: list[dict], config: BertConfig
) -> None:
    """Checks --vocab_file and the casing flags against the records.

    Raises:
        UserError: they differ.
    """
    for run in runs:
        for name in ("do_lower_case", "strip_accents"):
            given = getattr(settings, name)
            if given not in (None, run[name]):
                raise UserError(
                    f"--{name}={given}",
                    expected=f"{run[name]}, as in {run['manifest']}",
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


def check_records(records: Records, vocab_size: int) -> int:
    """Checks and counts records before step 1.

    Shards in a manifest are compared with its hashes, if they have at most
    4 GB together and are local; otherwise only their sizes are. All others
    are read completely.

    Args:
        records: records of a run.
        vocab_size: ids must be below it.

    Returns:
        the number of records.

    Raises:
        UserError: one is damaged, or does not fit.
    """
    from data.records import reader

    total = sum(entry["bytes"] for _, entry in records.entries() if entry)
    progress = Progress("compared", total / 1e6, "MB")
    count = done = 0
    for path, entry in records.entries():
        if entry is None:
            say(f"{path}: not in a manifest, checking every record")
            count += reader.check_records(path, records.schema, vocab_size)
            continue
        if total <= _HASHED_BYTES and not storage.is_remote(path):
            _check_shard(path, entry)
            done += entry["bytes"]
            progress.update(done / 1e6)
        count += entry["records"]
    if total > _HASHED_BYTES:
        say(
            f"{storage.name_of(records.files)}: {total / 1e9:.0f} GB, sizes "
            "compared; doctor.py checks their contents"
        )
    if count == 0:
        raise UserError(
            "no records", path=",".join(records.files), expected="TFRecords"
        )
    return count


@contextlib.contextmanager
def locating_damage(inputs: Inputs) -> Iterator[None]:
    """Context that finds the damaged shard when records cannot be read.

    Raises:
        UserError: names the file, the record and the cause.
    """
    import tensorflow as tf

    from data.records import reader

    try:
        yield
    except (
        tf.errors.DataLossError,
        tf.errors.InvalidArgumentError,
        tf.errors.NotFoundError,
    ):
        sets = [phase.records for phase in inputs.phases]
        sets += [inputs.held_out] if inputs.held_out else []
        for records in sets:
            for path, entry in records.entries():
                _check_shard(path, entry)
                if entry is None:
                    reader.check_records(path, records.schema, _ANY_ID)
        raise


def fingerprint(inputs: Inputs) -> str:
    """sha256 over the names, sizes and hashes of the training shards."""
    shards = [
        [
            [
                os.path.basename(path),
                storage.size(path),
                (entry or {}).get("sha256"),
            ]
            for path, entry in phase.records.entries()
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
            fix="make the records again; the run resumes from its checkpoint",
        )
