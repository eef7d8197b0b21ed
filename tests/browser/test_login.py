"""Coming in, being shown out, and that nothing is loaded from anywhere else."""

import pytest
from playwright.sync_api import Browser, expect

from .chromium import grave_faults
from .conftest import Open, Site, log_in


def test_a_wrong_key_is_told_so_and_a_right_one_comes_in(browser: Browser, site: Site) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(site.url)
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
    assert grave_faults(page) == []
    page.get_by_label("API key").fill("pk_not-a-key-of-this-platform")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("this key is not valid")
    log_in(page, site, site.keys["reader"])
    (cookie,) = context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("alert")).to_have_text("You are logged out.")
    page.goto(site.url)
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
    context.close()


def test_a_revoked_key_ends_the_visit_with_a_word(browser: Browser, site: Site) -> None:
    made = site.api.keys.create("short-lived", ["read"])
    context = browser.new_context()
    page = context.new_page()
    log_in(page, site, made.key)
    site.api.keys.revoke(made.key_id)
    # Until then a part of the page may say in its own words that nobody answers.
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
    expect(page.get_by_role("alert")).to_contain_text("no longer valid")
    context.close()


@pytest.mark.parametrize("path", ["/", "/compose"])
def test_a_logout_in_one_tab_ends_the_others(browser: Browser, site: Site, path: str) -> None:
    """Also a page that has nothing to refresh."""
    context = browser.new_context()
    first, second = context.new_page(), context.new_page()
    log_in(first, site, site.keys["sender"])
    second.goto(site.url + path)
    expect(second.get_by_role("button", name="Log out")).to_be_visible()
    first.get_by_role("button", name="Log out").click()
    expect(second.get_by_role("heading", level=1)).to_have_text("Log in")
    context.close()


def test_nothing_comes_from_another_host_and_no_script_without_a_nonce(site: Site, open_page: Open) -> None:
    page = open_page("/health")
    asked: list[str] = []
    refused: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: refused.append(message.text) if "Content Security" in message.text else None)
    page.goto(site.url)
    expect(page.locator(".tile", has_text="Connected")).to_be_visible()
    assert [url for url in asked if not url.startswith((site.url, "data:", "ws://127.0.0.1"))] == []
    assert refused == []
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.owned = 1'}))"
    )
    assert page.evaluate("window.owned") is None


def test_light_and_dark_are_switched_and_remembered(open_page: Open) -> None:
    page = open_page("/")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


def test_the_keyboard_reaches_the_content_first(open_page: Open) -> None:
    page = open_page("/")
    expect(page.locator(".tile", has_text="Connected")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
