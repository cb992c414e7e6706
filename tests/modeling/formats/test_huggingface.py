"""Names, shapes and files of Hugging Face transformers."""

import json

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from bert.common import outputs
from bert.common.errors import UserError
from bert.modeling import networks
from bert.modeling.config import ACTIVATIONS
from bert.modeling.formats import (
    checkpoint_files,
    huggingface,
    huggingface_config,
)
from bert.modeling.task_heads import CHOICES, CLASSIFIER, SPANS, TOKENS
from tests.helpers import model_files, small
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
    return {
        name: value
        for model in (
            networks.build_pretraining_model(small.config()),
            networks.build(small.config(), CLASSIFIER, 5),
            networks.build(small.config(), SPANS, 2),
        )
        for name, value in model_files.values_with_layer_10(model).items()
    }


@pytest.fixture
def folder(values, tmp_path):
    huggingface.write(str(tmp_path), small.config(), values)
    return tmp_path


def tensors_of(folder):
    return safetensors.numpy.load_file(folder / "model.safetensors")


def rewrite(folder, tensors):
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")


def assert_read(folder, values, unknown=()):
    found, skipped = huggingface.read(str(folder))
    assert skipped == [*unknown]
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
    config = json.loads((folder / "config.json").read_text())
    assert config["id2label"] == {str(i): f"LABEL_{i}" for i in range(5)}
    assert config["label2id"] == {f"LABEL_{i}": i for i in range(5)}


def test_weights_on_shared_storage_are_read_from_a_copy(
    folder, values, tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    outputs.copy_folder(str(folder), "ram://huggingface")
    assert_read("ram://huggingface", values)

    # The shapes are known before the weights are copied.
    expected = {name: [*x.shape] for name, x in values.items()}
    for path in (str(folder), "ram://huggingface"):
        assert huggingface.shapes_of(path) == expected
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "start", [b"", b"\xff" * 8, b"\x09" + bytes(7) + b"{}", b"\x02" + bytes(7)]
)
def test_damaged_weights_have_no_shapes(folder, start):
    """`read` names the damage."""
    (folder / "model.safetensors").write_bytes(start)
    assert huggingface.shapes_of(str(folder)) == {}
    with pytest.raises(UserError, match="model.safetensors"):
        huggingface.read(str(folder))


def test_an_encoder_alone_has_no_prefix(tmp_path, values):
    encoder = {n: v for n, v in values.items() if n.startswith("bert/")}
    huggingface.write(str(tmp_path), small.config(), encoder)
    assert "pooler.dense.weight" in tensors_of(tmp_path)
    assert_read(tmp_path, encoder)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == ["BertModel"]


@pytest.mark.parametrize("has_copies", [True, False])
def test_names_of_earlier_and_of_later_versions_are_read(
    folder, values, has_copies
):
    """Tied tensors have either name, or both; buffers are not weights."""
    tensors = tensors_of(folder)
    for copy, source in (
        ("decoder.weight", "bert.embeddings.word_embeddings.weight"),
        ("decoder.bias", "cls.predictions.bias"),
    ):
        tied = tensors[source] if has_copies else tensors.pop(source)
        tensors[f"cls.predictions.{copy}"] = tied
    for name in [x for x in tensors if "LayerNorm" in x]:
        old = name.replace(".weight", ".gamma").replace(".bias", ".beta")
        tensors[old] = tensors.pop(name)
    for buffer in ("position_ids", "token_type_ids"):
        tensors[f"bert.embeddings.{buffer}"] = np.arange(13)[None]
    tensors["my_head.weight"] = np.zeros(3, "f4")
    rewrite(folder, tensors)
    assert_read(folder, values, ["my_head.weight"])


def test_tied_tensors_that_differ_are_an_error(folder):
    tensors = tensors_of(folder)
    bias = tensors["cls.predictions.bias"]
    rewrite(folder, tensors | {"cls.predictions.decoder.bias": bias + 1})
    with pytest.raises(UserError, match="decoder.bias differs from cls.pred"):
        huggingface.read(str(folder))


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


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({}, "gelu_erf"),
        ({"hidden_act": "gelu"}, "gelu_erf"),
        ({"hidden_act": "gelu_python"}, "gelu_erf"),
        ({"hidden_act": "gelu_new"}, "gelu"),
        ({"hidden_act": "gelu_fast"}, "gelu"),
        ({"hidden_act": "gelu_pytorch_tanh"}, "gelu"),
    ],
)
def test_activations_and_defaults_are_those_of_transformers(
    tmp_path, theirs, ours
):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"hidden_size": 24} | theirs))
    config = huggingface_config.read(str(path))
    assert config.hidden_act == ours
    assert (config.vocab_size, config.type_vocab_size) == (30522, 2)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_written_activation_is_read_again(tmp_path, name):
    text = huggingface_config.to_json(small.config(hidden_act=name), {}, None)
    (tmp_path / "config.json").write_text(text)
    found = huggingface_config.read(str(tmp_path / "config.json")).hidden_act
    assert found == {"gelu_new": "gelu"}.get(name, name)  # one function


@pytest.mark.parametrize("length", [7, small.POSITIONS, 99])
def test_the_shorter_of_two_recorded_lengths_counts(folder, length):
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 13}')
    task = {"kind": "classes", "labels": [], "max_seq_length": length}
    checkpoint_files.write_task(str(folder), task)
    found = huggingface.read_task(str(folder))
    assert found["max_seq_length"] == min(length, 13)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model_type": "roberta"}, "model_type is 'roberta'; expected 'bert'"),
        ({"layer_norm_eps": 1e-5}, "layer_norm_eps is 1e-05; expected 1e-12"),
        ({"hidden_act": "silu"}, "hidden_act is 'silu'"),
    ],
)
def test_another_network_is_an_error(tmp_path, changed, message):
    (tmp_path / "config.json").write_text(json.dumps(changed))
    with pytest.raises(UserError, match=message):
        huggingface_config.read(str(tmp_path / "config.json"))


@pytest.mark.parametrize(
    ("head", "name", "kind", "labels", "read_kind"),
    [
        (CLASSIFIER, "SequenceClassification", "multi_label", 2, "multi_label"),
        (CLASSIFIER, "SequenceClassification", "regression", 0, "regression"),
        (TOKENS, "TokenClassification", "any", 2, None),
        (TOKENS, "TokenClassification", None, 0, None),
        (CHOICES, "MultipleChoice", None, 0, None),
    ],
)
def test_the_architecture_decides_which_head_classifier_is(
    tmp_path, head, name, kind, labels, read_kind
):
    config, count = small.config(), labels or 1
    task = kind and {"kind": kind, "labels": ["no", "yes"][:labels]}
    values = model_files.values_of(networks.build(config, head, count))
    huggingface.write(str(tmp_path), config, values, task)
    tensors = tensors_of(tmp_path)
    assert tensors["classifier.weight"].shape == (count, H)
    np.testing.assert_array_equal(tensors["classifier.bias"], np.zeros(count))
    written = json.loads((tmp_path / "config.json").read_text())
    assert written["architectures"] == [f"BertFor{name}"]
    assert_read(tmp_path, values)

    # Only a task.json has the kind of token labels; a stale one is ignored.
    length = {"max_seq_length": small.POSITIONS}
    known = task and task | {"kind": read_kind} | length
    assert huggingface.read_task(str(tmp_path)) == known
    if task:
        checkpoint_files.write_task(str(tmp_path), task | length)
        assert huggingface.read_task(str(tmp_path)) == task | length
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
