"""Names, shapes and the reading of checkpoints."""

import json

import numpy as np
import pytest

from bert.common.errors import UserError
from bert.common.formats import tensor_files
from bert.modeling import checkpoints
from bert.modeling.formats import checkpoint_files
from bert.modeling.networks import build_pretraining_model
from tests.helpers import model_files, small


@pytest.fixture
def written(tmp_path):
    """A checkpoint with slots and step, and its model."""
    model = build_pretraining_model(small.config(), seed=5)
    values = model_files.values_of(model)
    prefix = str(tmp_path / "bert_model.ckpt")
    slots = {f"{name}/adam_m": value * 0 for name, value in values.items()}
    tensor_files.write(prefix, {**values, **slots, "global_step": np.int64(3)})
    return prefix, values


def fresh_variables(seed=6, **changed):
    model = build_pretraining_model(small.config(**changed), seed=seed)
    return checkpoints.model_variables(model)


@pytest.mark.parametrize(
    ("left_out", "layers"),
    [
        ("none", 2),
        ("cls/", 2),  # heads
        ("bert/pooler/", 2),  # as in models without next sentences
        ("none", 1),  # the first layers
    ],
)
def test_variables_that_may_be_missing_stay_fresh(written, left_out, layers):
    prefix, values = written
    read = checkpoints.read(prefix)
    assert set(read) == set(values)  # without slots and step
    given = {n: v for n, v in read.items() if not n.startswith(left_out)}
    named = fresh_variables(num_hidden_layers=layers)
    before = {name: v.numpy() for name, v in named.items()}
    missing = [name for name in named if name.startswith(left_out)]
    assert checkpoints.assign(named, given, prefix) == missing
    for name, variable in named.items():
        expected = before[name] if name in missing else values[name]
        np.testing.assert_array_equal(variable.numpy(), expected)


@pytest.mark.parametrize(
    ("changed", "left_out", "needed", "message"),
    [
        ({}, "bert/pooler/dense/bias", [], "lacks bert/pooler/dense/bias"),
        (
            {},
            "cls/",
            [("cls/",)],
            "lacks cls/.*; train the model for this task",
        ),
        (
            {"num_hidden_layers": 3},
            "none",
            [],
            "num_hidden_layers is 3 in the config, 2 in the checkpoint",
        ),
        (
            {"vocab_size": 89},
            "none",
            [],
            "vocab_size is 89 in the config, 97 in the checkpoint; pass",
        ),
        ({"max_position_embeddings": 17}, "none", [], "--long_texts=windows"),
    ],
)
def test_weights_that_do_not_fit_change_nothing(
    written, changed, left_out, needed, message
):
    prefix, values = written
    named = fresh_variables(**changed)
    before = {name: v.numpy() for name, v in named.items()}
    given = {n: v for n, v in values.items() if not n.startswith(left_out)}
    with pytest.raises(UserError, match=message):
        checkpoints.assign(named, given, prefix, *needed)
    for name, variable in named.items():
        np.testing.assert_array_equal(variable.numpy(), before[name])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{p}.index", "is one file of a checkpoint"),
        ("{p}.data-00000-of-00001", "is one file of a checkpoint"),
        ("{p}-17", "no such checkpoint"),
        ("{p}.keras", "folder of checkpoints; keras.saving.load_model loads"),
        ("{folder}/empty", "no checkpoints in this folder"),
        ("{folder}", "2 checkpoints in this folder"),
    ],
)
def test_a_wrong_prefix_is_named(written, tmp_path, given, message):
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.ckpt.index").write_bytes(b"")
    path = given.format(p=written[0], folder=tmp_path)
    with pytest.raises(UserError) as caught:
        checkpoint_files.resolve(path)
    assert message in str(caught.value)


def test_a_folder_means_its_best_or_its_newest_checkpoint(written, tmp_path):
    assert checkpoint_files.resolve(str(tmp_path)) == written[0]
    for step in (200, 1000):
        (tmp_path / f"model.ckpt-{step}.index").touch()
    newest = f"{tmp_path}/model.ckpt-1000"
    assert checkpoint_files.resolve(str(tmp_path)) == newest

    # The folder of the best is made before its first checkpoint.
    (tmp_path / "best").mkdir()
    assert checkpoint_files.resolve(str(tmp_path)) == newest
    (tmp_path / "best/model.ckpt-600.index").touch()
    best = f"{tmp_path}/best/model.ckpt-600"
    assert checkpoint_files.resolve(str(tmp_path)) == best
    assert checkpoint_files.resolve(f"{tmp_path}/best") == best
    assert checkpoint_files.prefix_of(str(tmp_path)) == newest


def test_a_file_beside_the_best_checkpoint_may_be_in_the_runs_folder(tmp_path):
    best = tmp_path / "best"
    best.mkdir()
    prefix = str(best / "model.ckpt-7")
    for expected in (tmp_path / "task.json", best / "task.json"):
        expected.touch()
        for path in (str(best), f"{best}/", prefix):
            found = checkpoint_files.beside(path, "task.json")
            assert found == str(expected)


def test_the_vocabulary_of_a_saved_model_is_its_only_text_file(tmp_path):
    (tmp_path / "assets").mkdir()
    for name, expected in (("a.txt", "a.txt"), ("b.txt", "vocab.txt")):
        (tmp_path / "assets" / name).touch()
        found = checkpoint_files.asset(str(tmp_path))
        assert found == str(tmp_path / "assets" / expected)


@pytest.mark.parametrize("best", [6, 9])
def test_a_threshold_of_an_earlier_version_is_of_the_best_weights(
    tmp_path, best
):
    """The newest weights have another one, or are the best."""
    (tmp_path / "model.ckpt-9.index").touch()
    if best == 6:
        (tmp_path / "best").mkdir()
        (tmp_path / "best" / "model.ckpt-6.index").touch()
    settings = {"settings": {"version_2_with_negative": True}}
    (tmp_path / "model.ckpt-9.json").write_text(json.dumps(settings))
    tuned = {"null_score_diff_threshold": 1.5}
    for step in (6, 9):
        expected = 1.5 if step == best else None
        text = json.dumps(tuned | {"global_step": step})
        (tmp_path / "null_threshold.json").write_text(text)
        task = checkpoint_files.recorded_task(str(tmp_path))
        assert task.get("null_score_diff_threshold") == expected
        assert task.get("tuned_step") == (step if expected else None)


def test_the_hash_of_a_task_is_of_its_kind_and_labels():
    """Users may change the length."""
    task = {"kind": "classes", "labels": ["a", "b"], "max_seq_length": 7}
    changes = {"max_seq_length": 9}, {"kind": "any"}, {"labels": ["b", "a"]}
    first, *others = (
        checkpoint_files.hashes_of(None, task | change)
        for change in ({}, *changes)
    )
    assert [x == first for x in others] == [True, False, False]


def test_only_a_head_of_another_shape_is_dropped(written):
    _, values = written
    named = fresh_variables()
    other = {"cls/predictions/output_bias": np.zeros(3, np.float32)}
    unknown = {"global_step": np.int64(3)}
    found = checkpoints.without_other_heads(values | other | unknown, named)
    assert found.keys() == (values.keys() | unknown) - other.keys()
