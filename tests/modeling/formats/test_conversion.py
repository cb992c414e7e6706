"""Conversion of a model: what is read, and what is published."""

import dataclasses
import json

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from bert.common.errors import UserError
from bert.common.formats import tensor_files
from bert.data.sequences import LongTexts
from bert.data.text.tokenizer import Tokenizer
from bert.modeling import networks
from bert.modeling.formats import conversion
from bert.modeling.formats.model import Model
from bert.modeling.formats.model_folder import ModelFolder
from tests.helpers import model_files, small, text


@pytest.fixture
def folder(tmp_path):
    """A folder of the original, whose optimizer has slots of other names."""
    config = small.config()
    values = model_files.values_of(networks.build_pretraining_model(config))
    slots = {f"{name}/LAMB_1": value for name, value in values.items()}
    (tmp_path / "bert_config.json").write_text(config.to_json())
    path = str(tmp_path / "bert_model.ckpt")
    tensor_files.write(path, {**values, **slots, "beta1_power": 0.5})
    return tmp_path


def test_slots_of_other_optimizers_are_skipped(folder):
    """As in MLPerf's checkpoints."""
    bert = ModelFolder.open(str(folder)).read()
    assert len(bert.values) > 20
    slots = {f"{name}/LAMB_1" for name in bert.values}
    assert set(bert.skipped) == slots | {"beta1_power"}


@pytest.mark.parametrize("truncate", ["head_tail", "tail"])
@pytest.mark.parametrize("target", ["google", "huggingface"])
def test_what_a_format_has_no_field_for_is_told(
    folder, tmp_path, capsys, target, truncate
):
    bert = ModelFolder.open(str(folder)).read()
    bert.values["output_weights"] = np.zeros((2, small.H), np.float32)
    task = {"kind": "classes", "labels": ["a", "b"], "max_seq_length": 7}
    task |= LongTexts(truncate, "mean", 3).described()
    bert = dataclasses.replace(
        bert, task_json=task | {"decision": {"temperature": 2.0}}
    )
    (tmp_path / "new").mkdir()
    conversion.write(bert, target, str(tmp_path / "new"))
    told = "warning: transformers does not use "
    lines = capsys.readouterr().err.split(told)[1:]
    starts = ["thresholds, tempe", "--truncate=head_t", "windows: it trunc"]
    if truncate == "tail":  # the last tokens, as truncation_side
        del starts[1]
    expected = starts if target == "huggingface" else []
    assert [line[:17] for line in lines] == expected
    assert ModelFolder.open(str(tmp_path / "new")).task_json == bert.task_json


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_outputs_that_are_no_numbers_are_an_error(order):
    values = {"a": np.zeros(3), "b": np.array([0.0, np.nan, 0.0])}
    zeros = {name: np.zeros(3) for name in order}
    with pytest.raises(UserError, match="here: outputs differ by nan then"):
        conversion.check_outputs(zeros, values, 1.0, "here", "then")


@hypothesis.given(
    st.integers(3, 15), st.none() | st.integers(3, 15), st.booleans()
)
@hypothesis.settings(max_examples=30)
def test_the_shortest_length_is_written(
    tmp_path_factory, length, task_length, is_theirs
):
    """transformers always gets one, other folders one below the positions."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer = Tokenizer("vocab.txt", tokens=text.VOCABULARY)
    task = {"kind": "classes", "labels": []}
    if task_length:
        task["max_seq_length"] = task_length
    parts = tokenizer.with_max_length(length), task
    model = Model("", small.config(), {}, *parts)
    conversion.write_files(model, str(folder), is_theirs)
    positions = small.POSITIONS
    expected = min(length, task_length or positions, positions)
    is_written = is_theirs or expected < positions
    config = json.loads((folder / "tokenizer_config.json").read_text())
    found = config.get("model_max_length")
    assert found == (expected if is_written else None)
