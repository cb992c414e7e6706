"""Warnings about a corpus; tests/scripts/test_prepare_corpus.py has more."""

import pytest

from bert.data.corpus import corpus_writer, preparation


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


@pytest.mark.parametrize(
    ("name", "start", "warned"),
    [
        # As in the files of WikiExtractor, whose names have no ending.
        ("wiki_00", '{"id": "0"', "JSON or markup is read as plain text"),
        ("wiki_00", '<doc id="12">', "JSON or markup is read as plain text"),
        ("wiki.jsonl", '{"id": "0"', None),
        ("a.csv", "text;label", "tables are read as text, with all columns"),
        ("a.tsv.gz", "text;label", "tables are read as text, with all columns"),
        ("csv.txt", "text;label", None),
    ],
)
def test_files_that_are_no_text_are_reported(
    tmp_path, capsys, name, start, warned
):
    path = tmp_path / name
    path.write_text(f"{start}\n")
    settings = preparation.Settings(
        input_file=str(path), output_file=str(tmp_path / "corpus.txt")
    )
    assert preparation.list_inputs(settings) == [str(path)]
    err = capsys.readouterr().err
    assert err.startswith(f"warning: {warned}: {path}; " if warned else "")
    assert bool(err) == bool(warned)


def test_files_of_all_folders_are_found_but_those_of_links(tmp_path):
    """Binary files are not text, except Parquet."""
    root = tmp_path / "root"
    for name in ("x.txt", "a/y.txt", "a/b/z.txt", "../real/w.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("One.\n")
    for name in ("v.parquet", "w.png"):
        (root / name).write_bytes(b"PAR1\0")
    (root / "link").symlink_to(tmp_path / "real")
    for given, names in (
        (f"{root}/**/*.txt", ["a/b/z.txt", "a/y.txt", "link/w.txt", "x.txt"]),
        (root, ["a/b/z.txt", "a/y.txt", "v.parquet", "x.txt"]),
    ):
        settings = preparation.Settings(
            input_file=str(given), output_file=str(tmp_path / "corpus.txt")
        )
        found = preparation.list_inputs(settings)
        assert sorted(found) == [f"{root}/{name}" for name in names]
