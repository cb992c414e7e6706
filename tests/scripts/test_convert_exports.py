"""convert_checkpoint to the Hub's folders and ONNX; LiteRT by Keras."""

import importlib.util
import json

import numpy as np
import pytest
import tensorflow as tf
import tokenizers

from bert.data.text import tokenization, tokenizer_files
from bert.data.text.casing import Casing
from bert.modeling import networks, task_heads
from bert.modeling.formats import conversion
from bert.modeling.formats.model import Model
from tests.helpers import model_files, small, text


def test_tokenizer_json_gives_the_tokens_of_the_vocabulary(tmp_path):
    vocab = str(tmp_path / "vocab.txt")
    text.write_vocabulary(tmp_path / "vocab.txt")
    tokenizer_files.write_pipeline(
        str(tmp_path), text.VOCABULARY, Casing(True, None)
    )
    path = str(tmp_path / "tokenizer.json")
    pipeline = tokenizers.Tokenizer.from_file(path)
    written = json.loads((tmp_path / "tokenizer.json").read_text())
    assert json.loads(pipeline.to_str()) == written  # no default is added
    ours = tokenization.FullTokenizer(vocab)
    for line in ("the Cat sat", "a dog, the cat", "the " + "cat" * 50):
        tokens = ["[CLS]", *ours.tokenize(line), "[SEP]"]
        assert pipeline.encode(line).tokens == tokens
    found = pipeline.encode("the [MASK]")
    assert found.tokens == ["[CLS]", "the", "[MASK]", "[SEP]"]


@pytest.mark.parametrize("pooler", [False, True])
def test_a_file_has_an_output_of_each_part_that_is_there(pooler):
    config = small.config()
    model = networks.build_pretraining_model(config)
    values = model_files.values_of(model)
    if not pooler:
        values = {n: x for n, x in values.items() if "pooler" not in n}
    model = Model("here", config, values)
    outputs = conversion.network_of(model).output.keys()
    expected = ["encoder"] + ["pooler"] * pooler
    assert conversion.parts_of(values, "onnx") == expected
    assert ("pooled_output" in outputs) == pooler


@pytest.mark.long
@pytest.mark.parametrize("act", ["gelu", "gelu_erf"])
def test_the_export_of_keras_writes_litert(act, tmp_path):
    """As docs/checkpoints.md says; this project has no code for it."""
    config = small.config(hidden_act=act)
    network = networks.build(config, task_heads.CLASSIFIER, 3)
    names = ("input_ids", "input_mask", "segment_ids")
    inputs = {name: np.ones((3, 7), np.int32) for name in names}
    expected = network(inputs)["logits"]
    path = str(tmp_path / "model.tflite")
    network.export(path, format="litert", verbose=False)
    runner = tf.lite.Interpreter(path).get_signature_runner()
    found = runner(**inputs)["logits"]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_missing_extra_is_an_error_before_anything_is_read(
    convert, tmp_path, monkeypatch
):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    error = convert(tmp_path / "nothing", "onnx", tmp_path / "x", 2)
    assert "--to=onnx: missing packages: tf2onnx, onnx, onnxruntime" in error
    assert "requirements/onnx.txt" in error
