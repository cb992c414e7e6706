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


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz", "csv.txt"])
def test_tables_are_reported(tmp_path, capsys, name):
    path = tmp_path / name
    path.write_text("text;label\n")
    settings = preparation.Settings(
        input_file=str(path), output_file=str(tmp_path / "corpus.txt")
    )
    assert preparation.list_inputs(settings) == [str(path)]
    warned = f"warning: tables are read as text, with all columns: {path}; "
    assert capsys.readouterr().err.startswith(warned) == (name != "csv.txt")
