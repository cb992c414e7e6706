"""The site of docs/: built without warnings, complete, and readable."""

import functools
import http.server
import pathlib
import re
import subprocess
import threading

import pytest

import bert
from tests.helpers import browser

pytestmark = pytest.mark.long
ROOT = pathlib.Path(__file__).parents[2]
PAGES = ("", "api/TextClassifier/", "coming_from/", "tutorials/classifier/")
LOADED = re.compile(
    r"<(?:script|link|img)[^>]*(?:src|href)=\"?(https?:[^\s\">]+)"
)


@pytest.fixture(scope="module")
def site():
    """The folder of the site."""
    output = subprocess.check_output(
        ["make", "docs"], cwd=ROOT, text=True, stderr=subprocess.STDOUT
    )
    assert "No issues found" in output
    assert "griffe" not in output  # its warnings are no issues of Zensical
    return ROOT / "build" / "docs"


def test_mkdocs_builds_it_too(site, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCS_THEME", "mkdocs")
    command = [ROOT / ".venv-docs/bin/mkdocs", "build", "--strict", "-d"]
    subprocess.run([*command, tmp_path], cwd=ROOT, check=True)
    assert (tmp_path / "api" / "embed" / "index.html").is_file()


def test_no_page_loads_files_from_elsewhere(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        assert not LOADED.findall(page.read_text()), page


@pytest.mark.parametrize("name", bert.__all__)
def test_a_public_name_has_a_page(site, name):
    page = (site / "api" / name / "index.html").read_text()
    assert f"bert.{name}" in page
    assert "<pre>" in page  # the signature and the example
    described = {"BertConfig": "Attributes", "Encoder": "Attributes"}
    assert f"{described.get(name, 'Parameters')}:" in page


@pytest.fixture(scope="module")
def address(site):
    handler = functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=site
    )
    handler.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def chromium():
    with browser.start() as started:
        yield started


@pytest.mark.parametrize(("scheme", "size"), browser.FORMS)
@pytest.mark.parametrize("path", PAGES)
def test_a_page_fits_its_window(
    chromium, address, tmp_path, path, scheme, size
):
    opened = browser.open_page(chromium, address + path, scheme, size)
    opened.screenshot(path=tmp_path / "page.png")
    needed, there = opened.evaluate(
        "[document.documentElement.scrollWidth, window.innerWidth]"
    )
    assert needed <= there
    assert opened.messages == []  # of the console, or of failed requests
    assert opened.locator("h1").count() == 1
    back = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") == (scheme == "light")
    opened.context.close()
