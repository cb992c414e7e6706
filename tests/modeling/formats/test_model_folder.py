"""Models of each format, with the other files of their folders."""

import dataclasses
import json
import shutil

import ml_dtypes
import numpy as np
import pytest

from bert.common.errors import UserError
from bert.data.pooling import PoolingConfig
from bert.data.text import tokenizer_files, vocabulary
from bert.data.text.casing import Casing
from bert.data.text.tokenizer import Tokenizer
from bert.modeling import checkpoints, encoder
from bert.modeling.formats import checkpoint_files, conversion
from bert.modeling.formats.model import Model
from bert.modeling.formats.model_folder import ModelFiles, ModelFolder
from tests.helpers import classifier_files, model_files, small

TOKENS = [*vocabulary.SPECIAL_TOKENS, "the", "cat", "[unused1]", "dog"]


def write_tokens(path, **changed):
    tokens = [changed.get(token, token) for token in TOKENS]
    vocabulary.write_vocabulary(str(path), tokens)
    return str(path)


@pytest.fixture
def google(tmp_path):
    folder = tmp_path / "google"
    folder.mkdir()
    (folder / "bert_model.ckpt.index").touch()
    (folder / "bert_config.json").write_text(small.config().to_json())
    write_tokens(folder / "vocab.txt")
    return folder


def test_flags_win_if_they_do_not_contradict(google, tmp_path):
    path = write_tokens(tmp_path / "more.txt", **{"[unused1]": "sun"})
    given = ModelFiles(vocab_file=path, do_lower_case=False)
    model = ModelFolder.open(str(google), given)
    assert model.tokenizer.tokens[7] == "sun"
    assert model.tokenizer.do_lower_case is False
    path = write_tokens(tmp_path / "other.txt", cat="sun")
    model = ModelFolder.open(str(google), ModelFiles(vocab_file=path))
    with pytest.raises(UserError, match=":7: token 'sun'; expected 'cat', as"):
        model.check()


def test_a_recorded_length_is_at_most_the_positions(google, tmp_path):
    """Also with a config of fewer positions, which a flag gives."""
    tokenizer_files.write_config(str(google), Casing(), 11)
    few = tmp_path / "few.json"
    few.write_text(small.config(max_position_embeddings=7).to_json())
    for path, length in ((None, 11), (str(few), 7)):
        model = ModelFolder.open(str(google), ModelFiles(bert_config_file=path))
        assert model.max_length == length


@pytest.mark.parametrize(
    ("format", "weights"),
    [
        ("google", "bert_model.ckpt.data-00000-of-00001"),
        ("google", "bert_model.ckpt.index"),
        ("huggingface", "model.safetensors"),
        ("openvino", "openvino_model.bin"),
        ("export", "variables/variables.data-00000-of-00001"),
    ],
)
def test_a_digest_has_all_that_predictions_depend_on(
    tmp_path, tmp_path_factory, format, weights
):
    folder = tmp_path / "copy"
    if format in ("google", "huggingface"):
        folder.mkdir()
        model = classifier_files.classifier_of(tmp_path)
        conversion.write(model, format, str(folder))
    else:
        path = classifier_files.shared_export(tmp_path_factory)
        path = path if format == "export" else f"{path}/openvino"
        shutil.copytree(path, folder)
        if format == "export":
            shutil.rmtree(folder / "openvino")

    def digest(**given):
        model = ModelFolder.open(str(folder), ModelFiles(**given))
        assert model.format == format
        return model.digest()

    found = [digest(do_lower_case=True)]
    (folder / "vectors.npy.partial").write_text("of an unfinished output")
    assert digest(do_lower_case=True) == found[0]
    found.append(digest(do_lower_case=False))
    found.append(digest(do_lower_case=True, strip_accents=False))
    tokenizer_files.write_config(str(folder), Casing(), 7)
    found.append(digest(do_lower_case=True))
    with open(folder / weights, "ab") as file:
        file.write(b"1")
    found.append(digest(do_lower_case=True))
    assert len({*found}) == 5


def test_a_folder_of_transformers(tmp_path):
    folder = str(tmp_path)
    (tmp_path / "model.safetensors").touch()
    tokenizer_files.write_config(folder, Casing(False, None))
    tokenizer_files.write_pipeline(folder, TOKENS, Casing(False, None))
    model = ModelFolder.open(folder)
    assert model.format == "huggingface"
    assert model.casing == Casing(False)
    assert model.tokenizer.tokens == TOKENS  # of the pipeline
    write_tokens(tmp_path / "vocab.txt")
    model = ModelFolder.open(folder, ModelFiles(do_lower_case=True))
    assert model.tokenizer.path == str(tmp_path / "vocab.txt")
    with pytest.raises(UserError, match="--do_lower_case=True; expected False"):
        model.check_casing(model.tokenizer)
    write_tokens(tmp_path / "vocab.txt", cat="sun")
    with pytest.raises(UserError, match="; correct one of the two files"):
        ModelFolder.open(folder).check_vocabulary()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"labels": ["a", "b", "a"]}, "the label 'a'; expected unique names"),
        ({"labels": ["a", " "]}, "the label ' '; expected unique names that a"),
        ({"decision": {"cuts": [1.0]}}, "1 cuts; expected 2, one for each"),
        ({"decision": {"log_weights": [1.0] * 3}}, "3 log_weights; expected 2"),
        ({"decision": {"temperature": 1e-320}}, "Expected `float` >= 1e-06"),
    ],
)
def test_a_damaged_task_is_one_line(tmp_path, values, message):
    task = {"kind": "classes", "labels": ["a", "b"]} | values
    (tmp_path / "task.json").write_text(json.dumps(task))
    with pytest.raises(UserError, match=f"{tmp_path}/task.json: {message}"):
        checkpoint_files.recorded_task(str(tmp_path))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["f2", "f4", ml_dtypes.bfloat16])
def test_weights_that_are_not_finite_are_named(kind, value):
    values = {"a": np.ones(3, kind), "b": np.array([0, value], kind)}
    model = Model("here", small.config(), values)
    with pytest.raises(UserError, match="here: b: NaN or infinite weights"):
        model.check_finite()
    values["b"] = np.arange(3)
    model.check_finite()


def test_the_digest_is_of_all_that_predictions_depend_on(google):
    def digest(**given):
        return ModelFolder.open(str(google), ModelFiles(**given)).digest()

    found = [digest(), digest(do_lower_case=False)]
    assert digest() == found[0]
    task = {"kind": "classes", "labels": ["a", "b"]}
    for name, content in (
        ("task.json", json.dumps(task)),
        ("bert_config.json", small.config(hidden_act="relu").to_json()),
        ("vocab.txt", "\n".join([*TOKENS, "more"])),
        ("bert_model.ckpt.data-00000-of-00001", "weights"),
    ):
        (google / name).write_text(content)
        found.append(digest())
    assert len(set(found)) == len(found)


def test_a_model_in_memory_reads_no_file():
    """Nor does a copy with other parts, which leaves the model as it is."""
    config = small.config()
    network = encoder.build_encoder(config)
    values = model_files.random_values(network)
    tokenizer = Tokenizer("vocab.txt", True, tokens=TOKENS)
    pooling = PoolingConfig()
    model = Model(
        *("missing", config, values, tokenizer),
        pooling_config=pooling,
        skipped=("global_step",),
    )
    changed = dataclasses.replace(
        model, task_json={"kind": "classes", "labels": ["a", "b"]}
    )
    assert (model.task_json, changed.task_json["labels"]) == (None, ["a", "b"])
    assert changed.path == "missing"
    assert changed.tokenizer is tokenizer
    assert changed.pooling_config is pooling
    assert changed.skipped == ("global_step",)
    assert changed.values is values
    named = checkpoints.encoder_variables(changed.network())
    for name, variable in named.items():
        np.testing.assert_array_equal(variable, values[name])
