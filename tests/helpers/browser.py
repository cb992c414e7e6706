"""Headless Chromium, as installed on the machine (Debian: chromium)."""

import contextlib
import itertools
import shutil

from playwright import sync_api

NAMES = ("chromium", "chromium-browser", "google-chrome")
SIZES = {"narrow": (380, 844), "wide": (1280, 800)}
FORMS = tuple(itertools.product(("light", "dark"), SIZES))


def find() -> str:
    """Path of the browser; a failure without one says how to install it."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    assert found, "no Chromium: install it, as with `apt install chromium`"
    return found


@contextlib.contextmanager
def start():
    """A browser; closed at the end."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find(), args=["--no-sandbox"]
        )
        try:
            yield browser
        finally:
            browser.close()


def open_page(browser, url: str, scheme: str, size: str, scripts=True):
    """A page in one of the four forms; messages in `page.messages`.

    Args:
        browser: from `start`.
        url: of the page.
        scheme: "light" or "dark".
        size: "narrow" or "wide".
        scripts: whether scripts may run.
    """
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        java_script_enabled=scripts,
    )
    page = context.new_page()
    page.messages = []
    page.on("console", lambda message: page.messages.append(message.text))
    page.on("requestfailed", lambda r: page.messages.append(r.url))
    page.goto(url)
    return page
