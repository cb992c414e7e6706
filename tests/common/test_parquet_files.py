import json
import random
import sys
import tempfile

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from bert.common.errors import UserError
from bert.common.formats import parquet_files

COLUMNS = {
    "text": ["the cat", "é", "", None, "dog", "fish", "bird"],
    "number": [1, 2, 3, 4, 5, 6, None],
    "words": [["a"], [], None, ["b", "c"], ["d"], [], []],
}


@pytest.fixture
def path(tmp_path):
    parquet.write_table(pyarrow.table(COLUMNS), tmp_path / "a.parquet")
    return tmp_path / "a.parquet"


def every(path, names=("text", "number", "words")):
    return list(parquet_files.rows(str(path), list(names)))


def test_rows_have_numbers_and_values(path):
    names = []
    next(parquet_files.rows(str(path), lambda x: names.extend(x) or x))
    assert names == list(COLUMNS)
    rows = zip(*COLUMNS.values())
    assert every(path) == [
        (number, list(row)) for number, row in enumerate(rows, start=1)
    ]
    one, again = every(path, ("number", "number"))[1][1]
    assert one == again == 2
    twice = pyarrow.table([[1], [2]], names=["n", "n"])
    parquet.write_table(twice, path.with_name("b.parquet"))
    for file, expected in ((path, "text"), (path.with_name("b.parquet"), "n")):
        message = f"no column 'n'; expected one of {expected}"
        with pytest.raises(UserError, match=message):
            every(file, ("n",))


@given(
    count=st.integers(0, 40),
    group=st.integers(1, 9),
    num_bytes=st.floats(1, 200),
)
def test_the_ranges_of_a_file_have_all_its_rows(count, group, num_bytes):
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(parquet_files, "_ROWS", 4)  # rows of a batch
        path, table = (
            f"{folder}/a.parquet",
            pyarrow.table({"n": [*range(count)]}),
        )
        parquet.write_table(table, path, row_group_size=group)
        expected = [(i + 1, [i]) for i in range(count)]
        assert every(path, ["n"]) == expected
        for span, size in parquet_files.divide(path, num_bytes):
            found = [*parquet_files.rows(path, ["n"], span=span)]
            assert found == expected[:size]
            assert found[0][0] == span.line
            del expected[:size]
        assert not expected


def test_a_damaged_file_is_one_line(path):
    """Either its rows can be read, or the message names the file."""
    content, rng, errors = path.read_bytes(), random.Random(3), 0
    for number in range(200):
        damaged = bytearray(content)
        if number % 4 == 0:
            del damaged[rng.randrange(len(damaged)) :]
        for _ in range(rng.randrange(1, 5)):
            if damaged:
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(damaged)
        try:
            list(parquet_files.rows(str(path), list))
        except UserError as error:
            assert str(error).startswith(f"{path}: ")
            assert "\n" not in str(error)
            errors += 1
    assert errors > 50


def test_another_kind_of_file_and_none(path):
    path.write_text(json.dumps({"text": "the cat"}))
    with pytest.raises(UserError, match="cannot be read"):
        every(path)
    path.unlink()
    with pytest.raises(UserError, match="no such file"):
        every(path)


def test_without_pyarrow_the_message_says_what_to_install(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match="install -r requirements/parquet.txt"):
        every(path)
