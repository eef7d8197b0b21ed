"""Alerts and settings: sending on and off, SmartGuard, the trust table, a test alert, keys."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from .chromium import faults_of_look
from .conftest import Open, Site, log_in


def switch(page: Page, label: str) -> Locator:
    return page.locator(".switch", has_text=label)


@pytest.fixture
def running(site: Site) -> Iterator[None]:
    """Whatever a test switches, the fleet sends afterwards."""
    yield
    site.api.fleet.start()
    site.api.fleet.resume()
    site.api.smartguard.enable(True)


@pytest.mark.usefixtures("running")
def test_all_sending_is_paused_and_resumed(site: Site, open_page: Open) -> None:
    page = open_page("/settings")
    page.get_by_role("button", name="Pause sending").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(switch(page, "Sending").locator(".chip")).to_have_text("paused")
    assert site.api.fleet.state().paused
    page.get_by_role("button", name="Resume sending").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume sending").click()
    expect(switch(page, "Sending").locator(".chip")).to_have_text("allowed")
    assert not site.api.fleet.state().paused


@pytest.mark.usefixtures("running")
def test_the_dispatchers_are_stopped_and_started(site: Site, open_page: Open) -> None:
    page = open_page("/settings")
    page.get_by_role("button", name="Stop dispatchers").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(switch(page, "Dispatchers").locator(".chip")).to_contain_text("stopped")
    assert not site.api.fleet.state().running
    page.get_by_role("button", name="Start dispatchers").click()
    expect(switch(page, "Dispatchers").locator(".chip")).to_have_text("running")


@pytest.mark.usefixtures("running")
def test_smartguard_is_switched_off_and_on(site: Site, open_page: Open) -> None:
    page = open_page("/settings")
    page.get_by_role("button", name="Switch off smartguard").click()
    page.get_by_role("dialog").get_by_role("button", name="Switch off").click()
    expect(switch(page, "SmartGuard").locator(".chip")).to_contain_text("off")
    assert not site.api.smartguard.status().enabled
    page.get_by_role("button", name="Switch on smartguard").click()
    expect(switch(page, "SmartGuard").locator(".chip")).to_have_text("watching")


def test_the_trust_table_is_the_policy_in_force(site: Site, open_page: Open) -> None:
    page = open_page("/settings")
    policy = site.api.fleet.policy()
    rows = page.get_by_role("region", name="What a number may do at which age").locator("tbody tr")
    expect(rows).to_have_count(len(policy.levels))
    for place, level in enumerate(policy.levels):
        expect(rows.nth(place)).to_contain_text(level.name)
        expect(rows.nth(place).locator("td").nth(2)).to_have_text(str(level.rpm))


def test_a_test_alert_without_a_channel_says_what_to_set(open_page: Open) -> None:
    page = open_page("/settings")
    expect(page.get_by_text("No channel is set up: nobody is alerted.")).to_be_visible()
    page.get_by_role("button", name="Send a test alert").click()
    expect(page.get_by_text("see TELEGRAM_BOT_TOKEN and ALERT_URLS")).to_be_visible()


def test_a_key_is_made_shown_once_used_and_revoked(site: Site, open_page: Open) -> None:
    """The new key logs in; revoked, it is out at the next look, with a word."""
    page = open_page("/settings")
    page.get_by_role("button", name="New key").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("night shift")
    dialog.get_by_label("May").select_option("read")
    dialog.get_by_role("button", name="Make the key").click()
    key = page.locator(".secret").inner_text()
    page.get_by_role("button", name="I have it").click()
    expect(page.locator(".secret")).to_have_count(0)
    row = page.get_by_role("region", name="API keys").locator("tbody tr", has_text="night shift")
    expect(row).to_contain_text("live")
    assert key not in page.content()
    with page.context.browser.new_context() as other:  # type: ignore[union-attr]
        theirs = other.new_page()
        log_in(theirs, site, key)
        row.get_by_role("button", name="Revoke").click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        expect(row).to_contain_text("revoked")
        expect(theirs.get_by_role("heading", level=1)).to_have_text("Log in")


def test_a_mistyped_expiry_makes_no_key(site: Site, open_page: Open) -> None:
    """It used to make one that never expires."""
    page = open_page("/settings")
    page.get_by_role("button", name="New key").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("typo")
    dialog.get_by_label("Expires after days").press_sequentially("1.5")
    dialog.get_by_role("button", name="Make the key").click()
    expect(dialog.get_by_role("alert")).to_have_text("A whole number from 1 to 3,650, or nothing.")
    dialog.get_by_label("Expires after days").fill("")
    dialog.get_by_label("Name").fill(" ")
    dialog.get_by_role("button", name="Make the key").click()
    expect(dialog.get_by_role("alert")).to_have_text("Who will use it?")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    assert "typo" not in [key.name for key in site.api.keys.each()]


def test_a_key_ends_after_the_days_that_were_typed(site: Site, open_page: Open) -> None:
    page = open_page("/settings")
    page.get_by_role("button", name="New key").click()
    page.get_by_role("dialog").get_by_label("Name").fill("a week")
    page.get_by_role("dialog").get_by_label("Expires after days").fill("7")
    page.get_by_role("button", name="Make the key").click()
    page.get_by_role("button", name="I have it").click()
    (key,) = [one for one in site.api.keys.each() if one.name == "a week"]
    assert key.expires_at is not None
    assert key.expires_at - key.created_at == 7 * 86_400_000


def test_whoever_may_only_read_switches_nothing(open_page: Open) -> None:
    page = open_page("/settings", who="reader")
    expect(switch(page, "SmartGuard").locator(".chip")).to_have_text("watching")
    for name in ("Pause sending", "Stop dispatchers", "Switch off smartguard", "Send a test alert"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
    expect(page.get_by_role("heading", name="API keys")).to_have_count(0)


def test_it_is_accessible_and_fits_a_phone(open_page: Open) -> None:
    page = open_page("/settings")
    expect(page.get_by_role("region", name="API keys").locator("tbody tr")).not_to_have_count(0)
    assert faults_of_look(page) == []
