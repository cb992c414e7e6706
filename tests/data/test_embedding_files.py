"""Vectors are written to files and read back."""

import zipfile

import numpy as np
import pytest
from pyarrow import parquet

from bert.common.errors import UserError
from bert.data import embedding_files
from bert.data.embedding_files import Vectors

RNG = np.random.default_rng(3)


def texts(pooled, mixed):
    """Three texts of 2, 4 and 3 tokens; 2 layers of 5 numbers."""
    rest = (5,) if mixed else (2, 5)
    return [
        Vectors(
            [f"t{i}" for i in range(n)],
            list(range(n)),
            RNG.normal(size=rest if pooled else (n, *rest)).astype("f4"),
        )
        for n in (2, 4, 3)
    ]


def write(path, kind, rows, pooled, mixed):
    """Writes a file from two parts."""
    layers = None if mixed else [-1, 0]
    parts = [path.parent.parent / f"part-{i}" for i in range(2)]
    counts = []
    for part, some in zip(parts, (rows[:2], rows[2:])):
        with open(part, "wb") as file:
            embedding_files.write_arrays(some, pooled, file)
        counts.append({"schema": embedding_files.schema_of(some)})
    join = embedding_files.joiner(kind, layers, pooled)
    join([*map(str, parts)], counts, str(path))
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


@pytest.mark.parametrize("mixed", [False, True])
def test_npz_of_tokens(folder, mixed):
    rows = texts(pooled=False, mixed=mixed)
    write(folder / "out.npz", "npz", rows, False, mixed)
    with np.load(folder / "out.npz", allow_pickle=False) as found:
        splits = found["row_splits"]
        assert splits.tolist() == [0, 2, 6, 9]
        for row, first, last in zip(rows, splits, splits[1:]):
            np.testing.assert_array_equal(
                found["values"][first:last], row.values
            )
            assert found["input_ids"][first:last].tolist() == row.ids
        assert ("layers" in found) != mixed


def test_npz_of_whole_texts_and_the_same_bytes_again(tmp_path):
    rows = texts(pooled=True, mixed=True)
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
        write(folder / "out.npz", "npz", rows, True, True)
    with np.load(folders[0] / "out.npz", allow_pickle=False) as found:
        assert list(found) == ["values"]
        np.testing.assert_array_equal(
            found["values"], np.stack([row.values for row in rows])
        )
    first, second = ((f / "out.npz").read_bytes() for f in folders)
    assert first == second
    assert zipfile.ZipFile(folders[0] / "out.npz").testzip() is None


def test_an_error_at_the_end_leaves_the_earlier_file(folder, monkeypatch):
    def fail(*_, **__):
        raise OSError("full")

    (folder / "out").write_text("before")
    save, calls = np.savez, []
    monkeypatch.setattr(
        np,
        "savez",
        lambda *x, **k: (
            calls.append(x) or (save if len(calls) < 3 else fail)(*x, **k)
        ),
    )
    with pytest.raises(UserError, match="cannot be written: full"):
        write(folder / "out", "npz", texts(False, False), False, False)
    assert (folder / "out").read_text() == "before"
    assert len([*folder.iterdir()]) == 1


@pytest.mark.parametrize("has_texts", [False, True])
def test_rows_of_arrays_and_tables_are_texts(folder, has_texts):
    """A row with an error has no numbers."""
    rows = [
        x._replace(values=x.values[:1], kept={"id": key})
        for x, key in zip(texts(True, False), [7, "b" if has_texts else 8, 9])
    ]
    nothing = np.full_like(rows[2].values, np.nan)
    rows[2] = rows[2]._replace(values=nothing, error={"error": "no"})
    write(folder / "v.npy", "npy", rows, True, False)
    found = np.load(folder / "v.npy")
    np.testing.assert_array_equal(found, [x.values[0] for x in rows])

    (folder / "v.npy").unlink()
    write(folder / "v.parquet", "parquet", rows, True, False)
    table = parquet.read_table(folder / "v.parquet")
    assert str(table.schema.field("embedding").type) == (
        "fixed_size_list<element: float>[5]"
    )
    keys = ["7", "b", "9"] if has_texts else [7, 8, 9]
    assert table["id"].to_pylist() == keys
    found = np.array(table["embedding"].to_pylist(), "f4")
    np.testing.assert_array_equal(found, [x.values[0] for x in rows])
