"""Manifests of TFRecord shards, one for each run that wrote shards.

folder/
    wiki.tfrecord-00000-of-00002    records of `tf.train.Example`
    wiki.tfrecord-00001-of-00002
    _wiki.manifest.json             settings, counts, sizes and hashes
    vocab-3a2f90c1.txt              the vocabulary of the records

A manifest is named after the first shard, so that `wiki*` and `*.tfrecord*` do
not match it. Other names that end in `.manifest.json` are read too, but files
of other programs are ignored. If several manifests list a shard, the manifest
with its name is used.
"""

import glob
import os
import re
from typing import Annotated, Literal

import msgspec

from bert.common import storage
from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.common.formats.json_files import Name, Sha256
from bert.data.records.shard_check import ShardEntry
from bert.data.text.tokenizer import Tokenizer

_SUFFIX = ".manifest.json"

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Size = Annotated[int, msgspec.Meta(ge=1)]
_Share = Annotated[float, msgspec.Meta(ge=0)]
_Numbers = dict[str, _Count | _Share]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Settings, statistics and shards of a run.

    Attributes:
        path: str. Path of the manifest; not in the file.
        vocab_file: str. Path of the vocabulary; the file has only its name.
        shards: dict. Name of a shard -> its entry.
    """

    format: Literal[2]
    vocab_file: Name
    vocab_sha256: Sha256
    vocab_size: _Size
    max_seq_length: _Size
    max_predictions_per_seq: _Size
    do_lower_case: bool
    strip_accents: bool
    shards: dict[Name, ShardEntry]
    path: str = ""

    # These fields describe the run and may be missing in the file.
    short_seq_prob: _Share | None = None
    masked_lm_prob: _Share | None = None
    smoothing: _Share | None = None
    dupe_factor: _Size | None = None
    max_ngram: _Size | None = None
    random_seed: int | None = None
    do_whole_word_mask: bool | None = None
    word_boundaries: bool = False
    pack_sequences: bool = False
    max_sequences_per_row: _Size | None = None
    statistics: _Numbers = {}
    shares: _Numbers = {}

    @property
    def settings(self) -> dict:
        """The known values, by name."""
        values = msgspec.structs.asdict(self)
        return {name: x for name, x in values.items() if x is not None}

    def tokenizer(self) -> Tokenizer:
        """Reads the vocabulary beside the records and compares its hash.

        Raises:
            UserError: The vocabulary is missing or a different one.
        """
        path = self.vocab_file
        tokenizer = Tokenizer(path, self.do_lower_case, self.strip_accents)
        if tokenizer.sha256 != self.vocab_sha256:
            raise UserError(
                f"sha256 {tokenizer.sha256[:8]}",
                path=path,
                expected=f"{self.vocab_sha256[:8]}, as in {self.path}: "
                "the vocabulary of the records",
                fix="copy it again, or make the records again",
            )
        return tokenizer


def name_for(shard: str) -> str:
    """Returns the name of the manifest of a run, given its first shard."""
    return f"_{run_name(shard)}{_SUFFIX}"


def run_name(shard: str) -> str:
    """Returns the name of a shard without its number and extension."""
    name = os.path.basename(shard)
    return re.sub(r"(\.[A-Za-z_]+)?(-\d+-of-\d+)?$", "", name)


def read_folder(folder: str) -> list[Manifest]:
    """Reads the manifests of a folder.

    Raises:
        UserError: A manifest is damaged.
    """
    inside = folder if storage.is_remote(folder) else glob.escape(folder)
    paths = storage.glob(os.path.join(inside, f"*{_SUFFIX}"))
    return list(filter(None, map(read, paths)))


def read(path: str) -> Manifest | None:
    """Reads a manifest; returns None for a file of another program.

    Raises:
        UserError: The manifest is damaged.
    """
    content = json_files.read_bytes(path, json_files.LARGEST)
    if not (b'"format"' in content and b'"shards"' in content):
        return None
    fix = "copy it again, or make the records again"
    with json_files.reported(path, "a complete manifest", fix):
        manifest = json_files.decode(content, Manifest)

    vocab_file = os.path.join(os.path.dirname(path), manifest.vocab_file)
    return msgspec.structs.replace(manifest, path=path, vocab_file=vocab_file)
