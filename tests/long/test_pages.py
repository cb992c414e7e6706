"""Report and demo in headless Chromium, in four forms.

The demo is asked in two of them: its colours are gradio's.

Screenshots are kept in the folder of the test: `--basetemp=shots` names it.
"""

import json
import threading

import pytest

from bert.reports import demo_pages, page, run_files
from tests.helpers import browser, report_files, served_models

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
WIDTHS = "[document.documentElement.scrollWidth, window.innerWidth]"


@pytest.fixture(scope="module")
def chromium():
    with browser.start() as started:
        yield started


def check_width(opened, path):
    """A page that is as wide as its window; keeps a screenshot."""
    opened.screenshot(path=path, full_page=True)
    needed, there = opened.evaluate(WIDTHS)
    assert needed <= there


def check_looks(opened, path):
    """A page that nothing spoils."""
    check_width(opened, path)
    assert opened.messages == []  # of the console, or of failed requests
    ratio, words = opened.evaluate(CONTRAST)
    assert ratio >= 4.5, (ratio, words)


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Name -> path of a report."""
    folder = tmp_path_factory.mktemp("reports")
    first = report_files.write_run(folder / "pretraining")
    second = report_files.write_classifier(folder / "packages")
    runs = {"one": first, "errors": second}
    for name, path in runs.items():
        run = run_files.read_run(str(path))
        page.write(run, str(folder / f"{name}.html"))
    return {name: folder / f"{name}.html" for name in runs}


@pytest.mark.parametrize(("scheme", "size"), browser.FORMS)
@pytest.mark.parametrize("name", ["one", "errors"])
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


def test_a_matrix_of_many_classes_is_seen_whole(chromium, tmp_path):
    folder = report_files.write_classifier(tmp_path / "run")
    path = folder / "eval_report.json"
    report = json.loads(path.read_text())
    report["labels"] = [f"refund_not_showing_up_{i:02}" for i in range(14)]
    report["confusion_matrix"] = [[997] * 14] * 14
    path.write_text(json.dumps(report))
    page.write(run_files.read_run(str(folder)), str(tmp_path / "run.html"))
    opened = browser.open_page(
        chromium, f"file://{tmp_path}/run.html", "light", "wide"
    )
    opened.screenshot(path=tmp_path / "run.png", full_page=True)
    table = opened.locator(".matrix")
    assert table.locator("th").count() == 28
    parent = table.locator("..")
    assert parent.evaluate("x => x.scrollWidth <= x.clientWidth")
    opened.context.close()


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    """Name of a task, or run -> address of its demo, and a folder."""
    folder = tmp_path_factory.mktemp("demos")
    served_models.write_checkpoint(folder)
    pages = {"run": demo_pages.pages_of_run(str(folder), 5)}
    for task in served_models.MODELS:
        pages[task] = {"Ask": served_models.page_of(task)}
    addresses = {}
    for name, tabs in pages.items():
        app, opened = demo_pages.make_app(name, tabs), demo_pages.listen(0)
        threading.Thread(
            target=demo_pages.serve, args=(app, opened), daemon=True
        ).start()
        addresses[name] = f"http://127.0.0.1:{opened.getsockname()[1]}"
    return addresses, folder


EVIL = "[MASK] <img src=nix>"


@pytest.mark.parametrize(("scheme", "size"), browser.FORMS[1:3])
@pytest.mark.parametrize(
    ("name", "tab", "label", "answers"),
    [
        (
            "classes",
            "Ask",
            "Text",
            ["75%", "5 tokens; the model reads at most 64"],
        ),
        ("several", "Ask", "Text", ["25%"]),
        ("value", "Ask", "Text", ["0.5"]),
        ("choices", "Ask", "Choices, one per line", [EVIL, "25%"]),
        ("span", "Ask", "Passage", ["née", "50%"]),
        ("no span", "Ask", "Passage", ["no answer"]),
        ("entities", "Ask", "Text", ["[MAS", "PER"]),
        ("run", "Fill masks", "Sentence with [MASK]", ["river", "stone"]),
        ("run", "Neighbours", "Text", ["A cat sleeps.", "0."]),
        ("run", "Attention", "Text", ["[CLS]", "[SEP]"]),
    ],
)
def test_the_demo_answers_a_text_as_text(
    chromium, demos, name, tab, label, answers, scheme, size
):
    addresses, folder = demos
    opened = browser.open_page(chromium, addresses[name], scheme, size)
    opened.get_by_role("tab", name=tab).click()
    opened.get_by_label(label, exact=True).fill(EVIL)
    with opened.expect_response("**/queue/join*"):
        opened.get_by_role("button", name="Ask", exact=True).click()
    opened.wait_for_function("!document.querySelector('.progress-text')")
    output = opened.get_by_role("tabpanel")
    for answer in answers:
        shown = output.get_by_text(answer).locator("visible=true")
        shown.first.wait_for()
    check_width(opened, folder / f"{name}-{tab}-{scheme}-{size}.png")
    assert opened.locator("img[src=nix]").count() == 0

    # A stream of answers is cut when the last one has come.
    assert [x for x in opened.messages if "/queue/data?" not in x] == []
    opened.context.close()


def test_the_demo_says_what_is_too_large_in_a_sentence(chromium, demos):
    opened = browser.open_page(chromium, demos[0]["value"], "light", "wide")
    text = "x" * demo_pages.MAX_BYTES
    opened.get_by_label("Text", exact=True).fill(text)
    opened.get_by_role("button", name="Ask", exact=True).click()
    opened.get_by_text("the request is too large; expected").wait_for()
    opened.context.close()
