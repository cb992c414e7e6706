"""Findings in checkpoints with odd contents; test_faults.py: damaged ones."""

import json

import numpy as np
import pytest

from bert.checks import model as checkpoint_checks
from bert.common.formats import tensor_files
from bert.modeling import checkpoints, networks
from tests.helpers import small
from tests.helpers.small import H, L, S, V

PREFIX = "bert_model.ckpt"
QUERY = "bert/encoder/layer_1/attention/self/query/kernel"
BIAS = "cls/predictions/output_bias"


@pytest.fixture(scope="module")
def values():
    """The variables of a fresh network."""
    model = networks.build_pretraining_model(small.config(), seed=7)
    named = checkpoints.model_variables(model)
    return {name: variable.numpy() for name, variable in named.items()}


@pytest.fixture
def examine(tmp_path, values):
    """Writes a checkpoint and examines it; returns level -> messages."""

    def run(replaced, prefix=PREFIX, omit=(), **sizes):
        path = str(tmp_path / prefix)
        written = {k: v for k, v in values.items() if k not in omit}
        tensor_files.write(path, {**written, **replaced})
        found = checkpoint_checks.examine(path, small.config(**sizes))
        messages = {"wrong": [], "suspicious": [], "fine": []}
        for finding in found:
            messages[finding.level].append(
                finding.message.removeprefix(f"{path}: ")
            )
        return messages

    return run


def test_a_good_checkpoint_is_fine(examine, values):
    found = examine({})
    assert found["wrong"] == found["suspicious"] == []
    assert found["fine"] == [
        f"{len(values)} variables; num_hidden_layers {L}, vocab_size {V}, "
        f"hidden_size {H}, max_position_embeddings {small.POSITIONS}, "
        f"type_vocab_size 2, intermediate_size {small.INTERMEDIATE}"
    ]


def test_a_run_s_checkpoint_is_fine(examine, values):
    moments = {
        f"{name}/{moment}": np.abs(value)
        for name, value in values.items()
        for moment in ("adam_m", "adam_v")
    }
    step = {"global_step": np.int64(S)}
    found = examine({**moments, **step}, f"model.ckpt-{S}")
    assert found["wrong"] == found["suspicious"] == []


def test_a_config_of_other_sizes(examine):
    fix = "; pass the bert_config.json that belongs to it"
    found = examine({}, vocab_size=101, num_hidden_layers=3)
    assert found["wrong"] == [
        f"num_hidden_layers is 3 in the config, {L} in the checkpoint; "
        f"vocab_size is 101 in the config, {V} in the checkpoint{fix}"
    ]
    found = examine({}, num_hidden_layers=L - 1)
    assert found["wrong"] == []
    assert found["suspicious"][0].startswith(
        f"unexpected variables bert/encoder/layer_{L - 1}/attention/"
    )
    assert found["suspicious"][0].endswith(fix)


def test_other_names_and_shapes(examine):
    query = np.ones([H, H + 1], "f4") * np.arange(H)[:, None]
    (line,) = examine({QUERY: query})["wrong"]
    assert line.startswith("other shapes than the config's: ")
    assert f"{QUERY} [{H}, {H + 1}]" in line
    found = examine({}, omit=[BIAS])
    assert (
        found["fine"][0] == f"lacks {BIAS}, which would be initialized randomly"
    )
    found = examine({"model/layer-0/kernel": np.arange(5.0)})
    assert found["suspicious"][0].startswith(
        "unexpected variables model/layer-0/kernel; "
    )
    assert found["wrong"] == []


HEADS = ("cls/", "bert/pooler/")


@pytest.mark.parametrize("scope", ["", "cls/ner/"])
def test_a_fine_tuned_model_and_its_labels(examine, values, tmp_path, scope):
    """It lacks nothing; the labels are counted."""
    omit = [name for name in values if name.startswith(HEADS)]
    head = {
        f"{scope}output_weights": np.arange(3.0 * H).reshape(3, H),
        f"{scope}output_bias": np.arange(3.0),
    }
    for labels, level in ((["a", "b", "c"], "fine"), (["a", "b"], "wrong")):
        task = {"kind": "classes", "labels": labels}
        (tmp_path / "task.json").write_text(json.dumps(task))
        found = examine(head, omit=omit)
        assert not any("lacks" in x for x in found["fine"])
        (line,) = (x for x in found[level] if "labels" in x)
        listed = f"{len(labels)} labels: {', '.join(labels)}"
        assert line.startswith(f"{tmp_path}/task.json: {listed}")
    assert len(found["wrong"]) == 1
    found = examine({}, omit=omit)  # without outputs to count
    assert any("2 labels" in x for x in found["fine"])
    (tmp_path / "task.json").write_text("{")
    assert "task.json" in examine(head, omit=omit)["wrong"][0]


def test_an_embedding_model_has_no_head(examine, values, tmp_path):
    omit = [name for name in values if name.startswith(HEADS)]
    assert "lacks" in examine({}, omit=omit)["fine"][0]
    (tmp_path / "modules.json").write_text("[]")
    assert "lacks" not in str(examine({}, omit=omit)["fine"])


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (np.full([2, 3], 0.5), 1),
        (np.full([2, 3], 7), 0),  # not weights
        (np.full([1, 1], 0.5), 0),
        (np.full([6], 1.0), 0),
        (np.array([[0.5, np.inf]]), 1),
    ],
)
def test_a_matrix_is_not_constant_and_finite(value, count):
    assert len(checkpoint_checks.check_values("w", value, PREFIX)) == count


def test_odd_numbers(examine, values):
    query = values[QUERY].copy()
    query[2, 3] = np.nan
    found = examine(
        {QUERY: query, "bert/pooler/dense/kernel": np.zeros([H, H], "f4")}
    )
    assert sorted(line.split(";")[0] for line in found["wrong"]) == [
        f"{QUERY}: 1 of {H * H} values are not finite",
        "bert/pooler/dense/kernel is 0 everywhere",
    ]


def test_a_checkpoint_of_something_else(tmp_path):
    path = str(tmp_path / "ckpt-1")
    graph = "_CHECKPOINTABLE_OBJECT_GRAPH"
    tensor_files.write(path, {graph: b"", "model/w": np.arange(3.0)})
    (found,) = checkpoint_checks.examine(path, None)
    assert (found.level, found.message) == (
        "wrong",
        f"{path}: contains {graph}, model/w; expected variables of BERT with "
        "the original names; convert other formats with convert_checkpoint.py",
    )
