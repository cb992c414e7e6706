"""The pictures of docs/images, from the outputs of `make quickstart`.

python -m tests.helpers.pictures quickstart

Draws the reports of the run and of the classifier, and asks the demo of its
export, in the machine's Chromium. windows.svg, packing.svg and flow.svg are
written by hand.
"""

import pathlib
import subprocess
import sys
import time
import urllib.request

from tests.helpers import browser

ROOT = pathlib.Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
PORT = 8611
SENTENCE = "Returns the sorted unique elements of an array."
# Run -> picture, and the element that it begins above.
REPORTS = {
    "run": ("report.png", "h1"),
    "packages": ("classifier_report.png", ".matrix"),
}


def shoot(page, name: str, first: str, height: int) -> None:
    """Writes a picture of a page, from shortly above an element."""
    top = max(page.locator(first).first.bounding_box()["y"] - 150, 0)
    size = {"x": 0, "y": top, "width": 1280, "height": height}
    page.screenshot(path=IMAGES / name, clip=size, full_page=True)
    page.context.close()


def draw(chromium, folder: pathlib.Path) -> None:
    """Writes all pictures."""
    for run, (name, first) in REPORTS.items():
        path = folder / run / "report.html"
        command = [sys.executable, ROOT / "report.py", f"--run={folder / run}"]
        subprocess.run(command, check=True)
        page = browser.open_page(chromium, f"file://{path}", "light", "wide")
        shoot(page, name, first, 900)

    model = f"{folder.name}/packages_export"  # the title of the page
    command = [ROOT / "demo.py", f"--model={model}", f"--port={PORT}"]
    demo = subprocess.Popen([sys.executable, *command], cwd=folder.parent)
    try:
        address = f"http://127.0.0.1:{PORT}"
        wait_for(address)
        page = browser.open_page(chromium, address, "light", "wide")
        page.get_by_label("Text", exact=True).fill(SENTENCE)
        page.get_by_role("button", name="Ask", exact=True).click()
        page.get_by_text("96%").first.wait_for()
        page.wait_for_timeout(1000)  # the answer fades in
        shoot(page, "demo.png", "h1", 720)
    finally:
        demo.terminate()
        demo.wait()


def wait_for(address: str) -> None:
    """Waits until a server answers, for a minute at most."""
    for _ in range(60):
        try:
            urllib.request.urlopen(address).close()
            return
        except OSError:
            time.sleep(1)
    raise TimeoutError(address)


if __name__ == "__main__":
    with browser.start() as started:
        draw(started, pathlib.Path(sys.argv[1]).absolute())
