import json
import random
import sys

import pytest

from common.errors import UserError
from common.formats import arrow_files
from tests.helpers import tables_of_arrow

COLUMNS = {
    "text": ["the cat", "é", "", None, "dog", "fish", "bird"],
    "number": [1, 2, 3, 4, 5, 6, None],
    "words": [["a"], [], None, ["b", "c"], ["d"], [], []],
}
KINDS = ["a.parquet", "stream.arrow", "file.arrow", "folder"]


def every(path, names=("text", "number", "words")):
    return list(arrow_files.rows(str(path), list(names)))


@pytest.mark.parametrize("name", KINDS)
def test_rows_have_numbers_and_values(name, tmp_path):
    tables_of_arrow.write(tmp_path / name, COLUMNS)
    path = str(tmp_path / name)
    assert arrow_files.is_arrow(path)
    assert arrow_files.columns(path) == list(COLUMNS)
    rows = zip(*COLUMNS.values())
    assert every(path) == [
        (number, list(row)) for number, row in enumerate(rows, start=1)
    ]
    one, again = every(path, ("number", "number"))[1][1]
    assert one == again == 2


def test_many_rows_keep_their_order(tmp_path):
    tables_of_arrow.write(tmp_path / "a.parquet", {"n": list(range(5000))})
    found = every(tmp_path / "a.parquet", ("n",))
    assert found == [(i + 1, [i]) for i in range(5000)]


@pytest.mark.parametrize("name", KINDS)
def test_numbers_of_classes_become_names(name, tmp_path):
    columns = {"label": [1, 0, -1, None, 1, 0]}
    classes = {"label": ["bad", "good"]}
    tables_of_arrow.write(tmp_path / name, columns, classes)
    found = [values[0] for _, values in every(tmp_path / name, ("label",))]
    assert found == ["good", "bad", None, None, "good", "bad"]


@pytest.mark.parametrize("value", [2, [0]])
def test_a_number_of_no_class_is_an_error(value, tmp_path):
    classes = {"label": ["bad", "good"]}
    path = tmp_path / "a.parquet"
    tables_of_arrow.write(path, {"label": [value]}, classes)
    with pytest.raises(UserError, match="expected a number below 2, of bad"):
        every(path, ("label",))


def test_a_folder_of_parquet_files_is_a_table(tmp_path):
    folder = tmp_path / "data[1]"
    folder.mkdir()
    for name, values in (("train-0", [1, 2]), ("train-1", [3])):
        tables_of_arrow.write(folder / f"{name}.parquet", {"n": values})
    assert [x for _, (x,) in every(folder, ("n",))] == [1, 2, 3]
    (folder / "readme.md").touch()
    assert not arrow_files.is_arrow(str(folder))
    assert not arrow_files.is_arrow(str(tmp_path / "none"))


def test_a_folder_of_splits_names_them(tmp_path):
    path = tmp_path / "dataset_dict.json"
    path.write_text('{"splits": ["train", "test"]}')
    assert arrow_files.is_arrow(str(tmp_path))
    message = f"holds the splits train, test; .* pass {tmp_path}/train"
    with pytest.raises(UserError, match=message):
        arrow_files.columns(str(tmp_path))
    path.write_text('{"splits": 7}')
    with pytest.raises(UserError, match="no list of splits"):
        arrow_files.columns(str(tmp_path))


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{",
        "{}",
        '{"_data_files": []}',
        '{"_data_files": [{"filename": "../secret.arrow"}]}',
        '{"_data_files": [{"filename": 7}]}',
    ],
)
def test_a_damaged_state_is_an_error(content, tmp_path):
    tables_of_arrow.write(tmp_path / "folder", COLUMNS)
    (tmp_path / "folder" / "state.json").write_text(content)
    with pytest.raises(UserError, match=r"folder/state\.json: "):
        every(tmp_path / "folder")


def test_descriptions_and_caches_are_no_data(tmp_path):
    tables_of_arrow.write(tmp_path / "folder", COLUMNS)
    names = [path.name for path in (tmp_path / "folder").iterdir()]
    found = arrow_files.without_descriptions(str(tmp_path / "folder"), names)
    data = [f"data-0000{i}-of-00002.arrow" for i in range(2)]
    assert sorted(found) == data
    others = ["a.json", "b.txt", "dataset_info.json"]
    assert arrow_files.without_descriptions(str(tmp_path), others) == others


@pytest.mark.parametrize("name", KINDS[:3])
def test_a_damaged_file_is_one_line(name, tmp_path):
    """Either its rows can be read, or the message names the file."""
    tables_of_arrow.write(tmp_path / name, COLUMNS)
    content, rng, errors = (tmp_path / name).read_bytes(), random.Random(3), 0
    for number in range(200):
        damaged = bytearray(content)
        if number % 4 == 0:
            del damaged[rng.randrange(len(damaged)) :]
        for _ in range(rng.randrange(1, 5)):
            if damaged:
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        (tmp_path / name).write_bytes(damaged)
        try:
            every(tmp_path / name, arrow_files.columns(str(tmp_path / name)))
        except UserError as error:
            assert str(error).startswith(f"{tmp_path / name}: ")
            assert "\n" not in str(error)
            errors += 1
    assert errors > 50


@pytest.mark.parametrize("name", KINDS[:3])
def test_another_kind_of_file_and_none(name, tmp_path):
    with pytest.raises(UserError, match="no such file"):
        every(tmp_path / name)
    (tmp_path / name).write_text(json.dumps({"text": "the cat"}))
    with pytest.raises(UserError, match="cannot be read"):
        every(tmp_path / name)


def test_a_file_of_other_columns_is_an_error(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    tables_of_arrow.write(folder / "0.parquet", {"n": [1]})
    tables_of_arrow.write(folder / "1.parquet", {"m": [1]})
    with pytest.raises(UserError, match=r"1\.parquet: no column 'n'.* of m"):
        every(folder, ("n",))


def test_without_pyarrow_the_message_says_what_to_install(
    tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match="install -r requirements-parquet.txt"):
        arrow_files.columns(str(tmp_path / "a.parquet"))
