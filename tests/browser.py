"""Pages in the Chromium that the system has; tests are skipped, with the reason, where there is none."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextlib.contextmanager
def open_page(url: str, width: int = 1200, height: int = 800) -> Iterator[Any]:
    """A page of Playwright at a URL; two lists more: `outside`, what it asked other hosts for in vain, and `errors`.

    Args:
        url: The page.
        width: Of the window, in pixels.
        height: Of the window, in pixels.
    """
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="pages are looked at with Playwright, which `make setup` installs"
    )
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no Chromium is installed here: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
        page.outside, page.errors = [], []
        host = urlsplit(url).netloc

        def answer(route: Any) -> None:
            if urlsplit(route.request.url).netloc in (host, ""):
                route.continue_()
            else:
                page.outside.append(route.request.url)
                route.abort()

        page.route("**/*", answer)
        page.on("console", lambda m: page.errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda e: page.errors.append(str(e)))
        page.goto(url)
        page.wait_for_load_state("networkidle")
        try:
            yield page
        finally:
            browser.close()
