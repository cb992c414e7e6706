"""Folders of sentence-transformers, in the schemas of version 5.1 and 6.2."""

import json
import shutil

import numpy as np
import pytest

import bert
import convert_checkpoint
import export_hub
import extract_features
from bert.common.errors import UserError
from bert.data.pooling import PoolingConfig
from bert.modeling.formats import sentence_files
from bert.modeling.formats.model_folder import ModelFolder
from tests.helpers import library_files

pytestmark = pytest.mark.usefixtures("eagerly")
TEXTS = ["The red fish sees", "a dog", "tree " * 17]
PROMPTS = {"query": "the cat ", "document": ""}
OLD = "sentence_transformers.models."
NEW = {
    "Transformer": "sentence_transformers.base.modules.transformer.",
    "Pooling": "sentence_transformers.sentence_transformer.modules.pooling.",
    "Normalize": "sentence_transformers.base.modules.normalize.",
}


def write(folder, kinds, pooling, **prompts):
    """Files beside a checkpoint; `kinds` are names of modules, or types."""
    (folder / "1_Pooling").mkdir(exist_ok=True)
    paths = ["", "1_Pooling", "2_Dense" if "Dense" in kinds[-1] else "2_Norm"]
    types = [x if "." in x else NEW[x] + x for x in kinds]
    modules = [{"path": p, "type": t} for p, t in zip(paths, types)]
    for name, values in (
        ("modules", modules),
        ("1_Pooling/config", pooling),
        ("config_sentence_transformers", {"prompts": PROMPTS, **prompts}),
        ("sentence_bert_config", {"max_seq_length": 11}),
    ):
        (folder / f"{name}.json").write_text(json.dumps(values))


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    folder = tmp_path_factory.mktemp("values") / "model"
    return library_files.pretrained(folder)


@pytest.fixture
def folder(tmp_path, values):
    library_files.huggingface(tmp_path / "model", values)
    return tmp_path / "model"


CLS_KEY, MEAN_KEY = "pooling_mode_cls_token", "pooling_mode_mean_tokens"
BOTH = ["Transformer", "Pooling"]


@pytest.mark.parametrize(
    ("kinds", "pooling", "expected"),
    [
        ([OLD + x for x in BOTH], {CLS_KEY: True, MEAN_KEY: False}, "cls"),
        (BOTH, {"pooling_mode": "cls"}, "cls"),
        ([OLD + x for x in BOTH], {CLS_KEY: False, MEAN_KEY: True}, "mean"),
        (BOTH, {"pooling_mode": ["mean"]}, "mean"),
        (BOTH, {}, "mean"),
        (BOTH, {"include_prompt": True}, "mean"),
    ],
)
def test_the_pooling_of_any_version_is_read(tmp_path, kinds, pooling, expected):
    for end in ([], ["Normalize"]):
        write(tmp_path, [*kinds, *end], pooling)
        vectors = sentence_files.read(str(tmp_path))
        assert vectors == PoolingConfig(expected, bool(end), PROMPTS)


def test_without_prompts_it_does_not_matter_whether_they_are_pooled(tmp_path):
    write(tmp_path, BOTH, {"include_prompt": False}, prompts={"query": ""})
    assert sentence_files.read(str(tmp_path)).mistake is None


@pytest.mark.parametrize(
    ("kinds", "pooling", "message"),
    [
        ([f"{OLD}Dense"], {}, "modules are (.*), 2_Dense .*Dense.; expected T"),
        (["custom.Normalize"], {}, "the modules are .*custom.Normalize"),
        ([], {"pooling_mode": "lasttoken"}, "pooling lasttoken; expected one "),
        ([], {"pooling_mode_weightedmean_tokens": True}, "pooling weightedmea"),
        ([], {"pooling_mode": ["cls", "max"]}, "pooling cls and max; expected"),
        ([], {"pooling_mode": 3}, "pooling 3; expected one of mean, max, cls"),
        ([], {"include_prompt": False}, "include_prompt is false; expected tr"),
    ],
)
def test_what_is_not_supported_is_named(folder, kinds, pooling, message):
    write(folder, ["Transformer", "Pooling", *kinds], pooling)
    encoder, tokenizer = bert.load_encoder(str(folder))  # its weights are fine
    with pytest.raises(UserError, match=message):
        bert.embed("a dog", (encoder, tokenizer))
    with pytest.raises(UserError, match=message):
        bert.save(encoder, str(folder / "saved"), tokenizer)
    assert not (folder / "saved").exists()
    assert bert.embed("a dog", (encoder, tokenizer), pooling="cls").size


def test_a_cross_encoder_has_no_vectors(folder):
    write(folder, ["Transformer"], {})
    assert ModelFolder.open(str(folder)).pooling_config is None


def test_texts_are_lower_cased_and_keep_their_accents(folder):
    (folder / "tokenizer.json").unlink()
    for do_lower_case, expected in ((False, False), (True, True)):
        (folder / "tokenizer_config.json").write_text(
            '{"do_lower_case": false}'
        )
        (folder / "sentence_bert_config.json").write_text(
            json.dumps({"do_lower_case": do_lower_case})
        )
        casing = ModelFolder.open(str(folder)).casing
        assert casing.do_lower_case is expected
        assert casing.strips_accents is False


@pytest.mark.parametrize("size", [5, 99])
@pytest.mark.parametrize("kinds", [BOTH, [*BOTH, "Normalize"]])
def test_embed_takes_pooling_prompt_and_size_of_the_folder(folder, kinds, size):
    path = str(folder)
    prompted = [PROMPTS["query"] + text for text in TEXTS]
    plain, expected = (
        bert.embed(texts, path, pooling="cls", max_length=11)[:, :size]
        for texts in (TEXTS, prompted)
    )
    if "Normalize" in kinds:
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    further = {"default_prompt_name": "query", "truncate_dim": size}
    write(folder, kinds, {"pooling_mode": "cls"}, **further)
    for model in (path, bert.load_encoder(path)):
        for named in ({}, {"prompt": "query"}, {"pooling": "cls"}):
            found = bert.embed(TEXTS, model, **named)
            np.testing.assert_allclose(found, expected, atol=1e-6)
    told = bert.embed(TEXTS, path, normalize=False, prompt="document")
    np.testing.assert_allclose(told, plain, atol=1e-6)
    assert bert.embed([], path).shape == (0, expected.shape[1])
    with pytest.raises(UserError, match="prompt='q'; expected query, document"):
        bert.embed("a dog", path, prompt="q")


def test_the_layout_before_version_2_has_the_network_in_a_folder(
    folder, tmp_path
):
    """The `config.json` at its root has the version alone."""
    write(folder, [OLD + x for x in BOTH], {CLS_KEY: True})
    old = tmp_path / "old"
    network = old / "0_Transformer"
    shutil.copytree(folder, network)
    for name in ("modules.json", "1_Pooling"):
        (network / name).rename(old / name)
    (old / "config.json").write_text('{"__version__": "0.3.8"}')
    modules = json.loads((old / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (old / "modules.json").write_text(json.dumps(modules))
    for path in (old, network):
        model = ModelFolder.open(str(path))
        assert model.path == str(network)
        assert model.pooling_config.pooling == "cls"
        assert model.max_length == 11


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("modules", '[{"path": "../x", "type": ""}]'),
        ("1_Pooling/config", "[]"),
        ("config_sentence_transformers", '{"prompts": 7}'),
        ("config_sentence_transformers", '{"truncate_dim": 0}'),
    ],
)
def test_damaged_files(folder, name, content):
    write(folder, ["Transformer", "Pooling"], {})
    (folder / f"{name}.json").write_text(content)
    with pytest.raises(UserError, match=f"{folder}/{name}.json: "):
        bert.embed("a dog", str(folder))


@pytest.mark.parametrize(
    "target",
    [
        "google",
        "huggingface",
        pytest.param("tf_hub", marks=pytest.mark.slow),
    ],
)
def test_a_written_model_has_the_same_files(folder, tmp_path, target):
    kinds = [OLD + x for x in ("Transformer", "Pooling", "Normalize")]
    further = {"default_prompt_name": "query", "truncate_dim": 5}
    write(folder, kinds, {"pooling_mode": "max"}, **further)
    output = str(tmp_path / target)
    if target == "tf_hub":
        argv = [f"--model_checkpoint_path={folder}", f"--export_path={output}"]
        export_hub.main(["", *argv])
    else:
        argv = [f"--to={target}", f"--input={folder}", f"--output={output}"]
        convert_checkpoint.main(["", *argv])
    prefix = ["/bert_model.ckpt"] * (target == "google")
    for end in ("", *prefix):
        model = ModelFolder.open(output + end)
        expected = PoolingConfig("max", True, PROMPTS, "query", 5)
        assert (model.pooling_config, model.max_length) == (expected, 11)


def test_features_of_texts_are_those_of_the_folder(folder, tmp_path, capsys):
    """Prompt, size and normalization are of whole texts, not of tokens."""
    (tmp_path / "lines").write_text("".join(f"{x}\n" for x in TEXTS))
    output = tmp_path / "out.jsonl"

    def extract(*words):
        argv = [f"--input_file={tmp_path}/lines", f"--output_file={output}"]
        argv += [f"--init_checkpoint={folder}", "--layers=-1", *words]
        extract_features.main(["", *argv])
        return output.read_bytes()

    tokens = extract("--max_seq_length=11")
    cut = {"default_prompt_name": "query", "truncate_dim": 5}
    write(folder, [*BOTH, "Normalize"], {"pooling_mode": "cls"}, **cut)
    capsys.readouterr()
    extract("--output_format=npz", "--prompt=query")
    said = "--pooling=cls, --normalize=True, --max_seq_length=11, the first 5"
    assert capsys.readouterr().err.count(said) == 1
    expected = bert.embed(TEXTS, str(folder), prompt="query")
    with np.load(output) as found:
        assert found["values"].shape == (3, 1, 5)
        np.testing.assert_allclose(found["values"][:, 0], expected, atol=1e-6)
    assert extract("--max_seq_length=11") == tokens
    words = ["--max_seq_length=11", "--pooling=none", "--prompt=query"]
    prompted = extract(*words).splitlines()[1]
    features = json.loads(prompted)["features"]
    assert [x["token"] for x in features[1:4]] == ["the", "cat", "a"]
