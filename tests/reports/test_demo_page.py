"""The page to ask a model, asked without a browser."""

import threading
import urllib.error
import urllib.request

import pytest

from bert.common.errors import UserError
from bert.reports import demo_page
from bert.reports.demo_page import Field, Form
from tests.helpers.html_page import Page

EVIL = "</textarea><script>alert(1)</script>"


def answer(values):
    if values["text"] == "bad":
        raise UserError("bad <text>", expected="another")
    rows = [(values["text"], 0.75, 75.0), ("x", 0.25, 25.0)]
    return {"kind": "bars", "title": values["layer"], "rows": rows}


@pytest.fixture
def client():
    fields = [
        Field("text", "Text", "an example", 3),
        Field("layer", "Layer", "1", choices=("1", "2")),
    ]
    forms = [
        Form("ask", "Ask", fields, answer),
        Form("other", "Other", [Field("line", "Line")], answer),
    ]
    app = demo_page.make_app("models/<m>", forms, "a note")
    return app.test_client()


def test_the_first_form_is_the_front_page(client):
    response = client.get("/", follow_redirects=True)
    assert response.request.path == "/ask" and response.status_code == 200
    found = Page(response.text)
    assert "models/<m>" in found.texts and "an example" in found.texts
    links = [a["href"] for tag, a in found.tags if tag == "a"]
    assert links == ["/ask", "/other"]
    assert [a for tag, a in found.tags if tag == "option"] == [
        {"selected": None},
        {},
    ]
    assert found.count("script") == 0


def test_an_answer_is_below_the_form_which_keeps_its_texts(client):
    response = client.post("/ask", data={"text": EVIL, "layer": "2"})
    found = Page(response.text)
    assert response.status_code == 200 and found.count("script") == 0
    assert found.texts.count(EVIL) == 2  # in the form and in the answer
    assert "0.750" in found.texts and "Answer" in found.headings
    (selected,) = [i for i, (_, a) in enumerate(found.tags) if "selected" in a]
    assert found.tags[selected - 1][0] == "option"  # the second one


def test_a_text_that_cannot_be_answered_is_an_error(client):
    response = client.post("/ask", data={"text": "bad", "layer": "1"})
    assert response.status_code == 400
    assert "bad <text>; expected another" in Page(response.text).texts
    assert "Answer" not in Page(response.text).headings


def test_requests_are_limited(client):
    assert client.get("/nix").status_code == 404
    big = {"text": "x" * (1 << 21), "layer": "1"}
    assert client.post("/ask", data=big).status_code == 413
    other = client.get("/ask", headers={"Host": "evil.example"})
    assert other.status_code == 400


def test_no_page_may_run_scripts_or_load_anything(client):
    policy = client.get("/ask").headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and "script" not in policy


def test_it_serves_on_this_machine_only():
    opened = demo_page.listen(0)
    host, port = opened.getsockname()
    assert host == "127.0.0.1"
    form = Form("ask", "Ask", [Field("text", "Text")], answer)
    app = demo_page.make_app("m", [form])
    thread = threading.Thread(
        target=demo_page.serve, args=(app, opened), daemon=True
    )
    thread.start()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as response:
        assert "Ask" in Page(response.read().decode()).texts
    request = urllib.request.Request(f"http://127.0.0.1:{port}/no")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(request)
    with pytest.raises(UserError, match=f"--port={port}: .*; pass another"):
        demo_page.listen(port)
