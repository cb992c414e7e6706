"""The sample of a corpus from which its records are forecast."""

import pytest

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
