"""demo.py on a checkpoint and on exports, asked without a browser."""

import math
import os
import re
import signal
import socket
import subprocess
import sys

import gradio as gr
import gradio_client
import pytest
from fastapi import testclient

import demo
from bert.common.errors import UserError
from bert.common.formats import tensor_files
from bert.export import folder as export_folder
from bert.modeling.encoder import build_encoder
from bert.reports import demo_pages
from tests.helpers import model_files, served_models


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A folder whose masked LM always answers river, then stone."""
    folder = tmp_path_factory.mktemp("run")
    served_models.write_checkpoint(folder)
    return folder


@pytest.fixture(scope="module")
def pages(checkpoint):
    return demo_pages.pages_of_run(str(checkpoint), 5)


def ask(page, *values):
    """Values of the components that a page of an export answers with."""
    drawn = page.fn(*values)
    drawn = drawn if isinstance(drawn, list) else [drawn]
    return [component.value for component in drawn]


def bars(**rows):
    ranked = [{"label": x, "confidence": p} for x, p in rows.items()]
    return {"label": ranked[0]["label"], "confidences": ranked}


def marked(*parts):
    return [{"token": x, "class_or_confidence": kind} for x, kind in parts]


PASSAGE = marked(("a ", None), ("née", "answer"), (" b", None))
ENTITIES = marked(
    ("", None), ("Anna", "PER"), (" in ", None), ("Rome", "LOC"), (".", None)
)


@pytest.mark.parametrize(
    ("task", "texts", "shown"),
    [
        ("classes", ["x"], [bars(mail=0.75, bill=0.25)]),
        ("several", ["x"], ["no label", bars(mail=0.25, bill=0.125)]),
        ("value", ["x", "y"], []),
        ("choices", ["x", "no\n\nyes"], [bars(yes=0.75, no=0.25)]),
        ("span", ["?", "a née b"], [bars(née=0.5), PASSAGE]),
        ("entities", ["Anna in Rome."], [ENTITIES]),
    ],
)
def test_an_export_answers_by_components_of_its_task(task, texts, shown):
    page = served_models.page_of(task)
    values = ask(page, *texts)
    assert values[: len(shown)] == shown
    assert len(values) == len(page.output_components)
    opened = [component.value for component in page.output_components]
    assert opened[0] == ask(page, *page.examples[0])[0]


def test_no_answer_and_the_whole_answer_are_shown():
    best, passage, whole = ask(served_models.page_of("no span"), "?", "a b")
    assert best["label"] == "no answer" and whole["null_odds"] == 3.0
    assert "".join(part["token"] for part in passage) == "a b"


def test_a_text_that_is_cut_is_told():
    *_, lengths = ask(served_models.page_of("classes"), "word " * 300)
    assert lengths == "302 tokens; the model reads at most 64"


def test_the_scores_of_an_export_and_its_example_are_told(tmp_path):
    for name, values in (
        (export_folder.EXAMPLE, {"text": "A <cat>.", "text_b": ""}),
        (
            export_folder.METRICS,
            {"eval_accuracy": 0.91266, "eval_f1": math.nan, "loss": 0.5},
        ),
    ):
        export_folder.write_extra(str(tmp_path), name, values)
    page = served_models.page_of("value", tmp_path)
    assert page.description == "accuracy 0.9127"
    assert page.examples == [["A <cat>.", ""]]
    with open(tmp_path / export_folder.METRICS, "w") as file:
        file.write("[")
    with pytest.raises(UserError, match="metrics.json: "):
        served_models.page_of("value", tmp_path)


def test_masks_are_filled_with_probabilities(pages):
    filled, rows = pages["Fill masks"].fn("the [MASK]\nsees a [MASK] .")
    assert "".join(part for part, _ in filled) == "the river sees a river ."
    assert [kind for _, kind in filled] == [None, "1", None, "2", None]
    numbers, words, _ = zip(*rows)
    assert numbers == (1,) * 5 + (2,) * 5
    assert words[5:7] == ("river", "stone")
    assert 0.99 < float(rows[0][2]) + float(rows[1][2]) <= 1


def test_neighbours_are_ranked_by_their_cosine(pages):
    others = "a tree .\n\nthe cat sees"
    page = pages["Neighbours"]
    (one, same), (other, _) = page.fn("the cat sees", others)
    assert (same, one) == ("the cat sees", "1.000") and float(other) < 1

    # A long text would hide the columns behind it.
    assert page.output_components[0].headers == ["cosine", "text"]


def test_attention_has_a_row_and_a_column_for_each_token(pages):
    attend = pages["Attention"].fn
    table = attend("the cat", "a dog .", 1, 4)
    assert table["headers"][:3] == ["", "[CLS]", "the"]
    rows = table["data"]
    assert [row[0] for row in rows] == table["headers"][1:]
    for row in rows:
        assert sum(map(float, row[1:])) == pytest.approx(1, abs=0.05)
    shades = table["metadata"]["styling"]
    assert [len(x) for x in shades] == [9] * 8  # [CLS] and twice [SEP]
    assert attend("the cat", "a dog .", 1, 0) != table


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("Fill masks", ["the cat"], "no mask; expected [MASK]"),
        (
            "Fill masks",
            ["cat " * 12 + "[MASK]"],
            "a sentence has 15 tokens; expected at most 13",
        ),
        ("Neighbours", ["x", " \n"], "no other texts; expected one per line"),
    ],
)
def test_a_text_that_cannot_be_answered_is_an_error(
    pages, name, values, message
):
    with pytest.raises(gr.Error, match=re.escape(message)):
        pages[name].fn(*values)


def test_a_checkpoint_without_the_head_fills_no_masks(tmp_path):
    config = model_files.write_sizes(tmp_path)
    values = model_files.values_of(build_encoder(config))
    tensor_files.write(str(tmp_path / "model.ckpt-5"), values)
    pages = demo_pages.pages_of_run(str(tmp_path), 5)
    assert list(pages) == ["Neighbours", "Attention"]


def test_requests_are_limited(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    pages = {"Ask": served_models.page_of("value")}
    app = demo_pages.make_app("models/<m>", pages)
    client = testclient.TestClient(app, base_url="http://127.0.0.1")
    page = client.get("/")
    assert page.headers["Content-Security-Policy"].startswith(
        "default-src 'self'"
    )
    config = client.get("/config").json()
    assert config["analytics_enabled"] is False
    assert config["title"] == "models/&lt;m&gt;"

    call = "/gradio_api/call/ask"
    for size, code in ((1 << 19, 200), (1 << 20, 413)):
        answer = client.post(call, json={"data": ["x" * size, "y"]})
        assert answer.status_code == code
    assert "too large; expected at most 1048576 bytes" in answer.text
    assert client.post(call, content=iter([b"{}"])).status_code == 413
    other = client.get("/", headers={"Host": "evil.example"})
    assert other.status_code == 400
    file = client.get(f"/gradio_api/file={tmp_path}/secret.txt")
    assert file.status_code == 403


def test_missing_packages_and_a_port_in_use_are_told(
    run_script, hide_package, checkpoint
):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = run_script(demo, model=checkpoint, port=port)
    assert code == 2 and f"--port={port}: Address already in use" in err
    hide_package("gradio")
    code, _, err = run_script(demo, model=checkpoint)
    assert code == 2 and err == (
        "error: missing packages: gradio; "
        "in the checkout: pip install -r requirements/demo.txt\n"
    )


@pytest.mark.slow
def test_a_program_asks_a_server_that_asks_nobody(checkpoint, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        url = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        names = [y for x in names for y in (x, x.lower())]
        environment = {**os.environ, **dict.fromkeys(names, url)}
        command = [sys.executable, demo.__file__, f"--model={checkpoint}"]
        with subprocess.Popen(
            [*command, "--port=0", "--top_k=2"],
            cwd=tmp_path,
            env={**environment, "NO_PROXY": "", "no_proxy": ""},
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            lines = iter(process.stderr.readline, "")
            line = next(x for x in lines if "Ctrl-C ends" in x)
            client = gradio_client.Client(
                re.search(r"http://127\.0\.0\.1:\d+", line)[0],
                verbose=False,
                analytics_enabled=False,
            )
            filled, words = client.predict("a [MASK]", api_name="/fill_mask")
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()

        assert [row[1] for row in words["data"]] == ["river", "stone"]
        assert filled[1]["token"] == "river"
        # uvicorn ends by itself, or the signal reaches the script first.
        assert process.returncode in (0, 130) and rest == ""
        assert os.listdir(tmp_path) == []
        proxy.setblocking(False)
        with pytest.raises(BlockingIOError):
            proxy.accept()
