"""Random pre-training records, and readers of what is trained on them."""

import hashlib
import pathlib

import numpy as np
import tensorflow as tf

from bert.data import feature_names
from bert.data.records import encoding, frames, writer
from bert.data.records.manifest import Manifest
from bert.data.records.shard_check import ShardEntry
from bert.data.text.tokenizer import Tokenizer
from tests.helpers import run_folders, small
from tests.helpers.small import P, S

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [
    f"word{i}" for i in range(small.V - 5)
]


def manifest(**changed) -> Manifest:
    """A manifest without shards."""
    lengths = {"max_seq_length": S, "max_predictions_per_seq": P}
    casing = {"do_lower_case": True, "strip_accents": True}
    vocab = {
        "vocab_file": "vocab.txt",
        "vocab_sha256": "7",
        "vocab_size": small.V,
    }
    values = {**lengths, **casing, **vocab, "shards": {}, **changed}
    return Manifest(format=2, **values)


def write_shard(path, records) -> ShardEntry:
    """Writes serialized records; returns their entry in a manifest."""
    content = frames.join(records)
    pathlib.Path(path).write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    return ShardEntry(len(records), len(content), sha256)


def write_records(path, rows, seed=1, listed=True, length=S, **changed):
    """A shard of random records, in a manifest or not.

    Args:
        path: of the shard.
        rows: number of records.
        seed: of the numbers.
        listed: whether a manifest is written.
        length: tokens and padding of an example, at least S.
        changed: settings in the manifest.
    """
    path.parent.mkdir(exist_ok=True)
    batch = small.batch(seed, rows)
    schema = feature_names.pretraining_schema(S, P)
    arrays = {
        name: batch[name].astype("i8" if kind == "int64" else "f4")
        for name, (kind, _) in schema.items()
    }
    for name in feature_names.ENCODER_INPUTS:
        arrays[name] = np.pad(arrays[name], [(0, 0), (0, length - S)])
    entry = write_shard(path, encoding.encode_examples(arrays))
    if listed:
        vocab = path.parent / "vocab.txt"
        vocab.write_text("".join(f"{token}\n" for token in VOCABULARY))
        settings = {
            "max_seq_length": length,
            "max_predictions_per_seq": P,
            "vocab_size": small.V,
            "do_lower_case": False,
            "strip_accents": changed.get("do_lower_case", False),
            **changed,
        }
        shards = {path.name: entry}
        tokenizer = Tokenizer(str(vocab))
        writer.write_manifest(str(path.parent), shards, tokenizer, settings)


def tensors(prefix) -> dict[str, np.ndarray]:
    """Names and values of a checkpoint."""
    reader = tf.train.load_checkpoint(str(prefix))
    names = reader.get_variable_to_shape_map()
    return {name: reader.get_tensor(name) for name in names}


def losses(output) -> list[str]:
    """Losses of the reports on training, as hex."""
    points = run_folders.points(output)
    return [x["loss"].hex() for x in points if x["kind"] == "train"]


def assert_same_bits(ours, theirs):
    assert set(ours) == set(theirs)
    for name, value in ours.items():
        assert value.tobytes() == theirs[name].tobytes(), name
