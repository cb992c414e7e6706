"""prepare_corpus from raw text to a corpus, and the errors."""

import gzip
import json
import os
import time

import pytest

import prepare_corpus
from bert.data.corpus import corpus_writer, raw_text
from bert.data.corpus import documents as corpus

BOOK = "The cat sleeps. It\nis old.\n\nThe dog\tsees it.\n"
ARTICLES = [
    {"id": 2, "text": "Stones\nA stone is hard. It is old."},
    {"id": 3, "text": " \n"},
    {"id": 5, "text": "Fish swim! Do birds?"},
]
CORPUS = (
    "Stones\nA stone is hard.\nIt is old.\n\nFish swim!\nDo birds?\n\n"
    "The cat sleeps.\nIt is old.\nThe dog sees it.\n"
)


@pytest.fixture
def raw(tmp_path):
    """A folder with an article file and a book, and others to be ignored."""
    folder = tmp_path / "raw"
    (folder / "books" / ".git").mkdir(parents=True)
    (folder / "books" / ".git" / "config").write_text("Hidden.")
    (folder / ".hidden.txt").write_text("Hidden.")
    lines = "".join(json.dumps(article) + "\n" for article in ARTICLES)
    with gzip.open(folder / "articles.jsonl.gz", "wt") as file:
        file.write(lines)
    (folder / "books" / "book.txt").write_text(BOOK)
    return folder


@pytest.fixture
def prepare(run_script, tmp_path):
    """Runs the script; returns (path of the output, out, err)."""

    def run(input_file, name="corpus.txt", code=0, **named):
        named = {
            "input_file": input_file,
            "output_file": tmp_path / name,
            "num_processes": 1,
            **named,
        }
        found, out, err = run_script(prepare_corpus, **named)
        assert found == code, err
        return tmp_path / name, out, err

    return run


def test_a_folder_becomes_a_corpus(prepare, raw, tmp_path):
    output, out, err = prepare(raw)
    assert output.read_text() == CORPUS
    assert out == f"wrote 8 sentences of 3 documents (0.0 MB) to {output}\n"
    assert err.splitlines() == [
        "reading 2 files",
        "note: 1 of 4 documents have no text and are dropped",
    ]
    lines = [d.count(b"\n") for d in corpus.documents(str(output))]
    assert lines == [3, 2, 3]
    assert sorted(tmp_path.iterdir()) == [output, raw]


def test_binary_files_of_a_folder_are_skipped(prepare, tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "index.dat").write_bytes(b"a line\n\0\0\0\2\n")
    (folder / "sheet.xls").write_bytes(b"\xd0\xcf" + bytes(17))
    with gzip.open(folder / "text.txt.gz", "wb") as file:
        file.write(b"A cat.\nA dog.\n")
    output, _, err = prepare(folder)
    assert output.read_text() == "A cat.\nA dog.\n"
    assert err.splitlines()[:2] == [
        f"note: skipped binary files: {folder}/index.dat and 1 more",
        "reading 1 file",
    ]
    (folder / "utf-16.txt").write_bytes("A cat.".encode("utf-16"))
    _, _, err = prepare(folder, code=2)
    assert "utf-16.txt:1: " in err.splitlines()[-1]
    (folder / "text.txt.gz").unlink()
    (folder / "utf-16.txt").unlink()
    _, _, err = prepare(folder, code=2)
    assert f"{folder}: no text file in this folder" in err


def test_processes_change_no_byte(prepare, tmp_path, monkeypatch):
    monkeypatch.setattr(raw_text, "_CHUNK", 97)
    for number in range(23):
        text = f"Number {number} is here. It is old!\n\nSo? " * (number % 7)
        (tmp_path / f"{number}.txt").write_text(text)
    contents = set()
    for processes in (1, 2, 3):
        monkeypatch.setattr(time, "time", lambda: 7e5 * processes)  # noqa: B023
        output, out, _ = prepare(
            f"{tmp_path}/*.txt",
            f"corpus-{processes}.gz",
            num_processes=processes,
        )
        assert "of 19 documents" in out
        contents.add(output.read_bytes())
    assert len(contents) == 1
    lines = gzip.decompress(contents.pop()).decode().splitlines()
    assert lines.count("") == 18
    assert lines.count("Number 20 is here.") == 6


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("One. Two.", "warning: one document; "),
        (
            "One.\n\nTwo.\n\nA cat. A dog.",
            "warning: 2 of 3 documents have one sente",
        ),
    ],
)
def test_warnings(prepare, tmp_path, content, message):
    path = tmp_path / "raw.txt"
    path.write_text(content)
    boundary = "blank_line" if "\n" in content else "file"
    _, _, err = prepare(path, document_boundary=boundary)
    assert message in err
    assert err.count("warning") == 1


def write_articles(folder, count):
    path = folder / "articles.jsonl"
    lines = [json.dumps({"text": f"Text {i}. End."}) for i in range(count)]
    path.write_text("\n".join(lines))
    return path


def test_documents_are_held_out(prepare, tmp_path):
    articles = write_articles(tmp_path, 211)
    whole, _, _ = prepare(articles, "whole.txt")
    found = {}
    for seed in (1, 1, 2):
        output, out, _ = prepare(
            articles,
            f"corpus{len(found)}.txt.gz",
            held_out=0.1,
            random_seed=seed,
        )
        held_out = tmp_path / f"corpus{len(found)}_held_out.txt.gz"
        assert [x.rpartition(" to ")[2] for x in out.splitlines()] == [
            str(output),
            str(held_out),
        ]
        found[output.name] = tuple(
            gzip.decompress(path.read_bytes()).decode().split("\n\n")
            for path in (output, held_out)
        )
    first, again, other = found.values()
    assert first == again != other
    for train, held_out in (first, other):
        assert 10 < len(held_out) < 35
        parts = [*train, *held_out]
        assert sorted(x.strip() for x in parts) == sorted(
            x.strip() for x in whole.read_text().split("\n\n")
        )


def test_a_share_without_a_document_is_rejected(prepare, tmp_path):
    articles = write_articles(tmp_path, 3)
    _, _, err = prepare(articles, code=2, held_out=1e-6)
    assert "--held_out=1e-06: 0 of 3 documents; expected" in err
    assert list(tmp_path.iterdir()) == [articles]


def test_a_second_run_into_the_same_file_ends(tmp_path, prepare):
    """While the first one writes, which goes on as if it were alone."""
    output, path = tmp_path / "corpus.txt", tmp_path / "raw.txt"
    path.write_text("Three. Four.\n")
    with corpus_writer.open_text(str(output)) as write:
        write("One.\n")
        _, out, err = prepare(path, code=2)
        write("Two.\n")
    assert out == ""
    assert f"error: {output}: in use by process {os.getpid()} on " in err
    assert output.read_text() == "One.\nTwo.\n"
    prepare(path)
    assert output.read_text() == "Three.\nFour.\n"
    assert len(os.listdir(tmp_path)) == 2


BAD_LINES = [
    (b'{"text": ', "JSON is incomplete; expected a JSON object"),
    (b'["A."]', "Expected `object`, got `array`"),
    (b'{"body": "A."}', "'text' is not a string: None; expected the text"),
    (b'{"text": 7}', "'text' is not a string: 7"),
    (b'{"text": "\\ud800"}', "JSON has half of a surrogate pair"),
    (b'{"text": "\xff"}', "invalid UTF-8 byte 0xff"),
    (b'{"a": ' + b"[" * 100_000, "JSON is nested too deep"),
]


def write_bad_lines(path):
    """A bad line behind each good one: lines 2, 4, ..."""
    good = [b'{"text": "One. Two."}\n', b'{"text": "A cat. A dog."}\n']
    path.write_bytes(
        b"".join(good[i % 2] + x + b"\n" for i, (x, _) in enumerate(BAD_LINES))
    )
    return path


@pytest.mark.parametrize("processes", [1, 2])
def test_bad_lines_are_dropped_counted_and_reported(
    prepare, tmp_path, processes
):
    path = write_bad_lines(tmp_path / "a.jsonl")
    plain = tmp_path / "b.txt"
    plain.write_bytes(b"Fish\nswim. Bi\xffrds fly.\nStones are hard.\n")
    output, _, err = prepare(
        f"{path},{plain}", num_processes=processes, max_bad_lines=8
    )
    documents = ["One.\nTwo.\n\n", "A cat.\nA dog.\n\n"] * 4
    documents[-1] = "Fish\nStones are hard.\n"
    assert output.read_text() == "".join(documents)
    warnings = err.splitlines()[1:]
    assert len(warnings) == 6
    for number, (line, (_, found)) in enumerate(zip(warnings, BAD_LINES[:5])):
        assert line.startswith(
            f"warning: dropped a line: {path}:{2 * number + 2}: {found}"
        )
    assert warnings[5] == "warning: dropped 8 bad lines (--max_bad_lines=8)"


def test_more_bad_lines_than_are_allowed(prepare, tmp_path):
    path = write_bad_lines(tmp_path / "a.jsonl")
    _, _, err = prepare(path, code=2, max_bad_lines=6)
    lines = err.splitlines()
    assert len(lines) == 7
    assert lines[-1].startswith(f"error: {path}:14: JSON is nested too deep")
    assert lines[-1].endswith("this is bad line 7 (--max_bad_lines=6)")
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_damaged_file_is_no_bad_line(prepare, tmp_path):
    for name, content in (
        ("a.txt.gz", gzip.compress(b"One.", mtime=0)[:-9]),
        ("b.txt", b"One.\rTwo.\rThree.\r"),
    ):
        (tmp_path / name).write_bytes(content)
        _, _, err = prepare(tmp_path / name, code=2, max_bad_lines=97)
        assert f"error: {tmp_path / name}" in err
