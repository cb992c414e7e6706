"""Corpora: documents, rejected files, and partitions."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from common import storage
from common.errors import UserError
from data.corpus import documents as corpus


def write(path, content):
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(content)
    return str(path)


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
def test_blank_lines_separate_documents(tmp_path, content, documents):
    plain = write(tmp_path / "a.txt", content)
    packed = write(tmp_path / "a.gz", gzip.compress(content.encode(), mtime=0))
    assert list(corpus.documents(plain)) == documents
    assert list(corpus.documents(packed)) == documents


def test_scan_counts_documents_and_bytes(tmp_path):
    files = [
        write(tmp_path / "a.txt", "ab\nc\n\n推\n"),
        write(tmp_path / "b.txt", "\n"),
        write(tmp_path / "c.txt", "abcde\n"),
    ]
    found = corpus.scan(files)
    assert found.files == files
    assert found.document_bytes.tolist() == [5, 4, 6]
    assert found.documents_per_file.tolist() == [2, 0, 1]
    assert found.num_partitions == 1


@pytest.mark.parametrize(
    "content, message",
    [
        (b"a\nb \xc0\n", ":2: invalid UTF-8 byte 0xc0 at column 3; convert"),
        (b"\xff\xfea\x00", ":1: invalid UTF-8 byte 0xff at column 1; conv"),
        (b"a\n\xc3\n", ":2: invalid UTF-8 byte 0xc3 at column 1; convert"),
        (b"a\n\n\xed\xa0\x80", ":3: invalid UTF-8 byte 0xed at column 1; "),
        (b"a\rb\r\rc\r", ":1: line ends are lone carriage returns; expec"),
        (b"a\rb\rc", ":1: line ends are lone carriage returns; expected "),
    ],
)
def test_bad_bytes_name_file_and_line(tmp_path, content, message):
    good = write(tmp_path / "a.txt", "a\n")
    bad = write(tmp_path / "b.txt", content)
    with pytest.raises(UserError) as error:
        corpus.scan([good, bad])
    assert str(error.value).startswith(bad + message)


@pytest.mark.parametrize(
    "content",
    [
        b"plain text",
        gzip.compress(b"a\n" * 997, mtime=0)[:-9],
        gzip.compress(b"a\n" * 997, mtime=0)[:20] + b"\xff" * 20,
    ],
)
def test_damaged_gzip_names_the_file(tmp_path, content):
    path = write(tmp_path / "a.gz", content)
    with pytest.raises(UserError) as error:
        corpus.scan([path])
    assert str(error.value).startswith(f"{path}: cannot be read: ")


def test_missing_file_is_a_user_error(tmp_path):
    with pytest.raises(UserError, match="none.txt: cannot be read: "):
        corpus.scan([str(tmp_path / "none.txt")])


def test_a_corpus_without_documents_is_rejected(tmp_path):
    files = [
        write(tmp_path / "a.txt", ""),
        write(tmp_path / "b.txt", "\n\n \n"),
    ]
    with pytest.raises(UserError) as error:
        corpus.scan(files)
    assert str(error.value) == (
        f"{files[0]},{files[1]}: no document; expected one sentence per line, "
        "blank lines between documents"
    )


def test_globs_are_sorted_and_commas_keep_their_order(tmp_path):
    b, a, z = (write(tmp_path / f"{name}.txt", "x") for name in "baz")
    pattern = f"{tmp_path}/[ab].txt"
    assert storage.list_files(pattern, "input_file") == [a, b]
    assert storage.list_files(f"{z},{pattern}", "input_file") == [z, a, b]


@pytest.mark.parametrize(
    "pattern, message",
    [
        ("{0}/no*.txt", "--input_file='{0}/no*.txt' matches no file; check"),
        ("{0}/a.txt,", "--input_file='' matches no file; check the path"),
        ("{0}", "{0}: --input_file is a folder; expected files; pass"),
        ("{0}/*", "{0}/folder: --input_file is a folder; expected files"),
    ],
)
def test_patterns_without_files_are_rejected(tmp_path, pattern, message):
    write(tmp_path / "a.txt", "x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError) as error:
        storage.list_files(pattern.format(tmp_path), "input_file")
    assert str(error.value).startswith(message.format(tmp_path))


def sized(documents_per_file, document_bytes=7):
    """A scanned corpus, without its files."""
    files = [f"{i}.txt" for i in range(len(documents_per_file))]
    sizes = np.full(sum(documents_per_file), document_bytes)
    return corpus.Corpus(files, sizes, np.array(documents_per_file))


@pytest.mark.parametrize(
    "documents, partitions",
    [
        ([1], 1),
        ([2], 1),
        ([2, 1], 1),
        ([4], 2),
        ([5], 2),
        ([8], 4),
        ([3, 20], 11),
    ],
)
def test_partitions_have_at_least_two_documents(
    monkeypatch, documents, partitions
):
    monkeypatch.setattr(corpus, "PARTITION_BYTES", 1)
    small = sized(documents)
    assert small.num_partitions == partitions
    counts = np.bincount(small.partitions(seed=3), minlength=partitions)
    assert len(counts) == partitions
    assert counts.min() >= min(2, sum(documents))
    assert counts.max() <= 3


@pytest.mark.parametrize(
    "partition_bytes, partitions",
    [(1, 50), (14, 50), (77, 10), (79, 9), (707, 1)],
)
def test_the_text_decides_the_number_of_partitions(
    monkeypatch, partition_bytes, partitions
):
    monkeypatch.setattr(corpus, "PARTITION_BYTES", partition_bytes)
    assert sized([101]).document_bytes.sum() == 707
    assert sized([101]).num_partitions == partitions


def test_partitions_depend_on_seed_and_corpus_only(monkeypatch):
    monkeypatch.setattr(corpus, "PARTITION_BYTES", 101)
    first = sized([97, 11]).partitions(seed=3)
    assert first.tolist() == sized([97, 11]).partitions(seed=3).tolist()
    assert first.tolist() != sized([97, 11]).partitions(seed=5).tolist()
    assert first.tolist() != sized([11, 97]).partitions(seed=3).tolist()
    # Neighbouring documents are separated.
    assert len(set(first[:11].tolist())) > 3


def test_a_large_partition_size_makes_one_partition():
    assert sized([97, 11]).partitions(seed=3).tolist() == [0] * 108


@pytest.mark.parametrize("flush_bytes", [1, 97, 64_000_000])
def test_partitions_have_every_document_once(
    tmp_path, monkeypatch, flush_bytes
):
    monkeypatch.setattr(corpus, "PARTITION_BYTES", 131)
    monkeypatch.setattr(corpus, "_FLUSH_BYTES", flush_bytes)
    texts = [
        "".join(f"{file} {i}\n推 {i}\r\n\n" for i in range(count))
        for file, count in enumerate((29, 1, 0, 23))
    ]
    files = [write(tmp_path / f"{i}.txt", text) for i, text in enumerate(texts)]
    found = corpus.scan(files)
    folder = tmp_path / "partitions"
    folder.mkdir()
    paths = corpus.write_partitions(found, seed=7, folder=str(folder))
    assert found.document_bytes.sum() == 594  # 5 partitions of 131
    everything = [d for path in files for d in corpus.documents(path)]
    expected = [[] for _ in range(found.num_partitions)]
    for number, document in zip(
        found.partitions(seed=7), everything, strict=True
    ):
        expected[number].append(document)
    assert len(everything) == 53
    assert found.num_partitions == 5
    assert [Path(path).parent for path in paths] == [folder] * 5
    assert [list(corpus.documents(path)) for path in paths] == expected
