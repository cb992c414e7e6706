"""Models by name, fetched by the real clients from a server on localhost."""

import functools
import json
import re
import shutil
import time

import numpy as np
import pytest
import tensorflow as tf

import bert
import fill_mask
import run_classifier
from bert.common.errors import UserError
from bert.common.formats import downloads
from bert.modeling import checkpoints
from bert.modeling.formats import checkpoint_files, model_garden
from tests.helpers import classifier_files, library_files, model_server, text

NAME = "google-bert/bert-base-uncased"
HUB = f"hf://{NAME}"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Folders of one model in each format; its weights."""
    folder = tmp_path_factory.mktemp("published")
    values = library_files.pretrained(folder / "google")
    library_files.huggingface(folder / "huggingface", values)
    (folder / "huggingface" / "pytorch_model.bin").write_bytes(b"a pickle")
    without = shutil.ignore_patterns("*.safetensors")
    shutil.copytree(folder / "huggingface", folder / "pickles", ignore=without)
    module = tf.train.Checkpoint()
    named = model_garden.named_variables(library_files.config(), values)
    module.variables = list(named.values())
    words = str(folder / "google" / "vocab.txt")
    module.vocab_file = tf.saved_model.Asset(words)
    gelu = functools.partial(tf.nn.gelu, approximate=True)
    call = module.call = tf.function(gelu, [tf.TensorSpec([None])])
    tf.saved_model.save(module, str(folder / "hub"), {"call": call})
    shutil.make_archive(str(folder / "hub"), "gztar", folder / "hub")
    return folder, values


@pytest.fixture
def server(models, monkeypatch, tmp_path):
    folder, _ = models
    names = {NAME: folder / "huggingface", "org/pickles": folder / "pickles"}
    module = (folder / "hub.tar.gz").read_bytes()
    files = {"/google/bert/4": module, "/page": b"<html>" * 200}
    cache = tmp_path / "cache"
    with model_server.serving(monkeypatch, cache, names, files) as server:
        yield server


@pytest.mark.parametrize(
    ("name", "printed", "sign"),
    [
        (HUB, "revision (.{40}), in /", "@"),
        ("/google/bert/4", "a SavedModel(), in /", ""),
    ],
)
def test_the_library_loads_a_model_by_name(
    server, models, capsys, name, printed, sign
):
    name = name if name == HUB else f"{server.url}{name}"
    encoder, tokenizer = bert.load_encoder(name)
    for variable, value in checkpoints.encoder_variables(encoder).items():
        np.testing.assert_array_equal(value.numpy(), models[1][variable])
    assert tokenizer.tokens == text.VOCABULARY
    assert not any("pytorch" in path for path in server.asked)
    out, err = capsys.readouterr()
    (version,) = re.findall(f"{name}: {printed}", err)
    server.asked.clear()
    assert tokenizer.path.startswith(downloads.fetch(f"{name}{sign}{version}"))
    assert not out and not server.asked


def test_a_tokenizer_by_name_fetches_no_weights(server):
    assert bert.Tokenizer(HUB).tokens == text.VOCABULARY
    assert not any("safetensors" in path for path in server.asked)
    with pytest.raises(UserError, match="do_lower_case=False; expected True"):
        bert.Tokenizer(HUB, do_lower_case=False)
    bert.load_encoder(HUB)  # the weights are fetched now


def publish(server, models, folder, **contents):
    """Another model of Hugging Face, with other files; returns its name."""
    shutil.copytree(models[0] / "huggingface", folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    for name, content in contents.items():
        end = ".txt" if isinstance(content, str) else ".json"
        content = content if end == ".txt" else json.dumps(content)
        (folder / f"{name}{end}").write_text(content)
    server.models["org/other"] = folder
    return "hf://org/other"


CASED = "".join(f"{x}\n" for x in [*text.VOCABULARY[:-1], "The"])


@pytest.mark.parametrize(
    ("contents", "expected", "logged"),
    [
        ({"vocab": CASED}, (False, None, 13), "guessed do_lower_case=False "),
        (
            {
                "tokenizer_config": {
                    "do_lower_case": True,
                    "strip_accents": False,
                }
            }
            | {"sentence_bert_config": {"max_seq_length": 7}},
            (True, False, 7),
            "",
        ),
    ],
)
def test_a_tokenizer_by_name_is_that_of_the_encoder(
    server, models, tmp_path, capsys, contents, expected, logged
):
    name = publish(server, models, tmp_path / "other", **contents)
    both = bert.Tokenizer(name), bert.load_encoder(name)[1]
    capsys.readouterr()
    for one in both:
        casing = one.do_lower_case, one.strip_accents
        assert (*casing, one.max_length) == expected
        assert capsys.readouterr().err.startswith(logged)
    assert both[0].tokens == both[1].tokens


def test_shards_and_pooling_are_fetched(server, models, tmp_path):
    kinds, folder = {"": "Transformer", "1_Pooling": "Pooling"}, tmp_path / "o"
    modules = [
        {"path": path, "type": f"sentence_transformers.models.{kind}"}
        for path, kind in kinds.items()
    ]
    prompts = {"prompts": {"query": "the "}, "default_prompt_name": "query"}
    contents = {"modules": modules, "config_sentence_transformers": prompts}
    index = {"weight_map": {"all": "model-1.safetensors"}}
    contents |= {"model.safetensors.index": index}
    name = publish(server, models, folder, **contents)
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text('{"pooling_mode": "cls"}')
    expected = bert.embed("the cat", HUB, pooling="cls")
    assert (bert.embed("cat", name) == expected).all()


def test_added_tokens_are_fetched_and_refused(server, models, tmp_path):
    added = {"<e>": 5}
    name = publish(server, models, tmp_path / "other", added_tokens=added)
    with pytest.raises(UserError, match="the added token '<e>'"):
        bert.Tokenizer(name)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("bert-base-uncased", "hf://google-bert/bert-base-uncased"),
        ("org/name", "hf://org/name"),
        ("here/name", None),
        ("gone/vocab.txt", None),
        ("gone/bert_model.ckpt", None),
        ("/gone/name", None),
    ],
)
def test_a_path_of_nothing_may_be_a_name(tmp_path, monkeypatch, path, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    advice = f"for the model of Hugging Face pass {name}"
    for load in (bert.load_encoder, bert.Tokenizer):
        with pytest.raises(UserError) as error:
            load(path)
        assert (advice in str(error.value)) == bool(name)


@pytest.mark.usefixtures("eagerly")
@pytest.mark.slow
def test_a_run_from_a_name_records_the_revision(server, tmp_path, run_script):
    classifier_files.write_task(tmp_path)
    flags = {
        "task_name": "mrpc",
        "data_dir": tmp_path,
        "output_dir": tmp_path / "run",
        "init_checkpoint": HUB,
        "max_seq_length": 13,
        "num_train_epochs": 1,
    }
    for _ in range(2):
        code, _, err = run_script(run_classifier, "--do_train", **flags)
        assert code == 0, err
        server.faults = {"": 503}  # the cache is enough
    recorded = checkpoint_files.recorded_settings(str(tmp_path / "run"))
    commit = f"{NAME.replace('/', '--')}/snapshots/{server.commit(NAME)}"
    assert recorded["init_checkpoint"].endswith(commit)


@pytest.mark.parametrize(
    ("name", "faults", "code", "message"),
    [
        (HUB, {"/resolve/": "cut"}, 75, "HUB: peer closed connection"),
        (HUB, {"/resolve/": "reset"}, 75, "Connection reset by peer; a folder"),
        (HUB, {"/revision/": 500}, 75, "HUB: HTTP status 500; run the same"),
        (HUB, {"/revision/": 408}, 75, "HUB: HTTP status 408; run the same"),
        (HUB, {"/revision/": 429}, 75, "HUB: HTTP status 429; run the same"),
        (HUB, {"safetensors": 404}, 2, "HTTP 404; check the name; a private "),
        (HUB, {"/resolve/": 403}, 2, "may read; accept its terms on its page"),
        (f"{HUB}@v9", {}, 2, "HUB@v9: no such model or revision, or a priva"),
        ("hf://org/pickles", {}, 2, "/pickles: no safetensors; expected mod"),
        ("hf://a/b/c", {}, 2, "expected hf://organization/name"),
        ("URL/flat.zip", {}, 2, "an archive; expected a folder; download"),
        ("https://huggingface.co/o/m/tree/v", {}, 2, "name, hf://o/m"),
        ("URL/google/bert/4", {"": "cut"}, 75, "unexpected end of data; a fol"),
        ("URL/google/bert/4", {"": 403}, 2, "one: HTTP 403; check the name"),
        ("URL/google/bert/5", {}, 2, "/5: no such model or revision, or a "),
        ("URL/page", {}, 2, "URL/page: no model here: "),
        ("http://127.0.0.1:1/a", {}, 75, "refused; a folder of a model "),
    ],
)
def test_a_fault_is_one_line_and_leaves_nothing(
    server, run_script, tmp_path, monkeypatch, name, faults, code, message
):
    # The clients try again for half a minute.
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    server.faults = faults
    name, message = name.replace("URL", server.url), message.replace("HUB", HUB)
    found, out, err = run_script(fill_mask, init_checkpoint=name)
    lines = [x for x in err.splitlines() if x.startswith("error: ")]
    assert (found, out, len(lines)) == (code, "", 1)
    assert message.replace("URL", server.url) in lines[0]
    left = [x.name for x in (tmp_path / "cache").rglob("*")]
    assert not [x for x in left if x.endswith(("incomplete", "partial", "tmp"))]
    server.faults = {}
    if faults:
        assert downloads.fetch(name)  # as if nothing had been


def test_what_the_user_sets_for_hugging_face_counts(
    server, monkeypatch, tmp_path, hide_package
):
    server.faults = {"": 401}
    with pytest.raises(UserError, match="HTTP 401; .* gated model needs HF"):
        downloads.fetch(HUB)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    folder = downloads.fetch(HUB)
    assert folder.startswith(str(tmp_path / "cache" / "HF_HOME"))
    server.shutdown()
    server.server_close()
    assert downloads.fetch(HUB) == folder
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    model_server.forget_settings(monkeypatch)
    assert downloads.fetch(HUB) == folder
    with pytest.raises(UserError, match="not in the cache; unset HF_HUB_OFF"):
        downloads.fetch("hf://org/none")
    hide_package("huggingface_hub")
    with pytest.raises(UserError, match="-r requirements/hub.txt"):
        downloads.fetch(HUB)
