"""Records of pre-training: shards, and what their manifests say of them."""

import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Iterator, Sequence

from bert.common import storage
from bert.common.errors import UserError
from bert.common.progress import Progress, say
from bert.data import features
from bert.data.records import manifest, shard_check

_LENGTHS = ("max_seq_length", "max_predictions_per_seq")
_HASHED_BYTES = 4 << 30  # takes some seconds
_ANY_ID = 1 << 31


@dataclasses.dataclass(frozen=True)
class Records:
    """Shards that are read together, with equal lengths.

    Attributes:
        files: their paths.
        runs: for each of them, the run of its manifest, or None.
        schema: their features, see `features.pretraining_schema`.
    """

    files: list[str]
    runs: list[dict | None]
    schema: dict[str, tuple[str, int]]

    @classmethod
    def open(
        cls,
        patterns: str,
        flag: str = "input_file",
        lengths: dict[str, int] | None = None,
    ) -> "Records":
        """Lists shards and reads their manifests.

        Args:
            patterns: paths and globs, separated by commas.
            flag: that has them, for messages.
            lengths: `max_seq_length` and `max_predictions_per_seq`, if the
                records must have them.

        Raises:
            UserError: a file is missing, has another size than its manifest
                says, is text, or has other lengths than the first one.
        """
        files = manifest.list_shards(patterns, flag)
        runs = manifest.manifests_of(files)
        listed = [(path, run) for path, run in zip(files, runs) if run]
        given = [("the flags", lengths)] if lengths else []
        check_alike([*given, *listed], _LENGTHS, "omit the flag")
        first = listed[0][1] if listed else {}
        if not listed:
            from bert.data.records import reader

            first = {**reader.read_lengths(files[0]), **(lengths or {})}
        lengths = {name: first.get(name, 0) for name in _LENGTHS}
        if not all(lengths.values()):
            raise UserError(
                "no records for pre-training",
                path=files[0],
                expected="TFRecords of create_pretraining_data.py",
            )
        if not first.get("pack_sequences"):
            return cls(files, runs, features.pretraining_schema(**lengths))
        most = first["max_sequences_per_row"]
        return cls(files, runs, features.packed_schema(*lengths.values(), most))

    @property
    def is_packed(self) -> bool:
        """Whether a row holds several instances."""
        return features.SEQUENCE_IDS in self.schema

    @property
    def max_seq_length(self) -> int:
        """S."""
        return self.schema[features.INPUT_IDS][1]

    @property
    def max_predictions_per_seq(self) -> int:
        """P."""
        return self.schema[features.MASKED_LM_POSITIONS][1]

    def entries(self) -> list[tuple[str, dict | None]]:
        """Path and `{"records", "bytes", "sha256"}`, or None, of each file."""
        return [
            (path, run and run["shards"][os.path.basename(path)])
            for path, run in zip(self.files, self.runs, strict=True)
        ]

    def count(self, vocab_size: int = _ANY_ID) -> int:
        """Checks the contents of the shards, and counts their records.

        Shards in a manifest are compared with its hashes, if they have at most
        4 GB together and are local. All others are read completely.

        Args:
            vocab_size: ids must be below it.

        Raises:
            UserError: a shard is damaged, or does not fit; or none has records.
        """
        from bert.data.records import reader

        total = sum(entry["bytes"] for _, entry in self.entries() if entry)
        progress = Progress("compared", total / 1e6, "MB")
        count = done = 0
        for path, entry in self.entries():
            if entry is None:
                say(f"{path}: not in a manifest, checking every record")
                count += reader.check_records(path, self.schema, vocab_size)
                continue
            if total <= _HASHED_BYTES and not storage.is_remote(path):
                _check_shard(path, entry)
                done += entry["bytes"]
                progress.update(done / 1e6)
            count += entry["records"]
        if total > _HASHED_BYTES:
            say(
                f"{storage.name_of(self.files)}: {total / 1e9:.0f} GB, sizes "
                "compared; doctor.py checks their contents"
            )
        if count == 0:
            raise UserError(
                "no records", path=",".join(self.files), expected="TFRecords"
            )
        return count


def check_alike(
    runs: Sequence[tuple[str, dict]], names: Sequence[str], fix: str
) -> None:
    """Checks that runs have the same values.

    Args:
        runs: path of a file, for messages, and the run of its manifest.
        names: of the values; one that a run lacks is not compared.
        fix: for the message.

    Raises:
        UserError: a value differs; names the two files.
    """
    for path, run in runs[1:]:
        first_path, first = runs[0]
        for name in names:
            if name in run and run[name] != first.get(name, run[name]):
                raise UserError(
                    f"{name} is {run[name]}",
                    path=path,
                    expected=f"{first[name]}, as of {first_path}",
                    fix=fix,
                )


def fingerprint(sets: Sequence[Records]) -> str:
    """sha256 over the names, sizes and hashes of the shards."""

    def describe(path: str, entry: dict | None) -> list:
        sha256 = entry["sha256"] if entry else None
        return [os.path.basename(path), storage.size(path), sha256]

    shards = [[describe(*x) for x in records.entries()] for records in sets]
    return hashlib.sha256(json.dumps(shards).encode()).hexdigest()


@contextlib.contextmanager
def locating_damage(sets: Sequence[Records]) -> Iterator[None]:
    """Context that finds the damaged shard when records cannot be read.

    Raises:
        UserError: names the file, the record and the cause.
    """
    import tensorflow as tf

    from bert.data.records import reader

    try:
        yield
    except (
        tf.errors.DataLossError,
        tf.errors.InvalidArgumentError,
        tf.errors.NotFoundError,
    ):
        for records in sets:
            for path, entry in records.entries():
                _check_shard(path, entry)
                if entry is None:
                    reader.check_records(path, records.schema, _ANY_ID)
        raise


def _check_shard(path: str, entry: dict | None) -> None:
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
