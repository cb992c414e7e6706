"""Findings in checkpoints with odd contents."""

import numpy as np
import pytest

from checks import model as checkpoint_checks
from common import tensor_files
from modeling import checkpoints, models
from tests.helpers import small
from tests.helpers.small import H, L, S, V

PREFIX = "bert_model.ckpt"
WORDS = "bert/embeddings/word_embeddings"
GAMMA = "bert/embeddings/LayerNorm/gamma"
QUERY = "bert/encoder/layer_1/attention/self/query/kernel"
BIAS = "cls/predictions/output_bias"


@pytest.fixture(scope="module")
def values():
    """The variables of a fresh network."""
    model = models.build_pretraining_model(small.config(), seed=7)
    named = checkpoints.model_variables(model)
    return {name: variable.numpy() for name, variable in named.items()}


@pytest.fixture
def examine(tmp_path, values):
    """Writes a checkpoint and examines it; returns level -> messages."""

    def run(replaced, prefix=PREFIX, omit=(), **sizes):
        path = str(tmp_path / prefix)
        written = {k: v for k, v in values.items() if k not in omit}
        tensor_files.write(path, {**written, **replaced})
        found = checkpoint_checks.examine(
            path,
            small.config(**sizes),
            "config.json",
            {name: value.shape for name, value in values.items()},
        )
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
    assert found["fine"][0] == f"has Adam's moments at step {S}"
    del moments[f"{QUERY}/adam_v"], moments[f"{BIAS}/adam_m"]
    del moments[f"{BIAS}/adam_v"]
    moments[f"{GAMMA}/adam_v"] *= -1
    found = examine({**moments, **step}, "model.ckpt-13")
    assert found["suspicious"] == [
        f"lacks {QUERY}/adam_v, {BIAS}/adam_m",
        f"global_step is {S}; expected 13, as in its name",
    ]
    assert found["wrong"] == [
        f"{GAMMA}/adam_v has the value -1; expected 0 or more"
    ]


def test_heads_that_a_run_does_not_train_have_no_moments(examine, values):
    scopes = ("bert/pooler/", "cls/seq_relationship/")
    moments = {
        f"{name}/{moment}": np.abs(value)
        for name, value in values.items()
        for moment in ("adam_m", "adam_v")
        if not name.startswith(scopes)
    }
    step = {"global_step": np.int64(S)}
    found = examine({**moments, **step}, f"model.ckpt-{S}")
    assert found["wrong"] == found["suspicious"] == []
    bias = "bert/pooler/dense/bias"
    for moment in ("adam_m", "adam_v"):
        moments[f"{bias}/{moment}"] = np.abs(values[bias])
    found = examine({**moments, **step}, f"model.ckpt-{S}")
    assert found["suspicious"] == ["lacks bert/pooler/dense/kernel/adam_m"]


def test_a_config_of_other_sizes_is_a_table_of_both_sides(examine):
    fix = "; pass the bert_config.json that belongs to it"
    found = examine({}, vocab_size=101, num_hidden_layers=3)
    assert sorted(found["wrong"]) == [
        f"num_hidden_layers is {L}; expected 3 (config.json){fix}",
        f"vocab_size is {V}; expected 101 (config.json){fix}",
    ]
    assert found["suspicious"] == []


def test_other_names_and_shapes(examine):
    found = examine(
        {QUERY: np.ones([H, H + 1], "f4") * np.arange(H)[:, None]},
        omit=("bert/pooler/dense/bias", BIAS),
    )
    assert [line.split(";")[0] for line in found["wrong"]] == [
        "lacks bert/pooler/dense/bias",
        f"{QUERY} has shape [{H}, {H + 1}]",
    ]
    assert (
        found["fine"][0] == f"lacks {BIAS}, which would be initialized randomly"
    )
    found = examine({"model/layer-0/kernel": np.arange(5.0)})
    assert found["suspicious"][0].startswith(
        "unexpected variables model/layer-0/kernel; "
    )
    assert found["wrong"] == []


def test_odd_numbers(examine, values):
    query, words = values[QUERY].copy(), values[WORDS].copy()
    query[2, 3] = np.nan
    words[7], words[11] = 0, 1e4
    found = examine(
        {
            QUERY: query,
            WORDS: words,
            GAMMA: np.full([H], 0.01, "f4"),
            "bert/pooler/dense/kernel": np.zeros([H, H], "f4"),
        }
    )
    assert sorted(line.split(";")[0] for line in found["wrong"]) == [
        f"{QUERY}: 1 of {H * H} values are not finite",
        "bert/pooler/dense/kernel is 0 everywhere",
    ]
    empty, gamma, long = (
        next(line for line in found["suspicious"] if part in line)
        for part in ("embeddings of 1 tokens are zero", GAMMA, "token 11")
    )
    assert "the first is token 7" in empty
    assert gamma == f"{GAMMA} is 0.01 on average; expected near 1"
    assert "; expected about" in long


def test_a_checkpoint_of_something_else(tmp_path):
    path = str(tmp_path / "ckpt-1")
    graph = "_CHECKPOINTABLE_OBJECT_GRAPH"
    tensor_files.write(path, {graph: b"", "model/w": np.arange(3.0)})
    (found,) = checkpoint_checks.examine(path, None, None, None)
    assert (found.level, found.message) == (
        "wrong",
        f"{path}: contains {graph}, model/w; expected variables of BERT with "
        "the original names; convert other formats with convert_checkpoint.py",
    )


def test_damaged_and_missing_files(examine, tmp_path):
    examine({})
    part = tmp_path / f"{PREFIX}.data-00000-of-00001"
    part.write_bytes(part.read_bytes()[:100])
    prefix = str(tmp_path / PREFIX)
    (found,) = checkpoint_checks.examine(prefix, None, None, None)
    assert found.level == "wrong"
    assert found.message.startswith(f"{prefix}: cannot be read: ")
    (found,) = checkpoint_checks.examine(f"{prefix}x", None, None, None)
    assert found.message.startswith(f"{prefix}x: no such checkpoint; ")
