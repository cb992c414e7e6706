"""Writes TFRecord files and their manifest atomically."""

import json
import os

import msgspec

from bert.common.atomic import write_whole
from bert.data.records import manifest
from bert.data.records.shard_check import ShardEntry
from bert.data.text.tokenizer import Tokenizer


def write_manifest(
    folder: str,
    shards: dict[str, ShardEntry],
    tokenizer: Tokenizer,
    run: dict,
) -> None:
    """Writes the manifest of a run, and a copy of its vocabulary.

    Args:
        folder: str. Folder of the shards.
        shards: dict. File name -> ShardEntry.
        tokenizer: Tokenizer. Its vocabulary is copied to the folder, with its
            hash in the name.
        run: dict. Settings and statistics, as JSON values.
    """
    name = f"vocab-{tokenizer.sha256[:8]}.txt"
    listed = {
        "format": 2,
        **run,
        "vocab_file": name,
        "vocab_sha256": tokenizer.sha256,
        "shards": {k: msgspec.structs.asdict(x) for k, x in shards.items()},
    }
    text = json.dumps(listed, indent=2) + "\n"
    path = os.path.join(folder, manifest.name_for(next(iter(shards))))

    # Parallel runs may write the same vocabulary.
    copy = os.path.join(folder, name)
    write_whole(copy, tokenizer.content, is_shared=True)
    write_whole(path, text)


def run_names(paths: list[str]) -> list[str]:
    """Returns the names of the runs that write these files."""
    return sorted(set(map(manifest.run_name, paths)))
