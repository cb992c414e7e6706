"""Paragraphs and sentences of raw text; nothing but white space is lost."""

import pyarrow
import pytest
import sentencex
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from bert.common import processes, progress
from bert.common.errors import UserError
from bert.data.corpus import raw_text

# Text drawn by hypothesis seldom ends a sentence.
FRAGMENTS = st.sampled_from(
    [". ", "! ", "? ", "。", "…", '"', "'", "(", ")", "[1]", "“", "„", "\n"]
    + ["Mr.", "e.g.", "A", "a@b.c", "1. ", "\x85", "\u2028", "\u3000", "\0"]
)
TEXTS = st.lists(FRAGMENTS | st.text(max_size=5), max_size=60).map("".join)


def read(path, **changed):
    arguments = {
        "document_boundary": "file",
        "text_field": "text",
        **changed,
    }
    return list(raw_text.read_paragraphs([str(path)], **arguments))


def without_space(text):
    return "".join(text.split())


@given(
    TEXTS,
    st.sampled_from(raw_text.LANGUAGES),
    st.sampled_from([7, raw_text._PART]),
)
@settings(max_examples=200, deadline=None)
def test_only_white_space_is_lost(text, language, part):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raw_text, "_PART", part)
        sentences = raw_text.split_sentences(text, language)
    assert without_space("".join(sentences)) == without_space(text)

    for sentence in sentences:
        assert sentence == " ".join(sentence.split())
        assert sentence.splitlines() == [sentence]


def test_sentences_of_a_paragraph():
    text = "Mr. Smith\twent\u2028home.\x85 He slept!\n\nDid he? Yes"
    assert raw_text.split_sentences(text, "en") == [
        *("Mr. Smith went home.", "He slept!", "Did he?", "Yes")
    ]


def test_languages_have_rules_of_their_own():
    text = "Das gilt evtl. Morgen."
    assert raw_text.split_sentences(text, "de") == [text]
    assert len(raw_text.split_sentences(text, "en")) == 2
    assert "zh" in raw_text.LANGUAGES
    text = "\u4ed6\u8d70\u4e86\u3002\u771f\u7684\uff1f"
    assert raw_text.split_sentences(text, "zh") == [text[:4], text[4:]]


def test_parts_end_where_sentences_end(monkeypatch):
    text = "The cat sees the dog. " * 53
    whole = raw_text.split_sentences(text, "en")
    monkeypatch.setattr(raw_text, "_PART", 101)
    assert raw_text.split_sentences(text, "en") == whole
    assert len(whole) == 53


def test_long_text_without_an_end_is_split_between_words():
    words = "words " * 50_000
    sentences = raw_text.split_sentences(words, "en")
    assert [len(sentence) for sentence in sentences] == [
        *(99_995, 99_995, 99_995, 11),
    ]
    assert " ".join(sentences) == words.strip()


def test_a_part_is_short(monkeypatch):
    """The time of sentencex grows with the square of its input."""
    sizes, segment = [], sentencex.segment

    def measured(language, text):
        sizes.append(len(text))
        return segment(language, text)

    monkeypatch.setattr(sentencex, "segment", measured)
    text = "He said “no. " * 30_000
    assert len(raw_text.split_sentences(text, "en")) == 30_000
    assert max(sizes) <= raw_text._PART
    assert len(sizes) == 4


def test_paragraphs_of_plain_text(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text("\ufeffOne is\nwrapped. \n \n\n\nTwo.\r\n\r\nThree.")
    assert read(path) == [
        *((0, ""), (0, "One is wrapped."), (0, "Two."), (0, "Three.")),
    ]
    assert read(path, document_boundary="blank_line") == [
        *((0, "One is wrapped."), (1, "Two."), (2, "Three.")),
    ]


def test_long_paragraphs_come_in_parts_of_one_document(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_text, "_PART", 11)
    path = tmp_path / "book.txt"
    path.write_text("Seven.\nEight.\nNine.\n\nTen.\n")
    assert read(path, document_boundary="blank_line") == [
        *((0, "Seven. Eight."), (0, "Nine."), (1, "Ten.")),
    ]


def test_paragraphs_of_json_lines(tmp_path):
    path = tmp_path / "articles.jsonl"
    path.write_text(
        '{"body": "Head\\nOne.\\r\\n\\nTwo."}\n\n{"id": 5, "body": ""}\n'
    )
    assert read(path, text_field="body") == [
        *((0, "Head"), (0, "One.\r"), (0, ""), (0, "Two."), (1, "")),
    ]


def test_files_are_numbered_through(tmp_path, monkeypatch):
    for name, content in (("a", "A."), ("b", ""), ("c", "C.\n\nD.")):
        (tmp_path / name).write_text(content)
    files = [str(tmp_path / name) for name in "abc"]
    read_bytes = []
    monkeypatch.setattr(
        progress.Progress,
        "update",
        lambda self, megabytes: read_bytes.append(round(megabytes * 1e6)),
    )
    for boundary, documents in (
        ("file", [0, 0, 1, 2, 2, 2]),
        ("blank_line", [0, 1, 2]),
    ):
        found = raw_text.read_paragraphs(files, boundary, "text")
        assert [document for document, _ in found] == documents
    assert read_bytes == 2 * [2, 2, 2, 8, 8]


@pytest.mark.parametrize(
    ("text", "lines", "sentences"),
    [("One. Two.", "One.\nTwo.\n", 2), ("", "", 0)],
)
def test_chunks_in_flight_are_bounded(monkeypatch, text, lines, sentences):
    """Memory does not grow with the corpus."""
    monkeypatch.setattr(raw_text, "_CHUNK", 1)
    drawn = 0

    def paragraphs():
        nonlocal drawn
        for drawn in range(97):
            yield drawn, text

    ahead = []
    split = raw_text.split_all(paragraphs(), "en", 2)
    for done, found in enumerate(split):
        assert found == (done, lines, sentences)
        ahead.append(drawn - done)
    assert len(ahead) == 97
    assert max(ahead) < 2 * processes.AHEAD


def test_rows_without_a_text_are_bad_lines_too(tmp_path):
    table = pyarrow.table({"text": ["One.", None, "Two."]})
    parquet.write_table(table, tmp_path / "a.parquet")
    lines = ['{"text": "One."}', '{"text": null}', '{"text": "Two."}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    for name in ("a.parquet", "a.jsonl"):
        path, bad = str(tmp_path / name), []
        found = read(path, on_bad=bad.append)
        assert found == [(0, "One."), (1, "Two.")]
        assert [str(x).startswith(f"{path}:2: ") for x in bad] == [True]
        with pytest.raises(UserError, match=f"{name}:2: "):
            read(path)
