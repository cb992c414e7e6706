import json

import keras
import numpy as np
import pytest

import bert
from bert.common.errors import UserError
from bert.data.pooling import PoolingConfig
from bert.modeling import checkpoints
from bert.modeling.formats import sentence_files
from bert.models import loading
from tests.helpers import (
    full_disk,
    library_files,
    small,
    text,
    tf_hub_exports,
)

ENCODER = checkpoints.ENCODER


def same(encoder, values):
    named = checkpoints.encoder_variables(encoder)
    assert named
    for name, variable in named.items():
        np.testing.assert_array_equal(variable.numpy(), values[name], name)


def test_the_length_and_the_pooling_of_sentence_transformers(tmp_path):
    values = library_files.pretrained(tmp_path / "model")
    library_files.huggingface(tmp_path / "theirs", values)
    pooling = PoolingConfig("cls", True)
    sentence_files.write(str(tmp_path / "theirs"), pooling, small.H, 5)
    encoder, tokenizer = bert.load_encoder(str(tmp_path / "theirs"))
    assert tokenizer.max_length == 5
    for to in ("google", "huggingface"):
        bert.save(encoder, str(tmp_path / to), tokenizer, to)
        again, tokens = bert.load_encoder(str(tmp_path / to))
        assert tokens.max_length == 5
        assert again.checkpoint.pooling_config == pooling


def test_the_folder_of_a_run(tmp_path):
    values = library_files.run(tmp_path / "run")
    encoder, tokenizer = bert.load_encoder(str(tmp_path / "run"))
    same(encoder, values)
    assert tokenizer.do_lower_case is False  # as recorded, not as guessed
    assert set(encoder.checkpoint.values) == {"output_weights", "output_bias"}


@pytest.mark.long
def test_a_tf_hub_encoder(tmp_path_factory):
    exports = tf_hub_exports.made(tmp_path_factory)
    encoder, tokenizer = bert.load_encoder(exports.encoder)
    named = checkpoints.model_variables(exports.model)
    same(encoder, {name: x.numpy() for name, x in named.items()})
    assert tokenizer.tokens == text.VOCABULARY  # of its assets


def test_without_a_vocabulary_there_is_no_tokenizer(tmp_path):
    values = library_files.pretrained(tmp_path / "model")
    path = str(tmp_path / "vocab.txt")
    (tmp_path / "model" / "vocab.txt").rename(path)
    encoder, tokenizer = bert.load_encoder(str(tmp_path / "model"))
    same(encoder, values)
    assert tokenizer is None
    _, tokenizer = bert.load_encoder(str(tmp_path / "model"), path)
    assert tokenizer.tokens == text.VOCABULARY


def test_a_folder_of_both_formats_is_the_checkpoint(folder, values, tmp_path):
    library_files.pretrained(tmp_path / "both")
    (tmp_path / "both" / "config.json").write_text("{}")
    same(bert.load_encoder(str(tmp_path / "both"))[0], values)


def test_a_path_is_a_string():
    with pytest.raises(UserError, match="path=None; expected a path, or a"):
        bert.load_encoder(None)


def test_a_published_size_or_a_path_or_a_config(folder, values):
    names = {path.stem for path in loading._CONFIGS.glob("*.json")}
    assert "bert_tiny" in names
    assert bert.new_encoder("tiny").count_params() == 4_385_920
    path = str(folder / "model" / "bert_config.json")
    for config in (path, library_files.config()):
        encoder = bert.new_encoder(config, seed=5)
        assert isinstance(encoder, keras.Model)
        assert encoder.name == "bert"
        assert encoder.output["pooled_output"].shape == (None, 15)


def test_an_encoder_has_a_policy_of_its_own():
    encoder = bert.new_encoder(library_files.config(), dtype="mixed_bfloat16")
    assert encoder.get_layer("layer_1").compute_dtype == "bfloat16"
    assert encoder.output["pooled_output"].dtype == "bfloat16"
    assert {x.dtype for x in encoder.weights} == {"float32"}
    assert keras.config.dtype_policy().name == "float32"


def test_the_given_tokenizer_of_a_model_of_texts_is_saved(folder, tmp_path):
    path = str(folder / "model")
    tokenizer = bert.Tokenizer(f"{path}/vocab.txt", strip_accents=False)
    model = bert.TextClassifier(path, ["x", "y"])
    for name, given in (("own", None), ("given", tokenizer)):
        bert.save(model, str(tmp_path / name), given)
        _, saved = bert.load_encoder(str(tmp_path / name))
        strips = (given or model.tokenizer).strips_accents
        assert saved.strips_accents is strips
    assert model.tokenizer.strips_accents is not tokenizer.strips_accents


def test_low_rank_updates_are_saved_in_the_weights(folder, values, tmp_path):
    encoder, tokenizer = bert.load_encoder(str(folder / "model"))
    before = encoder(tokenizer("the cat"))["pooled_output"]
    encoder.enable_lora(2)
    model = bert.classifier(encoder, 5)
    for variable in encoder.trainable_variables:
        variable.assign(0 * variable + 0.3)
    bert.save(model, str(tmp_path / "saved"), tokenizer)
    again, _ = bert.load_encoder(str(tmp_path / "saved"))
    found = again(tokenizer("the cat"))["pooled_output"]
    expected = encoder(tokenizer("the cat"))["pooled_output"]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(expected - before).max() > 0.01


def test_an_encoder_is_saved_alone(folder, values, tmp_path):
    encoder, _ = bert.load_encoder(str(folder / "model"))
    bert.save(encoder, str(tmp_path / "saved"))
    saved = checkpoints.read(str(tmp_path / "saved" / "bert_model.ckpt"))
    assert set(saved) == {x for x in values if x.startswith(ENCODER)}
    assert not (tmp_path / "saved" / "vocab.txt").exists()


def test_a_next_sentence_head_is_saved_for_transformers(tmp_path):
    encoder = bert.new_encoder(library_files.config())
    folder = tmp_path / "saved"
    bert.save(bert.next_sentence(encoder), str(folder), to="huggingface")
    described = json.loads((folder / "config.json").read_text())
    assert described["architectures"] == ["BertForNextSentencePrediction"]


def test_what_cannot_be_saved(tmp_path):
    encoder = bert.new_encoder(library_files.config())
    pooled = encoder(encoder.input)["pooled_output"]
    for name in ("mine", "classifier", "predictions"):
        own = keras.layers.Dense(2, name=name)(pooled)
        model = keras.Model(encoder.input, own)
        with pytest.raises(UserError, match=f"no name for {name}/kernel, "):
            bert.save(model, str(tmp_path / "a"))
    assert not (tmp_path / "a").exists()
    with pytest.raises(UserError, match="no encoder in the model"):
        bert.save(keras.Sequential([keras.Input((2,))]), str(tmp_path / "a"))
    with pytest.raises(UserError, match="to='onyx'; expected one of google"):
        bert.save(encoder, str(tmp_path / "a"), to="onyx")
    encoder.quantize("int8")
    with pytest.raises(UserError, match="no name for layer_0/.*/kernel_scale"):
        bert.save(encoder, str(tmp_path / "a"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    with pytest.raises(UserError, match="expected a new or empty folder"):
        bert.save(encoder, str(tmp_path / "full"))


@pytest.mark.parametrize(
    ("to", "name"),
    [("google", "saved"), ("huggingface", "saved"), ("google", "")],
)
def test_nothing_is_left_if_the_disk_is_full(to, name, tmp_path, monkeypatch):
    """A limit on the size of files stands for a full disk."""
    monkeypatch.chdir(tmp_path)  # "" is the current folder
    encoder = bert.new_encoder(library_files.config())
    message = f"{name}.*: cannot be written: .*File too large"
    with (
        full_disk.files_of_at_most(2000),
        pytest.raises(UserError, match=message),
    ):
        bert.save(encoder, name, to=to)
    assert list(tmp_path.iterdir()) == []
    left = tmp_path / name / ".partial"  # by a killed process
    left.mkdir(parents=True)
    bert.save(encoder, name, to=to)
    assert not left.exists() and [*(tmp_path / name).glob("*config.json")]


def test_a_config_is_checked():
    config = bert.BertConfig(vocab_size=np.int64(100))
    with pytest.raises(UserError, match="Expected `int`.*vocab_size"):
        bert.new_encoder(config)
