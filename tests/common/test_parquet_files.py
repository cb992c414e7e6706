import json
import random
import sys

import pyarrow
import pytest
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
    with pytest.raises(UserError, match="no column 'n'; expected one of text"):
        every(path, ("n",))


def test_many_rows_keep_their_order(path):
    parquet.write_table(pyarrow.table({"n": list(range(5000))}), path)
    found = every(path, ("n",))
    assert found == [(i + 1, [i]) for i in range(5000)]


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
