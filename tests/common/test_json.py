"""Strict JSON: read by a schema, and written."""

import gzip
import json
import math
from typing import Annotated

import msgspec
import numpy as np
import pytest

from bert.checks import run
from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.common.formats.curves import read_curves
from bert.data import embedding_files
from bert.tasks.squad import answers
from bert.training import logs
from tests.helpers import tiny

ODD = {"loss": math.nan, "most": math.inf, "least": -math.inf, "step": 3}


def read(path):
    def refuse(name):
        raise ValueError(name)

    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_constant=refuse)


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
def test_a_good_file_is_read(tmp_path, pack):
    path = tmp_path / "a.json"
    path.write_bytes(pack('\ufeff{"size": 7, "other": null}\n'.encode()))
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


def test_curves_have_null_and_the_doctor_finds_it(tmp_path):
    log = logs.TrainingLog(str(tmp_path), tiny.make_steps(), 1)
    log.write(3, "train", {"loss": math.nan, "learning_rate": 0.5})
    path = tmp_path / "metrics.jsonl"
    assert read(path) == {
        "step": 3,
        "kind": "train",
        "loss": None,
        "learning_rate": 0.5,
    }
    points = read_curves(str(path))
    (finding,) = run.check_curves(points, {}, str(path))
    assert "loss is nan at step 3" in finding.message


def test_answers_have_null(tmp_path):
    path = str(tmp_path / "nbest.json")
    expected = {**dict.fromkeys(ODD), "step": 3}
    assert read(answers.write(path, ODD)) == expected


def test_vectors_have_null(tmp_path):
    values = np.array([0.5, np.nan, np.inf], "f4")
    vectors = embedding_files.Vectors([], [], values)
    (tmp_path / "out.jsonl").write_text(
        embedding_files.json_line(0, vectors, None, True)
    )
    expected = {"linex_index": 0, "values": [0.5, None, None]}
    assert read(str(tmp_path / "out.jsonl")) == expected
