"""Strict JSON."""

import json
import math

import numpy as np

from checks import curves
from common import storage
from common.formats.curves import read_curves
from data import vector_files
from tasks.squad import answers
from training import logs

ODD = {"loss": math.nan, "most": math.inf, "least": -math.inf, "step": 3}


def read(path):
    def refuse(name):
        raise ValueError(name)

    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_constant=refuse)


def test_numbers_that_are_not_finite_are_null():
    value = {"a": [1.5, math.nan, (math.inf, "NaN")], "b": {"c": -math.inf}}
    assert storage.to_json(value, indent=1) == json.dumps(
        {"a": [1.5, None, [None, "NaN"]], "b": {"c": None}}, indent=1
    )
    assert storage.to_json({"é": 0.1}, ensure_ascii=False) == '{"é": 0.1}'


def test_curves_have_null_and_the_doctor_finds_it(tmp_path):
    log = logs.TrainingLog(str(tmp_path), 0)
    log.write(3, "train", {"loss": math.nan, "learning_rate": 0.5})
    path = tmp_path / "metrics.jsonl"
    assert read(path) == {
        "step": 3,
        "kind": "train",
        "loss": None,
        "learning_rate": 0.5,
    }
    points = read_curves(str(path))
    (finding,) = curves.check(points, [], str(path))
    assert "loss is nan at step 3" in finding.message


def test_answers_have_null(tmp_path):
    path = str(tmp_path / "nbest.json")
    with answers.JsonWriter(path) as writer:
        writer.write("q1", [ODD])
    expected = {**dict.fromkeys(ODD), "step": 3}
    assert read(path) == {"q1": [expected]}
    assert read(answers.write(path, ODD)) == expected


def test_vectors_have_null(tmp_path):
    path = str(tmp_path / "out.jsonl")
    with vector_files.VectorWriter(path, "jsonl", None, True) as writer:
        values = np.array([0.5, np.nan, np.inf], "f4")
        writer.write(vector_files.Vectors([], [], values))
    assert read(path) == {"linex_index": 0, "values": [0.5, None, None]}
