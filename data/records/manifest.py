"""The manifest beside TFRecord shards.

folder/
    wiki.tfrecord-00000-of-00002    records of `tf.train.Example`
    wiki.tfrecord-00001-of-00002
    vocab-3a2f90c1.txt              the vocabulary they were made with
    manifest.json                   settings, counts, sizes and hashes
"""

import hashlib
import json
import os

from common import storage
from common.errors import UserError
from common.storage import write_whole

MANIFEST = "manifest.json"


def write_manifest(
    folder: str, shards: dict[str, dict], vocab_file: str, run: dict
) -> None:
    """Adds a run to the folder's manifest and keeps its vocabulary.

    Args:
        folder: folder of the shards.
        shards: from `ShardWriter.finish`; they replace shards of the same name
            that an earlier run listed.
        vocab_file: copied to the folder under a name made of its hash.
        run: settings and statistics, as JSON values.
    """
    with storage.open_file(vocab_file, "rb") as file:
        content = file.read()
    digest = hashlib.sha256(content).hexdigest()
    name = f"vocab-{digest[:8]}.txt"
    write_whole(os.path.join(folder, name), content)
    path = os.path.join(folder, MANIFEST)
    runs = read_runs(folder)
    for earlier in runs:
        for shard in shards:
            earlier["shards"].pop(shard, None)
    runs = [earlier for earlier in runs if earlier["shards"]]
    runs.append(
        {**run, "vocab_file": name, "vocab_sha256": digest, "shards": shards}
    )
    text = json.dumps({"format": 1, "runs": runs}, indent=2) + "\n"
    write_whole(path, text)


def manifest_of(path: str) -> dict | None:
    """Manifest entry of the run that wrote a shard.

    Args:
        path: a TFRecord file.

    Returns:
        Settings and statistics, `vocab_file` as a path, `shards` with the
        entry of this file; None if no manifest lists the file.

    Raises:
        UserError: the manifest is damaged, or the size of the file differs.
    """
    run = listed_run(path)
    if run is None:
        return None
    entry = run["shards"][os.path.basename(path)]
    expected, found = entry["bytes"], storage.size(path)
    if expected != found:
        raise UserError(
            f"has {found} bytes",
            path=path,
            expected=f"{expected} ({MANIFEST})",
            fix="the file is damaged: make the records again",
        )
    return run


def listed_run(path: str) -> dict | None:
    """Like `manifest_of`, for a file that may be damaged."""
    folder, name = os.path.split(storage.absolute(path))
    for run in read_runs(folder):
        if name in run["shards"]:
            vocab_file = os.path.join(folder, run["vocab_file"])
            return {**run, "vocab_file": vocab_file}
    return None


def read_runs(folder: str) -> list[dict]:
    """Runs that the manifest of a folder lists; none without a manifest.

    Raises:
        UserError: the manifest is damaged.
    """
    path = os.path.join(folder, MANIFEST)
    if not storage.exists(path):
        return []
    try:
        with storage.open_file(path, "rb") as file:
            manifest = json.loads(file.read())
        if manifest["format"] != 1:
            raise ValueError(f"format {manifest['format']}, expected 1")
        for run in manifest["runs"]:
            for shard in run["shards"].values():
                int(shard["bytes"])
            # Older manifests: accents were stripped with lower-casing.
            if "do_lower_case" in run:
                run.setdefault("strip_accents", run["do_lower_case"])
        return manifest["runs"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"not a manifest: {error!r}",
            path=path,
            fix="delete it and make the records again",
        ) from None
