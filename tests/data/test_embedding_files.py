"""Vectors are written to files and read back."""

import json
import zipfile

import numpy as np
import pytest

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
    layers = None if mixed else [-1, 0]
    opened = embedding_files.FORMATS[kind](str(path), layers, pooled)
    with opened as write_next:
        for row in rows:
            write_next(row)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_json_lines_are_the_originals(tmp_path):
    rows = texts(pooled=False, mixed=False)
    write(tmp_path / "out", "jsonl", rows, False, False)
    lines = (tmp_path / "out").read_text().splitlines()
    for number, (line, row) in enumerate(zip(lines, rows, strict=True)):
        expected = {
            "linex_index": number,
            "features": [
                {
                    "token": token,
                    "layers": [
                        {
                            "index": index,
                            "values": [round(float(x), 6) for x in values],
                        }
                        for index, values in zip([-1, 0], layers)
                    ],
                }
                for token, layers in zip(row.tokens, row.values)
            ],
        }
        assert line == json.dumps(expected)


@pytest.mark.parametrize("mixed", [False, True])
def test_npz_of_tokens(tmp_path, mixed):
    rows = texts(pooled=False, mixed=mixed)
    write(tmp_path / "out.npz", "npz", rows, False, mixed)
    with np.load(tmp_path / "out.npz", allow_pickle=False) as found:
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


def test_an_error_at_the_end_leaves_no_part(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError("full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(UserError, match="cannot be written: full"):
        write(tmp_path / "out", "npz", texts(False, False), False, False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["jsonl", "npz"])
def test_an_error_leaves_the_earlier_file(tmp_path, kind):
    (tmp_path / "out").write_text("before")
    path = str(tmp_path / "out")
    with (
        pytest.raises(KeyError),
        embedding_files.FORMATS[kind](path, [0], True) as write_next,
    ):
        write_next(texts(True, False)[0]._replace(values=np.ones((1, 5))))
        raise KeyError
    assert (tmp_path / "out").read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1
