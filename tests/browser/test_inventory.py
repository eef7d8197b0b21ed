"""Proxies and profiles: uploading them, with a word for every bad line; marking and removing them."""

from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from .chromium import faults_of_look
from .conftest import Open, Site

PROXIES = """# ours
http://user:hidden-canary@proxy-1.example:8080
socks5h://user:hidden-canary@proxy-2.example:1080
socks5://user:hidden-canary@bad.example:1080
http://no-port.example
"""
PROFILES = '{"displayName": "קבלה", "timezone": "Asia/Jerusalem", "tags": ["<b>vip</b>"]}\n{"timezone": "Nowhere"}\n'


def row(page: Page, table: str, words: str) -> Locator:
    return page.get_by_role("region", name=table, exact=True).locator("tbody tr", has_text=words)


def upload(page: Page, place: int, path: Path, words: str) -> None:
    path.write_text(words)
    page.locator(".drop input").nth(place).set_input_files(path)


def test_proxies_with_bad_lines_are_added_and_the_bad_ones_named(site: Site, open_page: Open, tmp_path: Path) -> None:
    """The good ones are in the pool, each bad line has its number and why; no password is ever shown."""
    page = open_page("/inventory")
    upload(page, 0, tmp_path / "proxies.txt", PROXIES)
    expect(page.get_by_text("proxies.txt: 2 added, 2 bad lines")).to_be_visible()
    bad = page.get_by_role("region", name="Bad lines").locator("tbody tr")
    expect(bad).to_have_count(2)
    expect(bad.nth(0)).to_contain_text("4")
    expect(bad.nth(0)).to_contain_text("use socks5h://")
    expect(bad.nth(1)).to_contain_text("has no port")
    first = row(page, "Proxies", "proxy-1.example")
    expect(first).to_contain_text("http://***@proxy-1.example:8080")
    assert "hidden-canary" not in page.content()
    first.get_by_role("button", name="Mark bad").click()
    page.get_by_role("dialog").get_by_role("button", name="Mark as bad").click()
    expect(first).to_contain_text("bad")
    expect(page.locator(".tile", has_text="Bad proxies")).to_contain_text("1")
    first.get_by_role("button", name="Mark good").click()
    expect(first.get_by_role("button", name="Mark bad")).to_be_visible()
    for name in ("proxy-1.example", "proxy-2.example"):
        row(page, "Proxies", name).get_by_role("button", name="Remove").click()
        page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        expect(row(page, "Proxies", name)).to_have_count(0)
    assert site.api.proxies.list().items == []
    expect(page.get_by_text("No proxies yet.")).to_be_visible()


def test_profiles_are_added_shown_and_removed(site: Site, open_page: Open, tmp_path: Path) -> None:
    page = open_page("/inventory")
    upload(page, 1, tmp_path / "profiles.txt", PROFILES)
    expect(page.get_by_text("profiles.txt: 1 added, 1 bad line")).to_be_visible()
    expect(page.get_by_role("region", name="Bad lines").locator("tbody tr")).to_contain_text(["timezone"])
    found = row(page, "Profiles", "קבלה")
    expect(found).to_contain_text("<b>vip</b>")
    found.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No profiles yet.")).to_be_visible()
    assert site.api.profiles.list().items == []


def test_a_file_the_orchestrator_refuses_whole(open_page: Open, tmp_path: Path) -> None:
    path = tmp_path / "proxies.bin"
    path.write_bytes(b"\xff\xfe\x00not text")
    page = open_page("/inventory")
    page.locator(".drop input").nth(0).set_input_files(path)
    expect(page.get_by_role("alert").filter(has_text="UTF-8")).to_be_visible()


def test_whoever_may_only_read_sees_the_pools_and_adds_nothing(open_page: Open) -> None:
    page = open_page("/inventory", who="reader")
    expect(page.locator(".tile", has_text="Proxies with room")).to_be_visible()
    expect(page.locator(".drop")).to_have_count(0)


def test_it_is_accessible_and_fits_a_phone(site: Site, open_page: Open, tmp_path: Path) -> None:
    page = open_page("/inventory")
    upload(page, 0, tmp_path / "proxies.txt", PROXIES)
    expect(row(page, "Proxies", "proxy-2.example")).to_have_count(1)
    assert faults_of_look(page) == []
    for proxy in site.api.proxies.list().items:
        site.api.proxies.drop(proxy.proxy_id)
