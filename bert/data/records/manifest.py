"""The manifests beside TFRecord shards, one for each run.

folder/
    wiki.tfrecord-00000-of-00002    records of `tf.train.Example`
    wiki.tfrecord-00001-of-00002
    _wiki.manifest.json             settings, counts, sizes and hashes
    vocab-3a2f90c1.txt              the vocabulary they were made with

A manifest is named after the first shard, so that no `wiki*` or `*.tfrecord*`
matches it. Any other name that ends in `.manifest.json` is read too, but files
of other programs are ignored. If several manifests list a shard, the one of its
name counts, or else the one with its size.
"""

import glob
import os
import re
from typing import Annotated, Literal, Required, TypedDict

import msgspec

from bert.common import storage
from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.common.formats.json_files import Name, Sha256
from bert.data.records import shard_check
from bert.data.text.tokenizer import Tokenizer

_SUFFIX = ".manifest.json"

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Size = Annotated[int, msgspec.Meta(ge=1)]
_Share = Annotated[float, msgspec.Meta(ge=0)]
_Numbers = dict[str, _Count | _Share]


class _Shard(TypedDict):
    records: _Count
    bytes: _Count
    sha256: Sha256


class Run(TypedDict, total=False):
    """Settings, statistics and shards of a run."""

    format: Required[Literal[2]]
    vocab_file: Required[Name]
    vocab_sha256: Required[Sha256]
    vocab_size: Required[_Size]
    max_seq_length: Required[_Size]
    max_predictions_per_seq: Required[_Size]
    do_lower_case: Required[bool]
    strip_accents: Required[bool]
    shards: Required[dict[Name, _Shard]]
    short_seq_prob: _Share
    masked_lm_prob: _Share
    smoothing: _Share
    dupe_factor: _Size
    max_ngram: _Size
    random_seed: int
    do_whole_word_mask: bool
    word_boundaries: bool
    pack_sequences: bool
    max_sequences_per_row: _Size
    statistics: _Numbers
    shares: _Numbers


_BESIDE = re.compile(r"(^|[/.])manifest\.json$|(^|/)vocab-[0-9a-f]{8}\.txt$")


def name_for(shard: str) -> str:
    """Returns the name of the manifest of a run with this first shard."""
    return f"_{run_name(shard)}{_SUFFIX}"


def run_name(shard: str) -> str:
    """Returns the name of a shard without its number and extension."""
    name = os.path.basename(shard)
    return re.sub(r"(\.[A-Za-z_]+)?(-\d+-of-\d+)?$", "", name)


def list_shards(patterns: str, flag: str) -> list[str]:
    """Lists the files of paths and globs, as `storage.list_files`.

    Manifests and vocabularies are skipped: `folder/*` matches them too.
    """
    found = storage.list_files(patterns, flag)
    return [x for x in found if not _BESIDE.search(x)] or found


def manifests_of(paths: list[str]) -> list[dict | None]:
    """Manifests of the runs that wrote some shards.

    Args:
        paths: TFRecord files.

    Returns:
        for each of them, settings and statistics, `vocab_file` as a path,
        `manifest`, the path of the manifest, and `shards`, name -> entry; None
        if no manifest lists the file.

    Raises:
        UserError: a manifest is damaged, the size of a file differs, or the
            first file without a manifest is text.
    """
    runs = listed_runs(paths)
    if None in runs:
        path = paths[runs.index(None)]
        with storage.open_file(path, "rb") as file:
            if shard_check.is_text(file.read(8)):
                fix = "make TFRecords of it with create_pretraining_data.py"
                raise UserError("is text, not TFRecords", path=path, fix=fix)
    for path, run in zip(paths, runs):
        if run is None:
            continue
        expected = run["shards"][os.path.basename(path)]["bytes"]
        found = storage.size(path)
        if expected != found:
            raise UserError(
                f"has {found} bytes",
                path=path,
                expected=f"{expected} ({os.path.basename(run['manifest'])})",
                fix="the file is damaged: make the records again",
            )
    return runs


def listed_runs(paths: list[str]) -> list[dict | None]:
    """Like `manifests_of`, for files that may be damaged."""
    keys = [os.path.split(storage.absolute(path)) for path in paths]
    listed = {
        (folder, name): run
        for folder in dict.fromkeys(folder for folder, _ in keys)
        for run in read_runs(folder)
        for name in run["shards"]
    }
    return [listed.get(key) for key in keys]


def read_runs(folder: str) -> list[dict]:
    """Runs that the manifests of a folder list; each shard is in one of them.

    Raises:
        UserError: a manifest is damaged.
    """
    inside = folder if storage.is_remote(folder) else glob.escape(folder)
    paths = storage.glob(os.path.join(inside, f"*{_SUFFIX}"))
    runs = list(filter(None, map(read_manifest, paths)))
    listing: dict[str, list[dict]] = {}
    for run in runs:
        for name in run["shards"]:
            listing.setdefault(name, []).append(run)
    for name, several in listing.items():
        if len(several) > 1:
            kept = _choose(os.path.join(folder, name), several)
            for run in several:
                if run is not kept:
                    del run["shards"][name]
    return [run for run in runs if run["shards"]]


def read_manifest(path: str) -> dict | None:
    """Reads the run of a manifest; None if it is not ours.

    Raises:
        UserError: it is damaged.
    """
    content = json_files.read_bytes(path, json_files.LARGEST)
    if not (b'"format"' in content and b'"shards"' in content):
        return None
    fix = "copy it again, or make the records again"
    with json_files.reported(path, "a whole manifest", fix):
        run = json_files.decode(content, Run)
    vocab_file = os.path.join(os.path.dirname(path), run["vocab_file"])
    return {**run, "vocab_file": vocab_file, "manifest": path}


def tokenizer_of(run: dict) -> Tokenizer:
    """Reads the vocabulary beside the records; compares it with the manifest.

    Args:
        run: from `manifests_of` or `listed_runs`.

    Raises:
        UserError: it is missing, or another one.
    """
    path = run["vocab_file"]
    tokenizer = Tokenizer(path, run["do_lower_case"], run["strip_accents"])
    if tokenizer.sha256 != run["vocab_sha256"]:
        raise UserError(
            f"sha256 {tokenizer.sha256[:8]}",
            path=path,
            expected=f"{run['vocab_sha256'][:8]}, as in {run['manifest']}: "
            "the vocabulary that the records were made with",
            fix="copy it again, or make the records again",
        )
    return tokenizer


def _choose(path: str, runs: list[dict]) -> dict:
    """The run that wrote a shard, of several that list it."""
    name = os.path.basename(path)
    for run in runs:
        if os.path.basename(run["manifest"]) == name_for(name):
            return run
    size = storage.size(path) if storage.exists(path) else None
    matching = [run for run in runs if run["shards"][name]["bytes"] == size]
    return (matching or runs)[0]
