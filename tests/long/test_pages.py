"""Report and demo in headless Chromium, in four forms.

Screenshots are kept in the folder of the test: `--basetemp=shots` names it.
"""

import pytest

from bert.reports import page, run_files
from tests.helpers import (
    browser,
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
