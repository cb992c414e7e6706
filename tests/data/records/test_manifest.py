"""The manifests beside the shards: who wrote them, and are they whole."""

import hashlib
import json
import os
import pathlib

import pytest

from bert.common.errors import UserError
from bert.data.records import manifest, shards, writer
from bert.data.records.shard_check import ShardEntry
from bert.data.records.shards import Records, Shard, fingerprint
from bert.data.text.tokenizer import Tokenizer
from tests.helpers import pretraining_files

VOCAB = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\r\n"
RUN = {
    "vocab_size": 2,
    "max_seq_length": 13,
    "max_predictions_per_seq": 3,
    "do_lower_case": True,
    "strip_accents": True,
}


def entry(content):
    return ShardEntry(3, len(content), hashlib.sha256(content).hexdigest())


def write(folder, contents, vocab=VOCAB, **run):
    """Writes shards, name -> content, and their manifest."""
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    vocab_file = folder.parent / "vocab.txt"
    vocab_file.write_bytes(vocab)
    writer.write_manifest(
        str(folder),
        {name: entry(content) for name, content in contents.items()},
        Tokenizer(str(vocab_file)),
        {**RUN, **run},
    )


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "records"
    folder.mkdir()
    return folder


def of(folder, name):
    return shards.open_shards([str(folder / name)])[0].manifest


def test_a_run_is_read_back(folder):
    names = ["a.tfrecord-00000-of-00002", "a.tfrecord-00001-of-00002"]
    contents = dict(zip(names, [b"xyz", b"uvwxy"]))
    write(folder, contents, statistics={"tokens": 97})
    sha256 = hashlib.sha256(VOCAB).hexdigest()
    expected = manifest.Manifest(
        format=2,
        **RUN,
        statistics={"tokens": 97},
        vocab_file=str(folder / f"vocab-{sha256[:8]}.txt"),
        vocab_sha256=sha256,
        shards={name: entry(text) for name, text in contents.items()},
        path=str(folder / "_a.manifest.json"),
    )
    assert [of(folder, name) for name in names] == [expected] * 2
    assert sorted(os.listdir(folder)) == [
        "_a.manifest.json",
        *names,
        f"vocab-{sha256[:8]}.txt",
    ]


# Other programs read it too, and earlier runs wrote the same.
TEXT = """{
  "format": 2,
  "vocab_size": 2,
  "max_seq_length": 13,
  "max_predictions_per_seq": 3,
  "do_lower_case": true,
  "strip_accents": true,
  "statistics": {
    "tokens": 97
  },
  "vocab_file": "vocab-%(vocab).8s.txt",
  "vocab_sha256": "%(vocab)s",
  "shards": {
    "a.tfrecord": {
      "records": 3,
      "bytes": 2,
      "sha256": "%(shard)s"
    }
  }
}
"""


def test_the_text_of_a_manifest(folder):
    write(folder, {"a.tfrecord": b"xy"}, statistics={"tokens": 97})
    hashes = {
        "vocab": hashlib.sha256(VOCAB).hexdigest(),
        "shard": hashlib.sha256(b"xy").hexdigest(),
    }
    assert (folder / "_a.manifest.json").read_text() == TEXT % hashes


@pytest.mark.parametrize(
    ("shard", "name"),
    [
        ("a.tfrecord", "_a.manifest.json"),
        ("x/a.tfrecord-00003-of-00017", "_a.manifest.json"),
        ("gs://b/a-0-of-2", "_a.manifest.json"),
        ("a-of-2", "_a-of-2.manifest.json"),
        ("a_0.15", "_a_0.15.manifest.json"),
        ("a_0.15.tf_record", "_a_0.15.manifest.json"),
    ],
)
def test_names(shard, name):
    assert manifest.name_for(shard) == name


def test_a_manifest_of_the_earlier_name_is_read(folder):
    write(folder, {"a.tfrecord": b"xyz"}, random_seed=3)
    earlier = folder / "a.tfrecord.manifest.json"
    (folder / "_a.manifest.json").rename(earlier)
    assert of(folder, "a.tfrecord").path == str(earlier)
    write(folder, {"a.tfrecord": b"uvw"}, random_seed=5)
    assert of(folder, "a.tfrecord").random_seed == 5


def test_a_relative_path_finds_its_manifest(folder, monkeypatch):
    write(folder, {"a.tfrecord": b"xyz"})
    monkeypatch.chdir(folder)
    (shard,) = shards.open_shards(["a.tfrecord"])
    run = shard.manifest
    assert run == of(folder, "a.tfrecord")
    assert os.path.isfile(run.vocab_file)


def test_the_manifest_of_its_name_counts(folder):
    write(folder, {"a.tfrecord": b"xyz", "b.tfrecord": b"uv"}, random_seed=3)
    write(folder, {"b.tfrecord": b"12"}, random_seed=5)
    assert of(folder, "a.tfrecord").random_seed == 3
    assert of(folder, "b.tfrecord").random_seed == 5
    write(folder, {"a.tfrecord": b"xyz"}, random_seed=7)
    assert of(folder, "a.tfrecord").random_seed == 7


def test_text_that_no_manifest_lists_is_rejected(folder):
    write(folder, {"a.tfrecord": b"xyz"})
    for content in (b"", b"\x1f\x8b\x08 a gzip file"):
        (folder / "old.tfrecord").write_bytes(content)
        assert of(folder, "old.tfrecord") is None
    (folder / "old.tfrecord").write_text("One sentence a line.\n")
    with pytest.raises(UserError, match="old.tfrecord: is text, not TFRecor"):
        of(folder, "old.tfrecord")


@pytest.mark.parametrize("name", ["manifest.json", "app.manifest.json"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"name": "an app", "icons": []}',
        '{"format": "zip", "files": {}}',
        "\xff",
        "[" * 100_000,
    ],
)
def test_a_foreign_manifest_is_left_alone(folder, name, text):
    content = text.encode("latin-1")
    (folder / name).write_bytes(content)
    write(folder, {"a.tfrecord": b"xyz"})
    assert len(manifest.read_folder(str(folder))) == 1
    assert (folder / name).read_bytes() == content


def changed(path, **values):
    value = json.loads(path.read_text())
    for where, new in values.items():
        *parents, last = where.split("__")
        inner = value
        for name in parents:
            inner = inner[name]
        if new is ...:
            del inner[last]
        else:
            inner[last] = new
    path.write_text(json.dumps(value))


BAD = [
    ({"format": 1}, "Invalid enum value 1 - at `$.format`"),
    ({"strip_accents": ...}, "Object missing required field `strip_accents`"),
    ({"vocab_file": "../x"}, "Expected `str` matching regex"),
    ({"vocab_sha256": "0" * 63}, "Expected `str` matching regex"),
    ({"vocab_size": 0}, "Expected `int` >= 1 - at `$.vocab_size`"),
    ({"shards": {"../a": {}}}, "Expected `str` matching regex"),
    ({"shards": {"a": {}}}, "Object missing required field `records`"),
    ({"shares": {"unknown": "x"}}, "Expected `int | float`, got `str`"),
]


@pytest.mark.parametrize(("values", "message"), BAD)
def test_wrong_values_are_one_line(folder, values, message):
    write(folder, {"a.tfrecord": b"xyz"})
    path = folder / "_a.manifest.json"
    changed(path, **values)
    with pytest.raises(UserError) as error:
        of(folder, "a.tfrecord")
    line = str(error.value)
    assert line.startswith(f"{path}: {message}")
    assert line.endswith("; copy it again, or make the records again")


def test_the_smallest_values_are_accepted(folder):
    smallest = {"short_seq_prob": 0, "max_ngram": 1, "random_seed": -(10**400)}
    write(folder, {"a.tfrecord": b"xyz"}, **smallest)
    run = of(folder, "a.tfrecord")
    assert {name: run.settings[name] for name in smallest} == smallest


def test_a_vocabulary_is_compared_before_it_is_used(folder):
    write(folder, {"a.tfrecord": b"xyz"})
    run = of(folder, "a.tfrecord")
    path = pathlib.Path(run.tokenizer().path)
    assert path.read_bytes() == VOCAB
    path.write_bytes(VOCAB.replace(b"the", b"eht"))
    with pytest.raises(UserError) as error:
        run.tokenizer()
    assert str(error.value).startswith(f"{path}: sha256 ")
    assert f"as in {folder}/_a.manifest.json" in str(error.value)
    path.unlink()
    with pytest.raises(
        UserError, match="such file.*expected a vocabulary file"
    ):
        run.tokenizer()


def test_globs_skip_manifests_and_vocabularies(folder):
    write(folder, {"a.tfrecord": b"xyz"})
    (folder / "manifest.json").write_text("{}")
    assert len(list(folder.glob("vocab-*.txt"))) == 1
    for pattern in (f"{folder}/*", f"{folder}/a*", f"{folder}/a.tfrecord"):
        files = shards.list_files(pattern, "input_file")
        assert files == [f"{folder}/a.tfrecord"]


def test_the_fingerprint_is_that_of_names_sizes_and_hashes(tmp_path):
    def of(name, content, sha256):
        path = tmp_path / name
        path.write_bytes(content)
        listed = pretraining_files.manifest(
            shards={name: ShardEntry(3, len(content), sha256)}
        )
        return fingerprint([Records((Shard(str(path), listed),), {})])

    prints = {of("a", b"x", "0"), of("b", b"x", "0"), of("a", b"xx", "0")}
    assert len(prints | {of("a", b"x", "1")}) == 4
    assert of("a", b"x", "0") in prints
