"""The manifest beside the shards: who wrote them, and are they whole."""

import hashlib
import json
import os

import pytest

from common.errors import UserError
from data.records import manifest


def entry(content):
    return {
        "records": 3,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def write(folder, shards, vocab=b"[PAD]\nthe\n", **run):
    """Writes shards, name -> content, and their manifest."""
    for name, content in shards.items():
        (folder / name).write_bytes(content)
    vocab_file = folder.parent / "vocab.txt"
    vocab_file.write_bytes(vocab)
    manifest.write_manifest(
        str(folder),
        {name: entry(content) for name, content in shards.items()},
        str(vocab_file),
        run,
    )


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "records"
    folder.mkdir()
    return folder


def of(folder, name):
    return manifest.manifest_of(str(folder / name))


def test_accents_went_with_the_case_before_there_was_a_setting(folder):
    write(folder, {"a": b"x"}, do_lower_case=True)
    write(folder, {"b": b"x"}, do_lower_case=True, strip_accents=False)
    assert of(folder, "a")["strip_accents"] is True
    assert of(folder, "b")["strip_accents"] is False


def test_a_run_is_read_back(folder):
    shards = {"a.tfrecord-0": b"xyz", "a.tfrecord-1": b"uvwxy"}
    write(folder, shards, max_seq_length=13, statistics={"tokens": 97})
    sha256 = hashlib.sha256(b"[PAD]\nthe\n").hexdigest()
    expected = {
        "max_seq_length": 13,
        "statistics": {"tokens": 97},
        "vocab_file": str(folder / f"vocab-{sha256[:8]}.txt"),
        "vocab_sha256": sha256,
        "shards": {name: entry(text) for name, text in shards.items()},
    }
    assert of(folder, "a.tfrecord-0") == expected
    assert of(folder, "a.tfrecord-1") == expected


def test_the_vocabulary_is_kept_under_its_hash(folder):
    write(folder, {"a.tfrecord": b"xyz"}, vocab=b"abc")
    path = folder / "vocab-ba7816bf.txt"
    assert of(folder, "a.tfrecord")["vocab_file"] == str(path)
    assert path.read_bytes() == b"abc"


def test_a_relative_path_finds_its_manifest(folder, monkeypatch):
    write(folder, {"a.tfrecord": b"xyz"})
    monkeypatch.chdir(folder)
    run = manifest.manifest_of("a.tfrecord")
    assert run == of(folder, "a.tfrecord")
    assert os.path.isfile(run["vocab_file"])


def test_the_folder_holds_nothing_that_looks_like_a_shard(folder):
    write(folder, {"a.tfrecord": b"xyz"}, vocab=b"abc")
    assert sorted(os.listdir(folder)) == [
        "a.tfrecord",
        "manifest.json",
        "vocab-ba7816bf.txt",
    ]


def test_a_later_run_adds_its_shards(folder):
    write(folder, {"a.tfrecord": b"xyz"}, vocab=b"abc", random_seed=3)
    write(folder, {"b.tfrecord": b"uv"}, vocab=b"abcd", random_seed=5)
    first, second = of(folder, "a.tfrecord"), of(folder, "b.tfrecord")
    assert (first["random_seed"], second["random_seed"]) == (3, 5)
    assert list(first["shards"]) == ["a.tfrecord"]
    assert list(second["shards"]) == ["b.tfrecord"]
    assert os.path.basename(first["vocab_file"]) == "vocab-ba7816bf.txt"
    assert os.path.basename(second["vocab_file"]) == "vocab-88d4266f.txt"


def test_a_shard_of_the_same_name_is_replaced(folder):
    write(folder, {"a.tfrecord": b"xyz", "b.tfrecord": b"uv"}, random_seed=3)
    write(folder, {"a.tfrecord": b"12345"}, random_seed=5)
    assert of(folder, "a.tfrecord")["random_seed"] == 5
    assert of(folder, "a.tfrecord")["shards"] == {"a.tfrecord": entry(b"12345")}
    assert of(folder, "b.tfrecord")["shards"] == {"b.tfrecord": entry(b"uv")}
    write(folder, {"b.tfrecord": b"123"}, random_seed=7)
    runs = json.loads((folder / "manifest.json").read_text())["runs"]
    assert [run["random_seed"] for run in runs] == [5, 7]


def test_files_that_no_manifest_lists_have_none(folder):
    (folder / "old.tfrecord").write_bytes(b"xyz")
    assert of(folder, "old.tfrecord") is None
    write(folder, {"a.tfrecord": b"xyz"})
    assert of(folder, "old.tfrecord") is None


@pytest.mark.parametrize("content", [b"", b"xy", b"xyzz"])
def test_a_file_of_another_length_is_rejected(folder, content):
    write(folder, {"a.tfrecord": b"xyz"})
    (folder / "a.tfrecord").write_bytes(content)
    with pytest.raises(UserError) as error:
        of(folder, "a.tfrecord")
    assert str(error.value) == (
        f"{folder}/a.tfrecord: has {len(content)} bytes; expected 3 "
        "(manifest.json); the file is damaged: make the records again"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"format": 1, "runs": [',
        "[]",
        "null",
        "{}",
        '{"format": 2, "runs": []}',
        '{"format": 1}',
        '{"format": 1, "runs": [{}]}',
        "\xff",
    ],
)
def test_a_damaged_manifest_is_rejected(folder, text):
    write(folder, {"a.tfrecord": b"xyz"})
    path = folder / "manifest.json"
    path.write_bytes(text.encode("latin-1"))
    for function in (
        lambda: of(folder, "a.tfrecord"),
        lambda: write(folder, {"b.tfrecord": b"uv"}),
    ):
        with pytest.raises(UserError) as error:
            function()
        assert str(error.value).startswith(f"{path}: not a manifest: ")
