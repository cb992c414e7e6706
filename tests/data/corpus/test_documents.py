"""Corpora: documents, rejected files, and partitions."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert.common import storage, text_lines
from bert.common.errors import UserError
from bert.data.corpus import documents as corpus


def write(path, content):
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(content)
    return str(path)


def split(document):
    text = document.decode()
    assert text.endswith("\n")
    return text[:-1].split("\n")


@pytest.mark.parametrize("block", [1, 2, 3, 1 << 20])
@pytest.mark.parametrize(
    "content, documents",
    [
        ("a b\nc\n\nd\n", [["a b", "c"], ["d"]]),
        ("a b\nc\n\nd", [["a b", "c"], ["d"]]),
        ("\n\na\n\n \t\n\nb\n\n\n", [["a"], ["b"]]),
        ("a\r\nb\r\n\r\nc\r\n", [["a", "b"], ["c"]]),
        ("\ufeffa\n\n\ufeffb\n", [["a"], ["\ufeffb"]]),
        ("  a \u3000\n\xa0b\n", [["a", "b"]]),
        ("a\u2028b\x85c\x0bd\n", [["a\u2028b\x85c\x0bd"]]),
        ("a\rb\n\nc\n", [["a\rb"], ["c"]]),
        ("a\n\u3000\nb\n", [["a"], ["b"]]),
        ("\n \n", []),
        ("", []),
    ],
)
def test_blank_lines_separate_documents(
    tmp_path, monkeypatch, block, content, documents
):
    monkeypatch.setattr(text_lines, "_BLOCK", block)
    plain = write(tmp_path / "a.txt", content)
    packed = write(tmp_path / "a.gz", gzip.compress(content.encode(), mtime=0))
    for path in (plain, packed):
        assert [split(x) for x in corpus.documents(path)] == documents


def count(files, **limit):
    """The corpus of some files."""
    counts = (corpus.count_documents(path, **limit) for path in files)
    return corpus.Corpus.of(files, counts)


def test_documents_and_bytes_are_counted(tmp_path):
    files = [
        write(tmp_path / "a.txt", "ab\nc\n\n推\n"),
        write(tmp_path / "b.txt", "\n"),
        write(tmp_path / "c.txt", "abcde\n"),
    ]
    found = count(files)
    assert found.files == files
    assert found.sizes.tolist() == [9, 0, 6]
    assert found.documents.tolist() == [2, 0, 1]
    assert (found.num_documents, found.num_bytes) == (3, 15)
    assert found.num_partitions == 1


def test_globs_are_sorted_and_commas_keep_their_order(tmp_path):
    b, a, z = (write(tmp_path / f"{name}.txt", "x") for name in "baz")
    pattern = f"{tmp_path}/[ab].txt"
    assert storage.list_files(pattern, "input_file") == [a, b]
    assert storage.list_files(f"{z},{pattern}", "input_file") == [z, a, b]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"a b\n" * 250_001, 1),
        (b"a\n\n" + b"a b\n" * 250_001, 3),
        (b"a b\n" * 250_001 + b"\nb\n", 1),  # ends within a block
        ("é b\n".encode() * 200_001, 1),  # bytes, not characters
        (b"a\nb\n\n" + b"a" * 1_000_001, 4),
        (b"a\n\n" + b"a b\n" * 600_000 + b"\nb\n", 3),
    ],
)
def test_a_document_that_is_too_long_is_named(tmp_path, content, line):
    path = write(tmp_path / "a.txt", content)
    with pytest.raises(UserError) as error:
        count([path], max_document_mb=1)
    assert str(error.value) == (
        f"{path}:{line}: a document of more than 1 MB begins here; expected "
        "blank lines between documents; add them, or pass a larger "
        "--max_document_mb"
    )
    assert count([path], max_document_mb=3).num_documents >= 1


def test_reading_stops_at_the_longest_line(tmp_path):
    """The size of the file does not matter: its rest is a hole."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"aa")
    with open(path, "r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(UserError, match="a line of more than 33,554,432 byt"):
        count([str(path)], max_document_mb=64)


def test_permutations_are_random():
    """Each number gets each image as often, whatever its neighbour gets."""
    found = np.array(
        [corpus.permute(np.arange(7), 7, f"{i}") for i in range(2100)]
    )
    pairs = np.zeros((7, 7))
    np.add.at(pairs, (found[:, 2], found[:, 3]), 1)
    expected = np.where(np.eye(7), 0, 2100 / 42)
    assert (abs(pairs - expected) <= 5 * np.sqrt(expected)).all()


def sized(documents_per_file, document_bytes=7):
    """A scanned corpus, without its files."""
    files = [f"{i}.txt" for i in range(len(documents_per_file))]
    counts = np.array(documents_per_file)
    return corpus.Corpus(files, counts, counts * document_bytes)


def partitions(found, seed, first=0):
    total = found.num_documents
    return corpus.partitions_of(
        first, total - first, total, found.num_partitions, seed
    )


@given(
    counts=st.lists(st.integers(0, 97), min_size=1, max_size=4).filter(any),
    document_bytes=st.integers(1, 97),
    partition_bytes=st.integers(1, 4000),
    seed=st.integers(-(2**63), 2**63 - 1),
)
def test_documents_are_divided_evenly(
    counts, document_bytes, partition_bytes, seed
):
    """By the size of the text; each partition has two documents or more."""
    total = sum(counts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "PARTITION_BYTES", partition_bytes)
        found = sized(counts, document_bytes)
        numbers = partitions(found, seed)
        others = partitions(found, seed, counts[0])

        # Up to 64 partitions are smaller, by a factor of 4 at most.
        least = max(1, partition_bytes // 4, found.num_bytes // 64)
        size = min(partition_bytes, least)
        by_size = -(-found.num_bytes // size)
        expected = max(1, min(by_size, total // 2))
        assert by_size <= corpus.most_partitions(found.num_bytes)
        assert found.num_partitions == expected

    each = np.bincount(numbers, minlength=expected)
    assert len(each) == expected and sum(each) == total
    assert each.max() - each.min() <= 1
    assert each.min() >= min(2, total)
    assert others.tolist() == numbers[counts[0] :].tolist()


def test_partitions_of_a_large_corpus_are_larger():
    """64 of them, until they have 4 MB."""
    for megabytes, count in [(1, 1), (9, 9), (100, 64), (256, 64), (400, 100)]:
        assert sized([1000], megabytes * 1000).num_partitions == count


def test_seeds_separate_neighbouring_documents(monkeypatch):
    monkeypatch.setattr(corpus, "PARTITION_BYTES", 101)
    first = partitions(sized([97, 11]), seed=3).tolist()
    assert first == partitions(sized([11, 97]), seed=3).tolist()
    assert first != partitions(sized([97, 11]), seed=5).tolist()
    assert len(set(first[:11])) > 3


@pytest.mark.parametrize("held_bytes", [1, 97, 64_000_000])
def test_partitions_have_every_document_once(tmp_path, monkeypatch, held_bytes):
    monkeypatch.setattr(corpus, "PARTITION_BYTES", 4 * 131)
    monkeypatch.setattr(corpus, "_HELD_BYTES", held_bytes)
    texts = [
        "".join(f"{file} {i}\n推 {i}\r\n\n" for i in range(count))
        for file, count in enumerate((0, 29, 1, 0, 23, 0))
    ]
    files = [write(tmp_path / f"{i}.txt", text) for i, text in enumerate(texts)]
    found = count(files)
    assert found.num_bytes == 594  # 5 partitions of 131
    assert found.num_partitions == 5
    batches = found.batches
    assert [x for batch in batches for x in batch.files] == files
    assert len(batches) == {1: 4, 97: 3}.get(held_bytes, 1)
    parts = [[], [], [], [], []]
    for batch in batches:
        for portions in corpus.distribute(batch, 7):
            for part, content in zip(parts, portions, strict=True):
                part += corpus.split_partition(content)
    everything = [split(d) for path in files for d in corpus.documents(path)]
    assert len(everything) == 53
    expected = [[] for _ in range(5)]
    for number, document in zip(partitions(found, 7), everything, strict=True):
        expected[number].append(document)
    assert parts == expected


@pytest.mark.parametrize("content", ["a\n\nb\n\nc\n", "a\n"])
def test_a_file_that_changes_between_two_readings(tmp_path, content):
    path = tmp_path / "a.txt"
    (batch,) = count([write(path, "a\n\nb\n")]).batches
    write(path, content)
    with pytest.raises(UserError, match="has changed while it was read"):
        list(corpus.distribute(batch, 7))
