"""Strict JSON: read by a schema, and written."""

import gzip
import json
import math
import os
import pathlib
from typing import Annotated

import msgspec
import numpy as np
import pytest

from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.data import embedding_files
from bert.tasks.squad import answers
from bert.training import logs
from tests.helpers import tiny

ODD = {"loss": math.nan, "most": math.inf, "least": -math.inf}


class Sizes(msgspec.Struct):
    size: Annotated[int, msgspec.Meta(ge=1)]
    name: json_files.Name = "a"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "JSON is empty; expected sizes; copy it"),
        (b" \n", "JSON is empty"),
        (b'{"size": 1', "JSON is incomplete; expected sizes"),
        (b'{"size": 1} {}', "JSON is malformed: trailing characters"),
        (b"[1]", "Expected `object`, got `array`"),
        (b"{}", "Object missing required field `size`"),
        (b'{"size": 0}', "Expected `int` >= 1 - at `$.size`"),
        (b'{"size": true}', "Expected `int`, got `bool` - at `$.size`"),
        (b'{"size": NaN}', "JSON is malformed"),
        (b'{"size": 1, "name": ""}', "Expected `str` matching regex"),
        (b'{"size": 1, "name": "."}', "Expected `str` matching regex"),
        (b'{"size": 1, "name": ".."}', "Expected `str` matching regex"),
        (b'{"size": 1, "name": "../a"}', "Expected `str` matching regex"),
        (b'{"size": 1, "name": "a\\u0000"}', "Expected `str` matching regex"),
        (b'{"size": 1, "name": "\xff"}', "'utf-8' codec can't decode byte"),
        (rb'{"size": 1, "name": "\ud83d"}', "JSON has half of a surrogate"),
        (b'{"size": 1, "a": ' + b"[" * 99_999, "JSON is nested too deep"),
        (gzip.compress(b"{}", mtime=0)[:-9], "damaged gzip file: "),
        (b" " * 100_022, "more than 100,021 bytes"),
        (gzip.compress(b" " * 100_022, mtime=0), "more than 100,021 bytes"),
        (None, "No such file or directory; expected sizes"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path, monkeypatch, content, message):
    monkeypatch.setattr(json_files, "LARGEST", 100_021)
    path = tmp_path / "a.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        json_files.read(str(path), Sizes, "sizes", "copy it")
    assert str(caught.value).startswith(f"{path}: {message}")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_good_file_is_read(tmp_path, monkeypatch, pack):
    path = tmp_path / "a.json"
    content = '\ufeff{"size": 7, "other": null}\n'.encode()
    monkeypatch.setattr(json_files, "LARGEST", len(content))
    path.write_bytes(pack(content))
    assert json_files.read(str(path), Sizes) == Sizes(7)
    path.write_bytes(b'{"size": NaN}')
    kind = dict[str, float]
    assert math.isnan(json_files.read(str(path), kind, has_nan=True)["size"])


def test_numbers_that_are_not_finite_are_null():
    value = {"a": [1.5, math.nan, (math.inf, "NaN")], "b": {"c": -math.inf}}
    assert json_files.to_json(value, indent=1) == json.dumps(
        {"a": [1.5, None, [None, "NaN"]], "b": {"c": None}}, indent=1
    )
    assert json_files.to_json({"é": 0.1}, ensure_ascii=False) == '{"é": 0.1}'


def write_curve(path):
    log = logs.TrainingLog(os.path.dirname(path), tiny.make_steps(), 1)
    log.write(3, "train", ODD)


def write_vectors(path):
    values = np.array([*ODD.values()], "f4")
    vectors = embedding_files.Vectors([], [], values)
    pathlib.Path(path).write_text(
        embedding_files.json_line(0, vectors, None, True)
    )


@pytest.mark.parametrize(
    ("write", "name", "expected"),
    [
        (
            write_curve,
            "metrics.jsonl",
            {"step": 3, "kind": "train", **dict.fromkeys(ODD)},
        ),
        (write_vectors, "a.jsonl", {"linex_index": 0, "values": [None] * 3}),
        (lambda path: answers.write(path, ODD), "a.json", dict.fromkeys(ODD)),
    ],
)
def test_files_have_null_for_numbers_that_are_not_finite(
    tmp_path, write, name, expected
):
    path = tmp_path / name
    write(str(path))
    assert json.loads(path.read_bytes(), parse_constant=pytest.fail) == expected
