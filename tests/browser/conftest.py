"""One platform and one browser for all of them; each test gets a tab of its own, logged in as it wants."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from acceptance.platform import API_KEY, Platform, free_ports
from paceline.client import Operator, Urls

from .chromium import chromium, require_chromium

PATIENCE_MS = 60_000
"""A page refreshes every few seconds; on a busy machine that may take long. Only a failure waits so long."""
NAMES = {"admin": ["send", "read", "admin"], "sender": ["send", "read"], "reader": ["read"]}

Open = Callable[..., Page]
People = Callable[[str, str], BrowserContext]

expect.set_options(timeout=PATIENCE_MS)


class Site:
    """The platform with its dashboard, and an operator who sees it from the other side."""

    def __init__(self, platform: Platform, port: int) -> None:
        self.platform = platform
        self.url = f"http://127.0.0.1:{port}"
        self.api = Operator(Urls(platform.gateway, platform.dispatcher, platform.orchestrator), API_KEY)
        self.keys = {"admin": API_KEY} | {
            name: self.api.keys.create(name, scopes).key for name, scopes in NAMES.items() if name != "admin"
        }


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    require_chromium()
    port = free_ports(1)
    platform = Platform(sessions=3, env={"DASHBOARD_PORT": str(port)})
    try:
        platform.start()
        yield Site(platform, port)
    finally:
        platform.destroy(keep=False)


@pytest.fixture(scope="session")
def people(browser: Browser, site: Site) -> People:
    """Each logs in once; what a browser has loaded it keeps for the next tab."""
    known: dict[tuple[str, str], BrowserContext] = {}

    def person(who: str, theme: str) -> BrowserContext:
        if (who, theme) not in known:
            context = browser.new_context(color_scheme=theme)  # type: ignore[arg-type]
            page = context.new_page()
            log_in(page, site, site.keys[who])
            page.close()
            known[who, theme] = context
        return known[who, theme]

    return person


@pytest.fixture
def open_page(people: People, site: Site) -> Iterator[Open]:
    """`open_page("/jobs")` as an admin at a desk, in light; or as another, elsewhere, in the dark. What goes wrong in
    the page's own scripts fails the test."""
    pages: list[Page] = []
    faults: list[str] = []

    def opened(path: str = "/", *, who: str = "admin", width: int = 1440, theme: str = "light") -> Page:
        page = people(who, theme).new_page()
        pages.append(page)
        page.set_viewport_size({"width": width, "height": 900})
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(site.url + path)
        return page

    yield opened
    for page in pages:
        page.close()
    assert faults == []


def log_in(page: Page, site: Site, key: str) -> None:
    page.goto(f"{site.url}/login")
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Fleet")


@pytest.fixture
def csv_file(tmp_path: Path) -> Callable[[str], Path]:
    def written(text: str) -> Path:
        path = tmp_path / "contacts.csv"
        path.write_text(text)
        return path

    return written
