"""demo.py on a checkpoint and on exports, asked without a browser."""

import dataclasses
import math
import re

import numpy as np
import pytest

import demo
from bert.common import tensor_files
from bert.common.errors import UserError
from bert.modeling.encoder import build_encoder
from bert.modeling.models import build_pretraining_model
from bert.reports import demo_forms, demo_page
from bert.serving import asking, export_folder
from tests.helpers import model_files
from tests.helpers.html_page import Page


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A folder whose masked LM always answers river, then stone."""
    folder = tmp_path_factory.mktemp("run")
    config = model_files.write_sizes(folder)
    model = build_pretraining_model(config)
    values = model_files.biased_values(model, river=100, stone=99)
    tensor_files.write(str(folder / "model.ckpt-5"), values)
    return folder


@pytest.fixture(scope="module")
def client(checkpoint):
    return client_of_run(checkpoint)


def client_of_run(folder):
    forms = demo_forms.forms_of_run(str(folder), 5)
    return demo_page.make_app("m", *forms).test_client()


def client_of_export(folder):
    settings = demo.Settings(model=str(folder)).of_predict()
    forms = demo_forms.forms_of_export(settings)
    return demo_page.make_app("m", *forms).test_client()


def texts(response):
    return " ".join(Page(response.text).texts)


def test_masks_are_filled_with_probabilities(client):
    response = client.post(
        "/fill_mask", data={"sentence": "the [MASK]\nsees a [MASK] ."}
    )
    found = texts(response)
    assert "Answer the river sees a river ." in found
    words = r"Mask \d river 0\.\d{3} stone 0\.\d{3} (?:\S+ 0\.000 ?){3}"
    assert len(re.findall(words, found)) == 2


def test_the_same_text_has_a_similarity_of_one(client):
    data = {"first": "the cat sees", "second": "the cat sees"}
    assert "1.000 cosine" in texts(client.post("/similarity", data=data))
    data["second"] = "a tree ."
    found = texts(client.post("/similarity", data=data))
    assert "cosine" in found and "1.000" not in found


def test_attention_has_a_row_and_a_column_for_each_token(client):
    data = {"text": "the cat", "text_b": "a dog .", "layer": "2", "head": "5"}
    page = Page(client.post("/attention", data=data).text)
    titles = [
        a["title"] for tag, a in page.tags if tag == "td" and "title" in a
    ]
    assert len(titles) == 8**2  # with [CLS] and twice [SEP]
    assert titles[1].startswith("[CLS] → the: 0.")
    row = [float(title.rpartition(" ")[2]) for title in titles[8:16]]
    assert sum(row) == pytest.approx(1, abs=0.01)
    other = Page(client.post("/attention", data={**data, "head": "1"}).text)
    assert [a.get("title") for _, a in other.tags] != [
        a.get("title") for _, a in page.tags
    ]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("fill_mask", {"sentence": "the cat"}, "no mask; expected [MASK]"),
        (
            "fill_mask",
            {"sentence": "cat " * 12 + "[MASK]"},
            "a sentence has 15 tokens; expected at most 13",
        ),
        ("attention", {"layer": "3", "head": "1"}, "layer '3'; expected 1 to"),
        ("attention", {"layer": "1", "head": "x"}, "head 'x'; expected 1 to 5"),
    ],
)
def test_a_text_that_cannot_be_answered_is_an_error(
    client, name, data, message
):
    response = client.post(f"/{name}", data=data)
    assert response.status_code == 400 and message in texts(response)


def test_a_checkpoint_without_the_head_fills_no_masks(tmp_path):
    config = model_files.write_sizes(tmp_path)
    values = model_files.values_of(build_encoder(config))
    tensor_files.write(str(tmp_path / "model.ckpt-5"), values)
    found = client_of_run(tmp_path)
    assert found.get("/fill_mask").status_code == 404
    page = texts(found.get("/", follow_redirects=True))
    assert "without a masked-LM head" in page


def test_the_scores_of_an_export_and_its_example_are_told(
    monkeypatch, tmp_path
):
    served = asking.ServedModel(lambda _: {}, ["text", "text_b"])
    monkeypatch.setattr(asking, "load", lambda settings: served)
    for name, values in (
        (export_folder.EXAMPLE, {"text": "A <cat>.", "text_b": ""}),
        (
            export_folder.METRICS,
            {"eval_accuracy": 0.91266, "eval_f1": math.nan, "loss": 0.5},
        ),
    ):
        export_folder.write_extra(str(tmp_path), name, values)
    page = texts(client_of_export(tmp_path).get("/ask"))
    assert "· accuracy 0.9127 Text A <cat>. Second text Ask" in page
    with open(tmp_path / export_folder.METRICS, "w") as file:
        file.write("[")
    with pytest.raises(UserError, match="metrics.json: "):
        client_of_export(tmp_path)


def test_the_labels_and_a_text_that_is_cut_are_told(monkeypatch):
    def call(strings):
        return {
            "label": np.array([b"mail"]),
            "label_names": np.array([[b"mail", b"bill"]]),
            "probabilities": np.array([[0.75, 0.25]], "f4"),
        }

    def count(strings):
        return 64, np.array([2 + len(x.split()) for x in strings["text"]])

    served = asking.ServedModel(call, ["text"], count_tokens=count)
    monkeypatch.setattr(asking, "load", lambda settings: served)
    found = client_of_export("export")
    assert "at most 64 tokens; labels: bill, mail" in texts(found.get("/ask"))
    for words, is_cut in ((62, False), (300, True)):
        answer = texts(found.post("/ask", data={"text": "word " * words}))
        assert ("302 tokens, cut to the model's 64" in answer) == is_cut
        assert "mail 0.750" in answer
    regression = dataclasses.replace(
        served, call=lambda _: {"value": np.array([0.5], "f4")}
    )
    monkeypatch.setattr(asking, "load", lambda settings: regression)
    found = client_of_export("export")
    assert "at most 64 tokens Text" in texts(found.get("/ask"))


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({}, "missing --model; see --help"),
        ({"model": "nix"}, "nix: no model; expected the folder of a Saved"),
        ({"model": "nix", "port": 70000}, "--port=70000; expected at most"),
    ],
)
def test_a_mistake_is_one_line(
    run_script, tmp_path, monkeypatch, named, message
):
    monkeypatch.chdir(tmp_path)
    code, _, err = run_script(demo, **named)
    assert code == 2 and err.count("\n") == 1 and message in err


def test_a_model_of_others_needs_trust(run_script, tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"")
    code, _, err = run_script(demo, model=tmp_path, port=0)
    assert code == 2 and "--trust_model" in err
