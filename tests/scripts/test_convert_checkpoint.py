"""convert_checkpoint from one format to another, and with wrong inputs."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

import convert_checkpoint
from bert.common.formats import tensor_files
from bert.data.text import tokenizer_files
from bert.data.text.casing import Casing
from bert.modeling import networks, task_heads
from bert.modeling.config import BertConfig
from bert.modeling.formats import (
    checkpoint_files,
    conversion,
    model_garden,
)
from tests.helpers import garden_files, model_files, small, text

SIZE = len(text.VOCABULARY)
WORDS = "bert/embeddings/word_embeddings"


def random_values(model, seed=5):
    return model_files.random_values(model, 0.3, seed)


def write_google(folder, values, **changed):
    folder.mkdir(exist_ok=True)
    model_files.write_sizes(folder, **changed)
    tokenizer_files.write_config(str(folder), Casing(True, None))
    tensor_files.write(str(folder / "bert_model.ckpt"), values)
    return folder


@pytest.fixture(scope="module")
def values():
    """Encoder, pre-training heads and classifier."""
    config = small.config(vocab_size=SIZE)
    values = random_values(networks.build_pretraining_model(config))
    model = networks.build(config, task_heads.CLASSIFIER, 5)
    heads = random_values(model, 7)
    heads = {n: v for n, v in heads.items() if n.startswith("output_")}
    return {**values, **heads}


@pytest.fixture(scope="module")
def good(tmp_path_factory, values):
    """A good folder of each format."""
    top = tmp_path_factory.mktemp("good")
    google = write_google(top / "google", values)
    flags = [f"--input={google}", f"--output={top / 'huggingface'}"]
    convert_checkpoint.main(["", "--to=huggingface", *flags])
    garden = shutil.copytree(google, top / "model_garden")
    for path in garden.glob("bert_model*"):
        path.unlink()
    garden_files.write(garden, small.config(vocab_size=SIZE), values)
    return top


@pytest.fixture
def google(tmp_path, good):
    return shutil.copytree(good / "google", tmp_path / "google")


def bytes_of(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())}


@pytest.mark.parametrize("source", ["huggingface", "model_garden"])
def test_each_format_has_the_same_weights(convert, tmp_path, good, source):
    """The fixture `good` has converted google to huggingface."""
    out = convert(good / source, "google", tmp_path / "google")
    assert "encoder, pooler, masked LM, next sentence, classifier" in out
    assert bytes_of(tmp_path / "google") == bytes_of(good / "google")


def test_the_card_names_the_model_that_a_run_began_with(
    convert, tmp_path, google, no_comparison
):
    described = {"settings": {"init_checkpoint": "hf://org/base"}}
    (google / "bert_model.ckpt.json").write_text(json.dumps(described))
    convert(google, "huggingface", tmp_path / "hf")
    assert 'base_model: "org/base"' in (tmp_path / "hf/README.md").read_text()


def export_for_hub(folder, google, values):
    """A SavedModel with the names and shapes of TF-Hub's BERTs."""
    config = BertConfig.from_json_file(f"{google}/bert_config.json")
    named = {n: v for n, v in values.items() if "output_" not in n}
    root = tf.train.Checkpoint()
    root.variables = [*model_garden.named_variables(config, named).values()]
    root.vocab_file = tf.saved_model.Asset(str(google / "vocab.txt"))
    root.do_lower_case = tf.Variable(False, trainable=False)
    root.strip_accents = tf.Variable(True, trainable=False)
    call = tf.function(tf.math.erf, [tf.TensorSpec([None])])
    root.call = call
    tf.saved_model.save(root, str(folder), signatures={"d": call})
    return named


def test_a_hub_model_is_read_without_its_graph(
    convert, tmp_path, google, values, no_comparison
):
    named = export_for_hub(tmp_path / "hub", google, values)
    convert(tmp_path / "hub", "google", tmp_path / "new")
    found = tensor_files.read(str(tmp_path / "new" / "bert_model.ckpt"))
    assert set(found) == set(named)
    for name, value in found.items():
        assert value.tobytes() == named[name].tobytes(), name
    config = BertConfig.from_json_file(f"{tmp_path}/new/bert_config.json")
    expected = small.config(
        vocab_size=SIZE,
        hidden_act="gelu_erf",
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
        initializer_range=0.02,
    )
    assert config == expected
    casing = checkpoint_files.recorded_casing(f"{tmp_path}/new/bert_model.ckpt")
    assert casing == Casing(False, True)
    vocabulary = (tmp_path / "new" / "vocab.txt").read_text()
    assert vocabulary == (google / "vocab.txt").read_text()


@pytest.mark.parametrize("has_head", [True, False])
def test_words_are_added_to_unused_slots_and_then_at_the_end(
    convert, tmp_path, google, values, no_comparison, has_head
):
    tables = [WORDS, "cls/predictions/output_bias"][: 1 + has_head]
    if not has_head:
        values = {n: x for n, x in values.items() if n.startswith("bert/")}
        tensor_files.write(str(google / "bert_model.ckpt"), values)
    tokens = list(text.VOCABULARY)
    tokens[8] = "[unused1]"
    (google / "vocab.txt").write_text("\n".join(tokens) + "\n")
    words = tmp_path / "words.txt"
    words.write_text("trees\n\ncat\nhouses\n")
    convert(
        google,
        "google",
        tmp_path / "new",
        extend_vocab=words,
        do_lower_case=True,
    )
    lines = (tmp_path / "new" / "vocab.txt").read_text().split()
    assert lines == [*tokens[:8], "trees", *tokens[9:], "houses"]
    found = tensor_files.read(str(tmp_path / "new" / "bert_model.ckpt"))
    ids = {token: i for i, token in enumerate(tokens)}
    for row, split in ((8, ["tree", "##s"]), (SIZE, ["house", "##s"])):
        old = [ids[token] for token in split]
        for name in tables:
            np.testing.assert_allclose(
                found[name][row], values[name][old].mean(0), atol=1e-6
            )
    rows = [i for i in range(SIZE) if i != 8]
    for name, value in values.items():
        kept = rows if name in tables else slice(None)
        np.testing.assert_array_equal(found[name][kept], value[kept])
    assert found.keys() == values.keys()
    config = BertConfig.from_json_file(f"{tmp_path}/new/bert_config.json")
    assert config.vocab_size == SIZE + 1 == len(found[WORDS])


def test_outputs_that_differ_are_rejected(
    convert, tmp_path, google, monkeypatch
):
    """Nothing is written when the outputs differ."""
    write = conversion.write

    def write_wrong(bert, target, folder):
        bias = bert.values["bert/pooler/dense/bias"]
        bert.values["bert/pooler/dense/bias"] = bias + 0.01
        write(bert, target, folder)

    monkeypatch.setattr(conversion, "write", write_wrong)
    err = convert(google, "huggingface", tmp_path / "hf", code=2)
    assert "outputs differ by" in err
    assert not (tmp_path / "hf").exists()


def test_weights_that_are_not_finite_are_named(convert, tmp_path, values):
    name = "bert/encoder/layer_1/output/dense/kernel"
    bad = np.full_like(values[name], np.inf)
    google = write_google(tmp_path / "google", values | {name: bad})
    err = convert(google, "openvino", tmp_path / "new", code=2)
    line = f"/google/bert_model.ckpt: {name}: NaN or infinite weights; "
    assert line in err and not (tmp_path / "new").exists()
