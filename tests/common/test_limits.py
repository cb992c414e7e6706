"""Oversized inputs are rejected before they fill the memory."""

import gzip
import os

import pytest

from checks.run import Settings
from common import limits
from common.errors import UserError
from data import tables
from data.corpus import documents
from data.text import vocabulary
from tasks.squad import examples, metrics

BOMB = b"a" * 4099


def rejection(read, path, content):
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read(str(path))
    return str(caught.value).removeprefix(f"{path}")


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(limits, "LONGEST_LINE", 1009)


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_line_without_an_end_is_rejected(small, tmp_path, pack, scheme):
    path = tmp_path / ("text.gz" if pack is gzip.compress else "text")
    found = rejection(
        lambda path: list(documents.lines(scheme + path)),
        path,
        pack(b"a\n" + BOMB),
    ).removeprefix(f"{scheme}{path}")
    assert found == (
        ":2: a line of more than 1,009 bytes; expected text in lines; break it "
        "into shorter ones, for example with `fold -s`"
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
def test_the_megabytes_of_squad_are_a_flag(tmp_path, capsys, pack):
    path = tmp_path / "a.json"
    content = pack(b'["' + b"a" * 1_000_000 + b'"]')
    for read in (
        lambda path: examples.read(path, max_json_mb=1),
        lambda path: examples.read_for(path, "x", examples.SPANS, False, 1),
    ):
        assert rejection(read, path, content) == (
            ": more than 1,000,000 bytes; split the file, or pass a larger "
            "--max_json_mb"
        )
    path.write_text("{}")
    assert metrics.main(["a", str(path), str(path), "--max_json_mb=0"]) == 2
    assert ": more than 0 bytes" in capsys.readouterr().err


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
    "read",
    [
        lambda path: list(documents.documents(path)),
        lambda path: list(documents.lines(path)),
        lambda path: list(tables.rows(path, [0], header=False)),
        vocabulary.read_vocabulary,
        lambda path: Settings(vocab_file=path).check(),
    ],
)
def test_a_pipe_is_rejected_before_it_is_opened(tmp_path, read):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(UserError) as error:
        read(str(path))
    assert str(error.value) == f"{path}: is a pipe or device; expected a file"


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"\0", None),
        (b"\0\n", None),
        (b"\0a", "utf-16be"),
        (b"a\0", "utf-16le"),
        (b"\0\0", None),
        (b"a\0b", None),
        (b"a\0b\n", None),
        (b"\0a b", None),
        (b"a\0b\0\n", "utf-16le"),
        (b"\0a\0\n", "utf-16be"),
    ],
)
def test_every_second_byte_of_utf_16_is_zero(raw, kind):
    if kind is None:
        limits.check_kind(raw, "a.txt")
        return
    with pytest.raises(UserError, match=kind):
        limits.check_kind(raw, "a.txt")
