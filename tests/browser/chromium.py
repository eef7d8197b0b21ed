"""A real browser: Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from needed import skip_if

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PHONE_PX = 390
REDRAWS = 50
"""Tenths of a second that a page may take to fit."""
GRAVE = ("serious", "critical")


def require_chromium() -> str:
    """Its path. What is missing is said; in CI it is an error, because these tests would silently not run."""
    path = shutil.which("chromium") or ""
    skip_if("" if path else "no chromium (see tools/ensure-browser)")
    return path


@contextmanager
def chromium() -> Iterator[Browser]:
    path = require_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS, headless=True)
        yield browser
        browser.close()


def grave_faults(page: Page) -> list[str]:
    """What axe-core finds of serious or critical accessibility faults: the rule, and where."""
    found = Axe().run(page).response["violations"]
    return [
        f"{fault['id']}: {node['html'][:160]} ({node['failureSummary'][:200]})"
        for fault in found
        if fault["impact"] in GRAVE
        for node in fault["nodes"]
    ]


def faults_of_look(page: Page) -> list[str]:
    """The same in light and dark, and whether it fits a phone; of a page that has loaded what it shows."""
    found = []
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        found += [f"{theme}: {fault}" for fault in grave_faults(page)]
    width = width_on_a_phone(page)
    return found if width == PHONE_PX else [*found, f"{width} px wide on a phone"]


def width_on_a_phone(page: Page) -> int:
    """How wide the page is there, once what is drawn to measure had the time to be drawn anew."""
    page.set_viewport_size({"width": PHONE_PX, "height": 844})
    for _ in range(REDRAWS):
        width = int(page.evaluate("document.documentElement.scrollWidth"))
        if width == PHONE_PX:
            break
        page.wait_for_timeout(100)
    return width
