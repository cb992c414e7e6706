"""Names, shapes and files of Hugging Face transformers."""

import json

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from bert.common import outputs
from bert.common.errors import UserError
from bert.modeling import checkpoints, networks, task_heads
from bert.modeling.formats import (
    checkpoint_files,
    huggingface,
    huggingface_config,
)
from tests.helpers import small
from tests.helpers.small import H

THEIRS = {  # one of each kind, with the original's name
    "bert.embeddings.word_embeddings.weight": "bert/embeddings/word_embeddings",
    "bert.embeddings.LayerNorm.weight": "bert/embeddings/LayerNorm/gamma",
    "bert.embeddings.LayerNorm.bias": "bert/embeddings/LayerNorm/beta",
    "bert.encoder.layer.1.attention.self.query.weight": (
        "bert/encoder/layer_1/attention/self/query/kernel"
    ),
    "bert.encoder.layer.1.attention.output.LayerNorm.bias": (
        "bert/encoder/layer_1/attention/output/LayerNorm/beta"
    ),
    "bert.encoder.layer.0.intermediate.dense.weight": (
        "bert/encoder/layer_0/intermediate/dense/kernel"
    ),
    "bert.pooler.dense.bias": "bert/pooler/dense/bias",
    "cls.predictions.bias": "cls/predictions/output_bias",
    "cls.predictions.transform.dense.weight": (
        "cls/predictions/transform/dense/kernel"
    ),
    "cls.predictions.transform.LayerNorm.weight": (
        "cls/predictions/transform/LayerNorm/gamma"
    ),
    "cls.seq_relationship.weight": "cls/seq_relationship/output_weights",
    "classifier.bias": "output_bias",
    "classifier.weight": "output_weights",
    "qa_outputs.weight": "cls/squad/output_weights",
}


@pytest.fixture(scope="module")
def values():
    """Random weights of the encoder and of every head."""
    rng = np.random.default_rng(5)
    named = {}
    for model in (
        networks.build_pretraining_model(small.config()),
        networks.build(small.config(), task_heads.CLASSIFIER, 5),
        networks.build(small.config(), task_heads.SPANS, 2),
    ):
        named |= checkpoints.model_variables(model)
    return {
        name: rng.normal(0, 1, v.shape).astype(np.float32)
        for name, v in named.items()
    }


@pytest.fixture
def folder(values, tmp_path):
    huggingface.write(str(tmp_path), small.config(), values)
    return tmp_path


def tensors_of(folder):
    return safetensors.numpy.load_file(folder / "model.safetensors")


def rewrite(folder, tensors):
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")


def assert_read(folder, values):
    found, skipped = huggingface.read(str(folder))
    assert skipped == []
    assert set(found) == set(values)
    for name, value in found.items():
        assert value.tobytes() == values[name].tobytes(), name
        assert value.flags.c_contiguous


def test_names_and_transposes_are_those_of_transformers(folder, values):
    tensors = tensors_of(folder)
    assert len(tensors) == len(values)
    for theirs, ours in THEIRS.items():
        expected = values[ours].T if ours.endswith("kernel") else values[ours]
        np.testing.assert_array_equal(tensors[theirs], expected, theirs)


def test_weights_on_shared_storage_are_read_from_a_copy(
    folder, values, tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    outputs.copy_folder(str(folder), "ram://huggingface")
    assert_read("ram://huggingface", values)
    assert set(tmp_path.iterdir()) == before


def test_an_encoder_alone_has_no_prefix(tmp_path, values):
    encoder = {n: v for n, v in values.items() if n.startswith("bert/")}
    huggingface.write(str(tmp_path), small.config(), encoder)
    assert "pooler.dense.weight" in tensors_of(tmp_path)
    assert_read(tmp_path, encoder)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == ["BertModel"]


def test_gamma_beta_buffers_and_tied_copies_are_understood(folder, values):
    tensors = tensors_of(folder)
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): value
        for name, value in tensors.items()
    }
    assert any("gamma" in name for name in old)
    for buffer in ("position_ids", "token_type_ids"):
        old[f"bert.embeddings.{buffer}"] = np.arange(13)[None]
    old["cls.predictions.decoder.weight"] = tensors[
        "bert.embeddings.word_embeddings.weight"
    ]
    old["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"]
    rewrite(folder, old)
    assert_read(folder, values)


def test_a_bias_under_the_decoders_name_alone_is_found(folder, values):
    tensors = tensors_of(folder)
    tensors["cls.predictions.decoder.bias"] = tensors.pop(
        "cls.predictions.bias"
    )
    rewrite(folder, tensors)
    assert_read(folder, values)


def test_shards_are_joined_by_their_index(folder, values):
    tensors = tensors_of(folder)
    (folder / "model.safetensors").unlink()
    parts = {"a.safetensors": {}, "b.safetensors": {}}
    for index, (name, value) in enumerate(sorted(tensors.items())):
        parts["ab"[index % 2] + ".safetensors"][name] = value
    for file, part in parts.items():
        safetensors.numpy.save_file(part, folder / file)
    where = {name: file for file, part in parts.items() for name in part}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": where}))
    assert_read(folder, values)


def test_a_pickle_is_converted_with_its_head(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    for named in ("BertForPreTraining", "BertForTokenClassification"):
        config = folder / "config.json"
        values = json.loads(config.read_text()) | {"architectures": [named]}
        config.write_text(json.dumps(values))
        with pytest.raises(UserError, match=f": {named}.from_pretrained"):
            huggingface.read(str(folder))


@pytest.mark.parametrize(
    "dtype",
    ["F8_E4M3", "F8_E5M2", "F8_E8M0", "F6_E2M3", "F4"],
)
def test_quantized_weights_are_named(folder, dtype):
    bits = int(dtype[1])
    entry = {"dtype": dtype, "shape": [8], "data_offsets": [0, bits]}
    name = "bert.embeddings.LayerNorm.weight"
    header = json.dumps({"__metadata__": {}, name: entry}).encode()
    content = len(header).to_bytes(8, "little") + header + bytes(bits)
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(UserError) as error:
        huggingface.read(str(folder))
    assert str(error.value) == (
        f"{folder}/model.safetensors: {name} is {dtype}; expected "
        "weights of float16, bfloat16 or float32; convert the weights before "
        "quantization"
    )


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_other_floats_become_float32(folder, values, dtype):
    rewrite(folder, {n: v.astype(dtype) for n, v in tensors_of(folder).items()})
    found, _ = huggingface.read(str(folder))
    for name, value in found.items():
        assert value.dtype == np.float32
        expected = values[name].astype(dtype).astype(np.float32)
        np.testing.assert_array_equal(value, expected, name)


def test_tensors_of_other_heads_are_listed(folder):
    tensors = {**tensors_of(folder), "my_head.weight": np.zeros(3, "f4")}
    rewrite(folder, tensors)
    assert huggingface.read(str(folder))[1] == ["my_head.weight"]


@pytest.mark.parametrize(
    ("theirs", "ours", "back"),
    [
        ("gelu", "gelu_erf", "gelu"),
        ("gelu_python", "gelu_erf", "gelu"),
        ("gelu_new", "gelu", "gelu_new"),
        ("gelu_fast", "gelu", "gelu_new"),
        ("gelu_pytorch_tanh", "gelu", "gelu_new"),
        ("relu", "relu", "relu"),
    ],
)
def test_the_activation_is_kept_under_its_other_name(
    tmp_path, theirs, ours, back
):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"hidden_act": theirs, "hidden_size": 24}))
    config = huggingface_config.read(str(path))
    assert config.hidden_act == ours
    values = {"bert/pooler/dense/bias": np.zeros(H, np.float32)}
    huggingface.write(str(tmp_path), config, values)
    written = json.loads(path.read_text())
    assert written["hidden_act"] == back
    assert huggingface_config.read(str(path)) == config


def test_missing_sizes_are_the_defaults_of_transformers(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    config = huggingface_config.read(str(tmp_path / "config.json"))
    assert (config.vocab_size, config.type_vocab_size) == (30522, 2)
    assert config.hidden_act == "gelu_erf"


def test_a_classifier_has_a_number_of_labels(folder):
    config = json.loads((folder / "config.json").read_text())
    assert config["id2label"] == {str(i): f"LABEL_{i}" for i in range(5)}
    assert config["label2id"] == {f"LABEL_{i}": i for i in range(5)}


@pytest.mark.parametrize(
    ("build", "name", "task", "known"),
    [
        (
            lambda config: networks.build(config, task_heads.CLASSIFIER, 2),
            "BertForSequenceClassification",
            {"kind": "multi_label", "labels": ["no", "yes"]},
            {"kind": "multi_label", "labels": ["no", "yes"]},
        ),
        (
            lambda config: networks.build(config, task_heads.CLASSIFIER, 1),
            "BertForSequenceClassification",
            {"kind": "regression", "labels": []},
            {"kind": "regression", "labels": []},
        ),
        (
            lambda config: networks.build(config, task_heads.TOKENS, 2),
            "BertForTokenClassification",
            {"kind": "any", "labels": ["no", "yes"]},
            {"kind": None, "labels": ["no", "yes"]},
        ),
        (
            lambda config: networks.build(config, task_heads.CHOICES, 1),
            "BertForMultipleChoice",
            None,
            None,
        ),
    ],
)
def test_the_architecture_decides_which_head_classifier_is(
    tmp_path, build, name, task, known
):
    config = small.config()
    values = {
        name: np.array(v)
        for name, v in checkpoints.model_variables(build(config)).items()
    }
    huggingface.write(str(tmp_path), config, values, task)
    tensors = tensors_of(tmp_path)
    assert tensors["classifier.weight"].shape[1] == H
    assert (
        tensors["classifier.bias"].shape
        == tensors["classifier.weight"].shape[:1]
    )
    written = json.loads((tmp_path / "config.json").read_text())
    assert written["architectures"] == [name]
    assert_read(tmp_path, values)
    length = {"max_seq_length": small.POSITIONS}
    known = known and known | length
    assert huggingface.read_task(str(tmp_path)) == known
    other = {"kind": "classes", "labels": ["of", "earlier", "weights"]}
    checkpoint_files.write_task(str(tmp_path), other)
    assert huggingface.read_task(str(tmp_path)) == known

    # Only named labels of texts have such a truncation.
    path = tmp_path / "tokenizer_config.json"
    path.write_text('{"truncation_side": "left"}')
    if known and known["kind"]:
        assert huggingface.read_tokenizer(str(tmp_path)).tokens is None
        known |= {"truncate": "tail"}
        assert huggingface.read_task(str(tmp_path)) == known
    else:
        with pytest.raises(UserError, match="truncation_side is 'left'; exp"):
            huggingface.read_tokenizer(str(tmp_path))


@pytest.mark.parametrize(
    "id2label", [None, {"0": "LABEL_0", "1": "LABEL_1"}, {"1": "a"}]
)
def test_labels_without_names_are_not_named(tmp_path, id2label):
    values = {
        "architectures": ["BertForTokenClassification"],
        "id2label": id2label,
    }
    (tmp_path / "config.json").write_text(json.dumps(values))
    assert huggingface.read_task(str(tmp_path)) is None


def test_two_heads_of_one_name_are_rejected(tmp_path, values):
    both = {**values, "cls/ner/output_weights": np.zeros([3, H], "f4")}
    with pytest.raises(UserError, match="BertForTokenClassification; expected"):
        huggingface.write(str(tmp_path), small.config(), both)
    assert list(tmp_path.iterdir()) == []
