"""Damaged shards: every kind is reported, whole ones never are."""

import gzip
import random
import struct

import pytest

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


@pytest.fixture
def check(tmp_path, whole):
    """Checks a file of the given bytes, with the manifest or without."""

    def run(content, listed=True):
        path = tmp_path / "shard.tfrecord"
        path.write_bytes(content)
        return check_shard(str(path), whole[1] if listed else None)

    return run


def flip(content, offset):
    changed = bytearray(content)
    changed[offset] ^= 4
    return bytes(changed)


def frame(content, i):
    return content[STARTS[i] : STARTS[i + 1]]


def test_damage_inside_a_record_is_located(check, whole):
    start = STARTS[37]
    at = f"record 37 at byte {start}: "
    for offset, cause in (
        (3, "checksum of the length differs"),
        (9, "checksum of the length differs"),
        (12, "checksum of the data differs"),
        (STARTS[38] - start - 1, "checksum of the data differs"),
    ):
        for listed in (True, False):
            damaged = flip(whole[0], start + offset)
            assert check(damaged, listed) == at + cause


def test_what_ends_too_early_or_too_late_is_located(check, whole):
    content = whole[0]
    start, end = STARTS[37], STARTS[-1]
    for damaged, message in (
        (
            content[: start + 7],
            f"record 37 at byte {start}: only 7 bytes, too few for a record",
        ),
        (
            content[: start + 13],
            f"record 37 at byte {start}: the file ends inside the record",
        ),
        (
            content + b"nothing",
            f"record 53 at byte {end}: only 7 bytes, too few for a record",
        ),
        (
            content + bytes(4096),
            f"record 53 at byte {end}: checksum of the length differs",
        ),
    ):
        for listed in (True, False):
            assert check(damaged, listed) == message


def test_whole_records_that_were_not_written_are_reported(check, whole):
    content = whole[0]
    frames = [frame(content, i) for i in range(len(RECORDS))]
    swapped = [*frames[:5], frames[6], frames[5], *frames[7:]]
    replaced = [*frames[:5], frames[7], *frames[6:]]
    other = "not the records that were written (sha256 differs)"
    for damaged, message in (
        (content[: STARTS[37]], "37 records instead of 53"),
        (b"", "0 records instead of 53"),
        (content[: STARTS[5]] + content[STARTS[6] :], "52 records instead of "),
        (content * 2, "106 records instead of 53"),
        (b"".join(swapped), other),
        (b"".join(replaced), other),
    ):
        assert check(damaged).startswith(message)
    assert check(b"", listed=False) == "no records"


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


@pytest.mark.parametrize(
    "count", [50, pytest.param(1000, marks=pytest.mark.long)]
)
def test_random_faults_are_located(check, whole, count):
    """Where 1 to 512 bytes are overwritten."""
    content = whole[0]
    rng = random.Random(7)
    for _ in range(count):
        size = rng.randint(1, 512)
        offset = rng.randrange(len(content) - size)
        noise = rng.randbytes(size)
        damaged = content[:offset] + noise + content[offset + size :]
        if damaged == content:
            continue
        pairs = enumerate(zip(content, damaged, strict=True))
        first = next(i for i, (a, b) in pairs if a != b)
        index = next(i for i in range(53) if STARTS[i + 1] > first)
        message = check(damaged)
        assert message.startswith(f"record {index} at byte {STARTS[index]}: ")


@pytest.mark.parametrize(
    "count", [5, pytest.param(100, marks=pytest.mark.long)]
)
def test_clean_sets_raise_no_alarm(tmp_path, count):
    for number in range(count):
        rng = random.Random(number)
        rows = [rng.randbytes(rng.randint(0, 97)) for _ in range(number)]
        path = str(tmp_path / f"{number}.tfrecord")
        entry = pretraining_files.write_shard(path, rows)
        assert check_shard(path, entry) is None
        if rows:
            assert check_shard(path, None) is None
