"""Oversized inputs are rejected before they fill the memory."""

import gzip

import pytest

from common import limits
from common.errors import UserError
from data import tables
from data.corpus import documents
from modeling.formats import huggingface
from tasks.squad import examples

BOMB = b"a" * 4099


def rejection(read, path, content):
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read(str(path))
    return str(caught.value).removeprefix(f"{path}")


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(limits, "LONGEST_LINE", 1009)
    monkeypatch.setattr(limits, "LARGEST_JSON", 4001)
    monkeypatch.setattr(limits, "LARGEST_SETTINGS", 4001)
    monkeypatch.setattr(limits, "_AT_ONCE", 101)


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_line_without_an_end_is_rejected(small, tmp_path, pack, scheme):
    path = tmp_path / ("text.gz" if pack is gzip.compress else "text")
    found = rejection(
        lambda path: list(documents.lines(scheme + path)),
        path,
        pack(b"a\n" + BOMB),
    ).removeprefix(f"{scheme}{path}")
    assert (
        found == ":2: a line of more than 1,009 bytes; expected text in lines"
    )
    path.write_bytes(pack(b"b" * 1008 + b"\n" + b"a" * 1009))
    assert len(list(documents.lines(str(path)))) == 2


def test_a_row_without_an_end_is_rejected(small, tmp_path):
    path = tmp_path / "train.jsonl"
    read = lambda path: list(tables._json_objects(path))  # noqa: E731
    content = b'{"text": "a"}\n{"text": "' + BOMB
    found = rejection(read, path, content)
    assert found.startswith(":2: a line of more than 1,009 bytes; ")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_json_that_is_too_large_is_rejected(small, tmp_path, pack):
    found = rejection(
        examples.read_json, tmp_path / "a.json", pack(b"[" + BOMB)
    )
    decompressed = " when decompressed" * (pack is gzip.compress)
    assert found == (
        f": more than 4,001 bytes{decompressed}; expected JSON that fits into "
        "memory; split the file"
    )


def test_a_tokenizer_that_is_too_large_is_rejected(small, tmp_path):
    path = tmp_path / "tokenizer.json"
    found = rejection(huggingface.read_json, path, b'{"a": "' + BOMB)
    assert found.startswith(": more than 4,001 bytes; ")


def test_a_decompression_bomb_is_rejected(monkeypatch, tmp_path):
    """Repetitive text and small files are not decompression bombs."""
    monkeypatch.setattr(limits, "_RATIO_FROM", 1 << 20)
    path = tmp_path / "text.gz"
    found = rejection(
        lambda path: sum(1 for _ in documents.lines(path)),
        path,
        gzip.compress(b"aaaaaaaaaa\n" * 200_003),
    )
    assert ": more than 200 times as large when decompressed, " in found
    path.write_bytes(gzip.compress(b"aaaaaaaaaa\n" * 90_001))
    assert sum(1 for _ in documents.lines(str(path))) == 90_001


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"\0", None),
        (b"\0\n", None),
        (b"\0a", "utf-16be"),
        (b"a\0", "utf-16le"),
        (b"\0\0", None),
    ],
)
def test_one_zero_byte_of_two_is_utf_16(raw, kind):
    if kind is None:
        limits.check_kind(raw, "a.txt")
        return
    with pytest.raises(UserError, match=kind):
        limits.check_kind(raw, "a.txt")
