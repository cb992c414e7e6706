"""Readers of files that others made; only in `make test-long`.

    FUZZ_SECONDS=600 FUZZ_FINDS=finds python -m pytest -s -m long \
        tests/long/test_fuzzing.py

Whatever a file holds, a reader accepts it or raises a `UserError`, within 5
seconds of CPU time and 1 GB of memory.
"""

import os
import pathlib

import pytest

from tests.helpers import fuzz_targets, fuzzing

pytestmark = pytest.mark.long
SECONDS = float(os.environ.get("FUZZ_SECONDS", "60"))


@pytest.mark.parametrize("target", fuzz_targets.READERS)
def test_a_reader_rejects_what_it_cannot_read(target, tmp_path):
    finds = pathlib.Path(os.environ.get("FUZZ_FINDS", tmp_path))
    report = fuzzing.run(target, SECONDS, finds.absolute())
    print(
        f"{target}: {report.executions:,} files, {report.rejected:,} of them "
        f"rejected, {len(report.finds)} finds in {SECONDS:.0f} s"
    )
    assert report.finds == {}
    assert report.executions > SECONDS
    assert 0 < report.rejected < report.executions


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("planted_error", "file: IndexError at tests/helpers/fuzz_planted.py:"),
        ("planted_hang", "hang (file)"),
        ("planted_crash", "SIGSEGV (file)"),
        ("planted_memory", "memory"),
    ],
)
def test_the_fuzzer_finds_a_planted_mistake(target, found, tmp_path):
    report = fuzzing.run(target, 10, tmp_path)
    assert any(found in signature for signature in report.finds), report
    assert b"7" in {
        pathlib.Path(path).read_bytes() for path in report.finds.values()
    }
