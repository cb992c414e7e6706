"""Warnings about a corpus; tests/scripts/test_prepare_corpus.py has more."""

import pytest

from data.corpus import corpus_writer, preparation


@pytest.mark.parametrize(
    ("shares", "warned"),
    [
        ((1, 1), []),
        ((0.05, 0.03), []),
        ((0.1, 0.19), []),
        (
            (0.05, 0.008),
            ["5.0% of the documents are held out, but 0.8% of the text: few"],
        ),
        (
            (0.1, 0.4),
            ["10.0% of the documents are held out, but 40.0% of the text"],
        ),
    ],
)
def test_documents_with_most_of_the_text_are_reported(shares, warned):
    counts = corpus_writer.CorpusCounts()
    counts.documents = 170
    found = preparation.warnings(counts, *shares)
    assert len(found) == len(warned)
    assert all(map(str.startswith, found, warned))
