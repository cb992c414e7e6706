"""The sample of a corpus from which its records are forecast."""

import gzip
import random

import pytest

from common.errors import UserError
from data.pretraining import forecast


@pytest.mark.parametrize("documents", [7, 211])
def test_a_sample_larger_than_the_corpus_counts_by_its_share(
    tmp_path, monkeypatch, documents
):
    """16 spots in few large documents read some of them several times."""
    monkeypatch.setattr(forecast, "SAMPLE_BYTES", 4000)
    path = tmp_path / "corpus.txt"
    path.write_text(("a line of text\n" * 997 + "\n") * documents)
    sample = forecast._read_sample([str(path)], 64, "key")
    assert sample.corpus.num_bytes == pytest.approx(
        path.stat().st_size, rel=0.01
    )
    found = len(sample.texts) / sample.share
    assert found == pytest.approx(documents, rel=0.1)


def test_a_small_corpus_is_read_whole(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("".join("a b\n" * (i % 83) + "\n" for i in range(7919)))
    sample = forecast._read_sample([str(path)], 64, "key")
    assert sample.share == 1
    assert len(sample.texts) == sum(i % 83 > 0 for i in range(7919))


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_files_of_one_document_each_are_read(tmp_path, monkeypatch, ending):
    """A position in a file of one document has no document after it."""
    monkeypatch.setattr(forecast, "SAMPLE_BYTES", 4000)
    rng, paths, size = random.Random(1), [], 0
    for number in range(3):
        lines = [f"{rng.random()} {rng.random()}\n" for _ in range(997)]
        text = "".join(lines).encode()
        path = tmp_path / f"{number}.txt{ending}"
        path.write_bytes(gzip.compress(text) if ending else text)
        paths.append(str(path))
        size += len(text)
    sample = forecast._read_sample(paths, 64, "key")
    assert {len(text) for text in sample.texts} == {997}
    assert sample.corpus.num_bytes == pytest.approx(size, rel=0.02)


@pytest.mark.parametrize("seed", range(4))
def test_two_documents_stay_two(tmp_path, monkeypatch, seed):
    """The longer one is read several times."""
    monkeypatch.setattr(forecast, "SAMPLE_BYTES", 4000)
    path = tmp_path / "corpus.txt"
    path.write_text("a line\n" * 997 + "\n" + "a line\n" * 4999)
    sample = forecast._read_sample([str(path)], 64, f"{seed}/")
    assert sample.corpus.num_documents == 2


def test_a_mistake_is_reported_with_its_line(tmp_path, monkeypatch):
    """A sample starts anywhere, but lines count from the start of the file."""
    monkeypatch.setattr(forecast, "SAMPLE_BYTES", 4000)
    path = tmp_path / "corpus.txt"
    path.write_bytes(b"a line\n\n" * 997 + b"\xff\n\n" * 997)
    with pytest.raises(UserError, match=rf"^{path}:1995: invalid UTF-8"):
        forecast._read_sample([str(path)], 64, "key")


def test_positions_too_far_in_a_compressed_file_leave_its_beginning(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(forecast, "SAMPLE_BYTES", 4000)
    monkeypatch.setattr(forecast, "_FARTHEST", 0)
    rng, path = random.Random(1), tmp_path / "a.gz"
    lines = [f"{rng.random()} {rng.random()}\n\n" for _ in range(997)]
    path.write_bytes(gzip.compress("".join(lines).encode()))
    sample = forecast._read_sample([str(path)], 64, "key")
    assert len(sample.texts) > 50
