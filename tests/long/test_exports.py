"""Conversions loaded by other systems; only in `make test-long`."""

import json
import pathlib
import subprocess

import numpy as np
import pytest

import bert
import convert_checkpoint
from bert.common import tensor_files
from bert.data.text import tokenizer_files
from bert.data.text.casing import Casing
from bert.modeling import task_models
from bert.modeling.formats import checkpoint_files
from tests.helpers import model_files

ROOT = pathlib.Path(__file__).parents[2]
PEERS = ROOT / ".venv-peers"
SCRIPTS = ROOT / "benchmarks" / "peers"
SENTENCES = ["the cat", "a dog sat the cat", "the"]
pytestmark = pytest.mark.long


def written(folder, build, act="gelu"):
    """A Google folder with random weights, and its model."""
    folder.mkdir()
    model = build(model_files.write_sizes(folder, hidden_act=act))
    rng = np.random.default_rng(3)
    for variable in model.variables:
        variable.assign(rng.normal(0, 0.2, variable.shape))
    values = model_files.values_of(model)
    tensor_files.write(str(folder / "bert_model.ckpt"), values)
    tokenizer_files.write_config(str(folder), Casing(True, None))
    return model


def transformers(name, folder, out):
    """Outputs and loading report of a class of transformers."""
    subprocess.run(
        [
            PEERS / "huggingface" / "bin" / "python",
            SCRIPTS / "huggingface_outputs.py",
            *(name, folder, out),
        ],
        input="\n".join(SENTENCES) + "\n",
        text=True,
        check=True,
    )
    found = dict(np.load(out))
    for kind in ("missing", "unexpected", "mismatched"):
        assert found[kind].tolist() == [], kind
    return found


def classifier(config):
    return task_models.build_classifier(config, 2)


@pytest.mark.parametrize("act", ["gelu", "gelu_erf"])
def test_transformers_loads_a_classifier_and_its_labels(
    act, run_script, tmp_path
):
    model = written(tmp_path / "google", classifier, act)
    task = {"kind": "classes", "labels": ["negative", "positive"]}
    checkpoint_files.write_task(str(tmp_path / "google"), task)
    code, _, err = run_script(
        convert_checkpoint,
        to="huggingface",
        input=tmp_path / "google",
        output=tmp_path / "hf",
    )
    assert code == 0, err
    (tmp_path / "hf" / "vocab.txt").unlink()  # tokenizer.json is enough
    found = transformers(
        "AutoModelForSequenceClassification",
        tmp_path / "hf",
        tmp_path / "o.npz",
    )
    tokenizer = bert.Tokenizer(str(tmp_path / "google" / "vocab.txt"))
    inputs = tokenizer(SENTENCES)
    np.testing.assert_array_equal(found["in_input_ids"], inputs["input_ids"])
    logits = np.array(model(inputs)["logits"])
    np.testing.assert_allclose(found["out_logits"], logits, atol=1e-5)
    assert str(found["labels"]) == "{0: 'negative', 1: 'positive'}"


@pytest.mark.parametrize("act", ["gelu", "gelu_erf"])
def test_onnx_runtime_gives_the_same_outputs(act, tmp_path):
    """Converted in one environment, and run in one without TensorFlow."""
    model = written(tmp_path / "google", classifier, act)
    subprocess.run(
        [
            PEERS / "onnx" / "bin" / "python",
            ROOT / "convert_checkpoint.py",
            f"--input={tmp_path / 'google'}",
            *("--to=onnx", f"--output={tmp_path / 'onnx'}"),
        ],
        check=True,
    )
    tokenizer = bert.Tokenizer(str(tmp_path / "google" / "vocab.txt"))
    inputs = tokenizer(SENTENCES)
    np.savez(tmp_path / "inputs.npz", **inputs)
    paths = [tmp_path / x for x in ("inputs.npz", "out.npz")]
    subprocess.run(
        [
            PEERS / "huggingface" / "bin" / "python",
            SCRIPTS / "onnx_outputs.py",
            *(tmp_path / "onnx" / "model.onnx", *paths),
        ],
        check=True,
    )
    found = np.load(tmp_path / "out.npz")["logits"]
    logits = np.array(model(inputs)["logits"])
    np.testing.assert_allclose(found, logits, atol=1e-5)
    config = json.loads((tmp_path / "onnx" / "bert_config.json").read_text())
    assert config["hidden_act"] == act
