"""Lines of text files: numbers, limits, and an error for each wrong file."""

import gzip
import io
import os
import pathlib
import pickle
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert.common import text_lines
from bert.common.errors import UserError


@pytest.fixture(params=["text", "text.gz"])
def write(request, tmp_path, monkeypatch):
    """Writes a file, plain or compressed; returns its path."""
    monkeypatch.setattr(text_lines, "LONGEST_LINE", 1009)

    def write_file(content):
        path = tmp_path / request.param
        is_packed = path.suffix == ".gz"
        path.write_bytes(gzip.compress(content) if is_packed else content)
        return str(path)

    return write_file


def test_lines_have_numbers_and_ends(write):
    content = (
        b"\xef\xbb\xbfa\rb\r\n\n \xe2\x80\xa8\r" + b"b" * 1000 + b"\n\xf0\x9d"
    )
    bad, positions = [], []
    path = write(content + b"\n" + b"c\n" * 996 + b"d")
    found = dict(text_lines.lines(path, positions.append, bad.append))
    assert [found.pop(x) for x in range(1, 5)] == [
        *("a\rb\r\n", "\n", f" \u2028\r{'b' * 1000}\n", "\n"),
    ]
    assert (found.pop(1001), set(found.values())) == ("d", {"c\n"})
    assert [str(x) for x in bad] == [
        f"{path}:4: invalid UTF-8 byte 0xf0 at column 1; convert the file to "
        "UTF-8"
    ]
    (position,) = positions
    assert os.path.getsize(path) - position in (0, 1)  # the last line


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\nb \xc0\n", "2: invalid UTF-8 byte 0xc0 at column 3; convert the"),
        (b"\xef\xbb\xbfa\xe9\n", "1: invalid UTF-8 byte 0xe9 at column 2; "),
        (b"a\n\xc3\nb", "2: invalid UTF-8 byte 0xc3 at column 1; "),
        (b"a\n\n\xed\xa0\x80", "3: invalid UTF-8 byte 0xed at column 1; "),
        (b"a\rb\r\rc\r", "1: line ends are lone carriage returns; expected n"),
        (b"a\rb\rc", "1: line ends are lone carriage returns; expected newl"),
        (
            b"b" * 1008 + b"\n" + b"b" * 1009 + b"\n" + b"b" * 1010,
            "2: a line of more than 1,009 bytes; expected text in lines; "
            "break it into shorter ones, for example with `fold -s`",
        ),
        ("a\n".encode("utf-16"), "1: is UTF-16; expected UTF-8; convert the f"),
        (b"\xfe\xff\0a", "1: is UTF-16; expected UTF-8; convert the file"),
        (b"PK\x03\x04\x14\x00", "1: is a zip archive, such as .xlsx or .docx;"),
        (b"\xd0\xcf\x11\xe0", "1: is an Office file, such as .xls or .doc; "),
        (b"%PDF-1.7\n", "1: is a PDF; expected UTF-8; extract its text, for"),
        (b"PAR1\x15", "1: is a Parquet file; expected UTF-8; prepare_corpus"),
        (b"BZh91AY", "1: is compressed with bzip2; expected UTF-8; decompress"),
        (b"\xfd7zXZ\0", "1: is compressed with xz; expected UTF-8; decompress"),
        (b"\x28\xb5\x2f\xfd", "1: is compressed with zstd; expected UTF-8; "),
        (pickle.dumps({"a": 1}), "1: is a pickle; expected UTF-8; pass a text"),
        (b"\x89HDF\r\n\x1a\n", "1: is an HDF5 file; expected UTF-8; pass a te"),
        (gzip.compress(b"a", mtime=0), "1: is compressed with gzip; expected"),
    ],
    ids=str,
)
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_what_is_no_text_is_rejected(write, scheme, content, message):
    path = f"{scheme}{write(content)}"
    with pytest.raises(UserError) as error:
        list(text_lines.lines(path))
    assert str(error.value).startswith(f"{path}:{message}")


@pytest.mark.parametrize(
    ("raw", "is_windows"),
    [
        ("a “café”\n".encode("cp1252"), True),
        ("é caf".encode() + b"\xe9", False),  # damaged UTF-8
        (b"caf\xe9 \x81", False),
    ],
)
def test_how_to_convert_texts_of_windows(raw, is_windows):
    with pytest.raises(UserError) as error:
        text_lines.decode(raw, "a.txt", 1)
    assert ("`iconv -f cp1252 -t utf-8`" in str(error.value)) == is_windows


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"plain text", ": cannot be read: Not a gzipped file"),
        (
            gzip.compress(b"a\n" * 997, mtime=0)[:-9],
            ": cannot be read: Compressed",
        ),
        (
            gzip.compress(b"a\n" * 997, mtime=0)[:20] + b"\xff" * 20,
            ": cannot be read: ",
        ),
        (
            gzip.compress(b"aaaaaaaaaa\n" * 200_003, mtime=0),
            " when decompressed, ",
        ),
        (None, ": No such file or directory; expected a text file"),
        (os.mkdir, ": is a folder; expected a text file"),
        (os.mkfifo, ": is a pipe or device; expected a file"),
    ],
    ids=str,
)
def test_a_file_that_cannot_be_unpacked_or_read(
    tmp_path, monkeypatch, content, message
):
    monkeypatch.setattr(text_lines, "_RATIO_FROM", 1 << 20)
    path = tmp_path / "text.gz"
    if callable(content):
        content(path)
    elif content:
        path.write_bytes(content)
    with pytest.raises(UserError) as error:
        list(text_lines.lines(str(path)))
    assert str(error.value).startswith(f"{path}:")
    assert message in str(error.value)


def test_small_files_are_no_decompression_bombs(tmp_path, monkeypatch):
    monkeypatch.setattr(text_lines, "_RATIO_FROM", 1 << 20)
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"aaaaaaaaaa\n" * 90_001))
    assert sum(1 for _ in text_lines.lines(str(path))) == 90_001


def test_lines_arrive_as_they_come_and_giant_ones_are_cut(monkeypatch):
    class Stream(io.BytesIO):
        parts = [b"on", b"e\ntwo\nth", b"ree", b""]

        def read1(self, _):
            return self.parts.pop(0)

    span = text_lines.Span("stdin")
    blocks = [*text_lines.blocks(span, Stream())]
    assert blocks == [(1, 0, b"one\ntwo\n"), (3, 8, b"three")]
    monkeypatch.setattr(text_lines, "LONGEST_LINE", 13)
    monkeypatch.setattr(text_lines, "_BLOCK", 5)
    stream = io.BytesIO(b"one\n" + b"2" * 97 + b"\nthree\n" + b"4" * 31)
    found = [*text_lines.numbered(span, stream)]
    assert [(line, start, raw[:5]) for line, start, raw in found] == [
        (1, 0, b"one\n"),
        (2, 4, b"22222"),
        (3, 102, b"three"),
        (4, 108, b"44444"),
    ]
    assert [len(raw) > 13 for _, _, raw in found] == [False, True, False, True]
    assert max(len(raw) for _, _, raw in found) < 23


@given(
    content=st.text("aé \n", max_size=40),
    size=st.integers(1, 40),
    is_packed=st.booleans(),
)
def test_the_ranges_of_a_file_have_all_its_lines(content, size, is_packed):
    """Each is the shortest that has so many bytes, except the last."""
    with tempfile.TemporaryDirectory() as folder:
        path, raw = f"{folder}/a{'.gz' * is_packed}", content.encode()
        pathlib.Path(path).write_bytes(gzip.compress(raw) if is_packed else raw)
        expected, divided = [*text_lines.lines(path)], []
        with open(path, "rb") as file:
            opened = gzip.GzipFile(fileobj=file) if is_packed else file
            for span, count in text_lines.divide(path, size):
                found = [*text_lines.lines(path, span=span)]
                assert found == expected[:count]
                assert found == [
                    *text_lines.lines(path, stream=opened, span=span)
                ]
                del expected[:count]
                divided.append([len(line.encode()) for _, line in found])
        assert not expected
        assert all(sum(x) >= size for x in divided[:-1])
        assert all(sum(x[:-1]) < size for x in divided)
