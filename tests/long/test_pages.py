"""Report and demo in headless Chromium, in four forms.

Screenshots are kept in the folder of the test: `--basetemp=shots` names it.
"""

import contextlib
import pathlib
import subprocess
import sys
import threading

import pytest

import demo
from common import tensor_files
from modeling.models import build_pretraining_model
from reports import demo_page, page, run_files
from tests.helpers import (
    browser,
    killed_runs,
    model_files,
    report_files,
)

pytestmark = pytest.mark.long

# The smallest contrast of a text and the background behind it, by WCAG 2.
CONTRAST = """() => {
  const probe = document.createElement("canvas").getContext(
    "2d", {willReadFrequently: true});
  const rgba = (colour) => {
    probe.clearRect(0, 0, 1, 1);
    probe.fillStyle = colour;
    probe.fillRect(0, 0, 1, 1);
    return [...probe.getImageData(0, 0, 1, 1).data];
  };
  const behind = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement)
      layers.unshift(rgba(getComputedStyle(at).backgroundColor));
    return layers.reduce((below, [r, g, b, a]) =>
      [r, g, b].map((x, i) => (x * a + below[i] * (255 - a)) / 255),
      [255, 255, 255]);
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((x) => x / 255).map(
      (x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let worst = [99, ""];
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.getClientRects().length)
      continue;
    const style = getComputedStyle(node);
    const ink = node.closest("svg") ? style.fill : style.color;
    const pair = [light(rgba(ink).slice(0, 3)), light(behind(node))];
    const ratio = Math.max(...pair) / Math.min(...pair);
    if (ratio < worst[0]) worst = [ratio, walker.currentNode.data.trim()];
  }
  return worst;
}"""
# Labels of a figure that lie on another one.
OVERLAPS = """() => [...document.querySelectorAll("svg")].flatMap((svg) => {
  const boxes = [...svg.querySelectorAll("text")].map(
    (node) => [node.textContent, node.getBoundingClientRect()]);
  return boxes.flatMap(([name, a], i) => boxes.slice(i + 1).filter(
    ([, b]) => a.left < b.right - 1 && b.left < a.right - 1
      && a.top < b.bottom - 1 && b.top < a.bottom - 1
  ).map(([other]) => `${name} and ${other}`));
})"""
WIDTHS = "[document.documentElement.scrollWidth, window.innerWidth]"


@pytest.fixture(scope="module")
def chromium():
    with browser.start() as started:
        yield started


def check_looks(opened, path):
    """A page that nothing spoils; keeps a screenshot."""
    opened.screenshot(path=path, full_page=True)
    assert opened.messages == []  # of the console, or of failed requests
    needed, there = opened.evaluate(WIDTHS)
    assert needed <= there
    ratio, words = opened.evaluate(CONTRAST)
    assert ratio >= 4.5, (ratio, words)
    assert opened.evaluate(OVERLAPS) == []


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Name -> path of a report."""
    folder = tmp_path_factory.mktemp("reports")
    first = report_files.write_run(folder / "pretraining")
    second = report_files.write_classifier(folder / "packages")
    runs = {"one": [first], "errors": [second], "both": [first, second]}
    for name, some in runs.items():
        found = run_files.read_runs(list(map(str, some)))
        page.write(found, str(folder / f"{name}.html"))
    return {name: folder / f"{name}.html" for name in runs}


@pytest.mark.parametrize(("scheme", "size"), browser.FORMS)
@pytest.mark.parametrize("name", ["one", "errors", "both"])
def test_a_report_is_readable(chromium, reports, name, scheme, size):
    path = reports[name]
    opened = browser.open_page(chromium, f"file://{path}", scheme, size)
    for details in opened.locator("summary").all():
        details.click()
    check_looks(opened, f"{path}-{scheme}-{size}.png")
    back = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") == (scheme == "light")
    first, second = opened.locator("figure").all()[:2]
    is_beside = first.bounding_box()["y"] == second.bounding_box()["y"]
    assert is_beside == (size == "wide")
    opened.context.close()


def test_a_report_needs_no_scripts(chromium, reports):
    opened = browser.open_page(
        chromium, f"file://{reports['both']}", "light", "wide", scripts=False
    )
    assert opened.locator("figure svg").count() == 10
    assert opened.get_by_text("chance, ln 8,009").is_visible()
    assert opened.get_by_role("heading", name="Confusion matrix").is_visible()
    assert opened.get_by_text(report_files.EVIL).first.is_visible()
    assert opened.locator("#scores tbody tr").count() == 5
    opened.context.close()


def test_a_run_leaves_its_report(chromium, tmp_path):
    killed_runs.write_files(tmp_path)
    flags = killed_runs.flags(tmp_path, tmp_path / "run", 7)
    flags += [f"--eval_input_file={tmp_path}/train.tfrecord", "--eval_steps=3"]
    flags.append("--report")
    script = pathlib.Path(__file__).parents[2] / "run_pretraining.py"
    subprocess.run([sys.executable, script, *flags], check=True)
    path = tmp_path / "run" / "report.html"
    assert "step 7 of 7" in path.read_text()
    opened = browser.open_page(chromium, f"file://{path}", "light", "wide")
    assert opened.locator("figure").count() == 9
    assert opened.locator("pre").inner_text().startswith(str(script))
    opened.context.close()


@contextlib.contextmanager
def serving(make, model):
    """The address of a demo."""
    settings = demo.Settings(model=str(model), trust_model=True)
    app = demo_page.make_app(str(model), *make(settings))
    with demo_page.listen(0) as opened:
        arguments = (app, opened)
        threading.Thread(
            target=demo_page.serve, args=arguments, daemon=True
        ).start()
        yield f"http://127.0.0.1:{opened.getsockname()[1]}"


def ask(chromium, address, name, values, folder):
    """Asks in all four forms, by clicking; returns the answer's text."""
    answers = set()
    for scheme, size in browser.FORMS:
        opened = browser.open_page(chromium, address, scheme, size)
        if opened.locator("nav").count():
            opened.locator("nav").get_by_text(name, exact=True).click()
        for label, value in values.items():
            field = opened.get_by_label(label, exact=True)
            if field.evaluate("node => node.tagName") == "SELECT":
                field.select_option(value)
            else:
                field.fill(value)
        opened.get_by_role("button", name="Ask").click()
        found = opened.locator("#answer")
        found.wait_for()
        check_looks(opened, folder / f"{name}-{scheme}-{size}.png")
        marks = [mark.inner_text() for mark in opened.locator("mark").all()]
        answers.add((found.inner_text(), *marks))
        opened.context.close()
    (one,) = answers
    return one


def test_a_run_is_asked_by_clicking(chromium, tmp_path):
    config = model_files.write_sizes(tmp_path)
    model = build_pretraining_model(config)
    values = model_files.biased_values(model, river=100)
    tensor_files.write(str(tmp_path / "model.ckpt-5"), values)
    with serving(demo.forms_of_run, tmp_path) as address:
        masked = {"Sentence with [MASK]": "the [MASK] ."}
        found, *marks = ask(chromium, address, "Fill masks", masked, tmp_path)
        assert "Mask 1" in found and marks == ["river"]
        pair = {"First text": "the cat", "Second text": "the cat"}
        found, *_ = ask(chromium, address, "Similarity", pair, tmp_path)
        assert "1.000" in found
        chosen = {"Text": "the cat", "Layer": "2", "Head": "3"}
        found, *_ = ask(chromium, address, "Attention", chosen, tmp_path)
        assert "[CLS]" in found and "cat" in found
