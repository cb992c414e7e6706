"""Sets of pre-training shards that are read together."""

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Sequence
from typing import Self

from bert.common import storage
from bert.common.errors import UserError
from bert.data import feature_names
from bert.data.records import manifest, shard_check
from bert.data.records.manifest import Manifest, name_for
from bert.data.records.shard_check import ShardEntry

_LENGTHS = ("max_seq_length", "max_predictions_per_seq")
_BESIDE = re.compile(r"(^|[/.])manifest\.json$|(^|/)vocab-[0-9a-f]{8}\.txt$")


@dataclasses.dataclass(frozen=True)
class Shard:
    """A TFRecord file.

    Attributes:
        path: str. Path of the file.
        manifest: Manifest or None. The manifest that lists the file.
    """

    path: str
    manifest: Manifest | None = None

    @property
    def entry(self) -> ShardEntry | None:
        """The file's entry in the manifest, or None."""
        if self.manifest is None:
            return None
        return self.manifest.shards[os.path.basename(self.path)]

    @property
    def settings(self) -> dict:
        """Settings of the run that wrote the file; {} if unknown."""
        return self.manifest.settings if self.manifest else {}


@dataclasses.dataclass(frozen=True)
class Records:
    """Shards that are read together, with equal lengths.

    Attributes:
        shards: tuple of Shard. The files, in order.
        schema: dict. Their features, see `feature_names.pretraining_schema`.
    """

    shards: tuple[Shard, ...]
    schema: dict[str, tuple[str, int]]

    @classmethod
    def open(
        cls,
        patterns: str,
        flag: str = "input_file",
        lengths: dict[str, int] | None = None,
    ) -> Self:
        """Lists shards and reads their manifests.

        Args:
            patterns: str. Paths and globs, separated by commas.
            flag: str. Name of the flag with the patterns, for messages.
                Default: "input_file".
            lengths: dict or None. Required `max_seq_length` and
                `max_predictions_per_seq`. Default: the first file's lengths.

        Raises:
            UserError: A file is missing, is text, has a different size than
                in its manifest, or other lengths than the first file.
        """
        shards = open_shards(list_files(patterns, flag))
        listed = [(x.path, x.settings) for x in shards if x.manifest]
        given = [("the flags", lengths)] if lengths else []
        check_alike([*given, *listed], _LENGTHS, "omit the flag")

        # All manifests have the same lengths, so the first is used.
        if listed:
            _, first = listed[0]
        else:  # TensorFlow reads the first record
            from bert.data.records import reader

            first = {**reader.read_lengths(shards[0].path), **(lengths or {})}
        lengths = {name: first.get(name, 0) for name in _LENGTHS}
        if not all(lengths.values()):
            raise UserError(
                "no records for pre-training",
                path=shards[0].path,
                expected="TFRecords of create_pretraining_data.py",
            )

        schema = feature_names.pretraining_schema(**lengths)
        if first.get("pack_sequences"):
            most = first["max_sequences_per_row"]
            schema = feature_names.packed_schema(
                **lengths, max_sequences_per_row=most
            )
        return cls(tuple(shards), schema)

    @property
    def files(self) -> list[str]:
        """Paths of the shards."""
        return [shard.path for shard in self.shards]

    @property
    def manifests(self) -> list[Manifest]:
        """Manifests of the shards, without shards that have no manifest."""
        return [shard.manifest for shard in self.shards if shard.manifest]

    @property
    def is_packed(self) -> bool:
        """Whether a row may have several instances."""
        return feature_names.SEQUENCE_IDS in self.schema

    @property
    def max_seq_length(self) -> int:
        """S, the number of tokens per sequence."""
        return self.schema[feature_names.INPUT_IDS][1]

    @property
    def max_predictions_per_seq(self) -> int:
        """P, the maximum number of masked positions per sequence."""
        return self.schema[feature_names.MASKED_LM_POSITIONS][1]


def list_files(patterns: str, flag: str) -> list[str]:
    """Lists the files of paths and globs with `storage.list_files`.

    Manifests and vocabularies, which `folder/*` matches too, are skipped.
    """
    # If only these files match, they are kept, so that an error names a file.
    paths = storage.list_files(patterns, flag)
    return [x for x in paths if not _BESIDE.search(x)] or paths


def open_shards(paths: list[str]) -> list[Shard]:
    """Finds the manifests of files, and compares the sizes.

    Raises:
        UserError: A manifest is damaged, the size of a file differs, or the
            first file without a manifest is text.
    """
    shards = find_shards(paths)

    # Only the first is opened, as opening thousands would take long.
    unlisted = [shard.path for shard in shards if shard.manifest is None]
    if unlisted:
        with storage.open_file(unlisted[0], "rb") as file:
            if shard_check.is_text(file.read(8)):
                fix = "make TFRecords of it with create_pretraining_data.py"
                path = unlisted[0]
                raise UserError("is text, not TFRecords", path=path, fix=fix)

    # Comparing sizes is fast and finds incomplete copies.
    for shard in shards:
        if shard.manifest is None or shard.entry is None:
            continue
        expected, size = shard.entry.bytes, storage.size(shard.path)
        if size != expected:
            name = os.path.basename(shard.manifest.path)
            raise UserError(
                f"has {size} bytes",
                path=shard.path,
                expected=f"{expected} ({name})",
                fix="the file is damaged: make the records again",
            )
    return shards


def find_shards(paths: list[str]) -> list[Shard]:
    """Finds the manifests of files; the files may be damaged.

    Raises:
        UserError: A manifest is damaged.
    """
    # Absolute paths, so that each folder is read only once.
    keys = [os.path.split(storage.absolute(path)) for path in paths]
    runs = [
        (folder, name, run)
        for folder in dict.fromkeys(folder for folder, _ in keys)
        for run in manifest.read_folder(folder)
        for name in run.shards
    ]
    # The manifest with the name of the shard comes last and overrides others.
    runs.sort(key=lambda x: os.path.split(x[2].path)[1] == name_for(x[1]))
    listed = {(folder, name): run for folder, name, run in runs}
    return [Shard(path, listed.get(key)) for path, key in zip(paths, keys)]


def check_alike(
    settings: Sequence[tuple[str, dict]], names: Sequence[str], fix: str
) -> None:
    """Checks that runs have the same settings.

    Args:
        settings: sequence of (str, dict). Path of a file, for messages, and
            the settings of its run.
        names: sequence of str. Names of the settings to compare. A setting
            that is missing in a run is skipped.
        fix: str. Advice for the message.

    Raises:
        UserError: A value differs; names the two files.
    """
    for path, values in settings[1:]:
        first_path, first = settings[0]
        for name in names:
            if name in values and values[name] != first.get(name, values[name]):
                raise UserError(
                    f"{name} is {values[name]}",
                    path=path,
                    expected=f"{first[name]}, as in {first_path}",
                    fix=fix,
                )


def fingerprint(sets: Sequence[Records]) -> str:
    """Returns a sha256 of the names, sizes and hashes of the shards."""

    # Without folders, as records may be moved between two runs.
    def describe(shard: Shard) -> list:
        sha256 = shard.entry.sha256 if shard.entry else None
        name = os.path.basename(shard.path)
        return [name, storage.size(shard.path), sha256]

    described = [list(map(describe, records.shards)) for records in sets]
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()
