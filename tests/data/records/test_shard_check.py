"""Damaged shards: every kind is reported, whole ones never are."""

import gzip
import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert.common.formats import checksums
from bert.data.records import shard_check
from bert.data.records.shard_check import check_shard
from tests.helpers import pretraining_files

LENGTHS = [random.Random(3).randint(1, 211) for _ in range(53)]
RECORDS = [
    random.Random(i).randbytes(length) for i, length in enumerate(LENGTHS)
]
STARTS = [sum(LENGTHS[:i]) + 16 * i for i in range(len(LENGTHS) + 1)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """(bytes of a shard, its entry in a manifest)."""
    path = tmp_path_factory.mktemp("whole") / "whole.tfrecord"
    entry = pretraining_files.write_shard(path, RECORDS)
    return path.read_bytes(), entry


@pytest.fixture(scope="module")
def check(tmp_path_factory, whole):
    """Checks a file of the given bytes, with the manifest or without."""
    path = tmp_path_factory.mktemp("damaged") / "shard.tfrecord"

    def run(content, listed=True):
        path.write_bytes(content)
        return check_shard(str(path), whole[1] if listed else None)

    return run


def frame(content, i):
    return content[STARTS[i] : STARTS[i + 1]]


@given(
    offset=st.integers(0, STARTS[-1] - 512),
    noise=st.binary(min_size=1, max_size=512),
    listed=st.booleans(),
)
def test_overwritten_bytes_are_located(check, whole, offset, noise, listed):
    content = whole[0]
    damaged = content[:offset] + noise + content[offset + len(noise) :]
    assert len(damaged) == len(content)
    pairs = enumerate(zip(content, damaged, strict=True))
    first = next((i for i, (a, b) in pairs if a != b), None)
    if first is None:
        assert check(damaged, listed) is None
        return

    index = next(i for i in range(53) if STARTS[i + 1] > first)
    part = "length" if first - STARTS[index] < 12 else "data"
    cause = f"checksum of the {part} differs"
    message = check(damaged, listed)
    assert message.startswith(f"record {index} at byte {STARTS[index]}: ")
    # The first bytes may look like another kind of file.
    assert cause in message or first < 12


SIZES = st.integers(0, STARTS[-1] - 1) | st.sampled_from(STARTS[:-1])


@given(size=SIZES, listed=st.booleans())
def test_a_shard_that_ends_early_is_located(check, whole, size, listed):
    index = next(i for i in range(53) if STARTS[i + 1] > size)
    left = size - STARTS[index]
    cause = "the file ends inside the record"
    if left < 12:
        cause = f"only {left} bytes, too few for a record"
    expected = f"record {index} at byte {STARTS[index]}: {cause}"
    if not left:
        expected = f"{index} records instead of 53"
    if not left and not listed:
        expected = None if index else "no records"
    assert check(whole[0][:size], listed) == expected


def test_what_follows_the_last_record_is_located(check, whole):
    at = f"record 53 at byte {STARTS[-1]}: "
    for tail, cause in (
        (b"nothing", "only 7 bytes, too few for a record"),
        (bytes(4096), "checksum of the length differs"),
    ):
        for listed in (True, False):
            assert check(whole[0] + tail, listed) == at + cause


def test_whole_records_that_were_not_written_are_reported(check, whole):
    content = whole[0]
    frames = [frame(content, i) for i in range(len(RECORDS))]
    swapped = [*frames[:5], frames[6], frames[5], *frames[7:]]
    replaced = [*frames[:5], frames[7], *frames[6:]]
    other = "not the records that were written (sha256 differs)"
    for damaged, message in (
        (content[: STARTS[5]] + content[STARTS[6] :], "52 records instead of "),
        (content * 2, "106 records instead of 53"),
        (b"".join(swapped), other),
        (b"".join(replaced), other),
    ):
        assert check(damaged).startswith(message)


@pytest.mark.parametrize("length", [LENGTHS[5] + 1, 2**35, 2**62, 2**64 - 1])
def test_a_length_beyond_the_end_is_located(check, whole, length):
    """With a right checksum; TensorFlow would end the process."""
    header = struct.pack("<Q", length)
    header += struct.pack("<I", checksums.masked_crc32c(header))
    content = whole[0][: STARTS[5]] + header + whole[0][STARTS[5] + 12 :]
    cause = "the file ends inside the record"
    if length == LENGTHS[5] + 1:
        cause = "checksum of the data differs"
    for listed in (True, False):
        found = check(content, listed)
        assert found == f"record 5 at byte {STARTS[5]}: {cause}"


def test_a_long_record_is_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(shard_check, "_BLOCK", 7)
    path = str(tmp_path / "a")
    pretraining_files.write_shard(
        path, [bytes(range(n)) for n in (0, 6, 7, 8, 14)]
    )
    assert check_shard(path, None) is None


def test_other_kinds_of_files_are_reported(check, whole):
    at = "record 0 at byte 0: "
    assert check(gzip.compress(whole[0])) == f"{at}this is a gzip file"
    assert check(b"\0" * 31) == (
        f"{at}checksum of the length differs, or not a TFRecord file"
    )
    for line in ("One sentence a line.\n", "\u6211\u4eec \u4f7f\u7528"):
        assert check(line.encode()) == f"{at}this is text, not TFRecords"
