"""The first page: the fleet in five seconds, and steering it."""

import pytest
from playwright.sync_api import Page, expect

from acceptance.platform import wait_for

from .chromium import PHONE_PX, grave_faults, width_on_a_phone
from .conftest import Open, Site


def figure(page: Page, label: str) -> str:
    return page.locator(".tile", has_text=label).locator(".tile-figure").inner_text()


def rows(page: Page) -> list[str]:
    return page.get_by_role("region", name="Numbers").locator("tbody tr td:first-child a").all_inner_texts()


def test_what_the_fleet_does_is_there_at_a_glance(site: Site, open_page: Open) -> None:
    page = open_page()
    expect(page.locator(".tile", has_text="Connected")).to_contain_text("3 / 3")
    before = int(figure(page, "Sent today").replace(",", ""))
    job = site.api.jobs.create(contacts=[str(447700900300 + index) for index in range(12)], text="Hello")
    site.api.jobs.wait(job.job_id)
    expect(page.locator(".tile", has_text="Sent today").locator(".tile-figure")).to_have_text(f"{before + 12:,}")
    expect(page.get_by_role("img", name="Messages a minute")).to_have_attribute(
        "aria-label", f"Messages a minute in the last hour: {before + 12} sent, 0 failed in all"
    )


def test_every_number_stands_in_the_table_and_is_found_and_sorted_there(site: Site, open_page: Open) -> None:
    page = open_page()
    table = page.get_by_role("region", name="Numbers")
    expect(table.locator("tbody tr")).to_have_count(3)
    table.get_by_role("button", name="Number").click()
    # The table is drawn anew for each order; a click that comes before that finds nothing.
    expect(table.get_by_role("columnheader", name="Number")).to_have_attribute("aria-sort", "ascending")
    table.get_by_role("button", name="Number").click()
    wait_for("the other order", lambda: rows(page)[0].endswith("3"))
    assert table.get_by_role("columnheader", name="Number").get_attribute("aria-sort") == "descending"
    page.get_by_label("Search").fill("sim-2")
    expect(table.locator("tbody tr")).to_have_count(1)
    expect(table.locator("tbody tr")).to_contain_text("+44 7700 900002")
    page.get_by_label("Search").fill("nobody")
    expect(table).to_contain_text("No number fits this.")


def test_typing_is_not_disturbed_by_a_refresh(open_page: Open) -> None:
    page = open_page()
    search = page.get_by_label("Search")
    search.press_sequentially("sim-", delay=900)
    expect(search).to_have_value("sim-")
    expect(search).to_be_focused()


def test_all_sending_is_paused_and_resumed(site: Site, open_page: Open) -> None:
    page = open_page()
    page.get_by_role("button", name="Pause all sending").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.get_by_text("All sending is paused by an operator.")).to_be_visible()
    assert site.api.fleet.state().paused
    expect(page.get_by_role("region", name="Incidents")).to_contain_text("All sending was paused")
    page.get_by_role("button", name="Resume sending").click()
    # It may be the breaker that holds them: nobody lets them go by a slip of the hand.
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("look at its incidents first")
    assert site.api.fleet.state().paused
    dialog.get_by_role("button", name="Resume sending").click()
    expect(page.get_by_text("All sending is paused by an operator.")).to_be_hidden()
    assert not site.api.fleet.state().paused


def test_a_dialog_is_left_with_escape_and_nothing_is_done(site: Site, open_page: Open) -> None:
    page = open_page()
    page.get_by_role("button", name="Pause all sending").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert not site.api.fleet.state().paused


def test_a_service_that_is_away_is_named_and_comes_back_by_itself(site: Site, open_page: Open) -> None:
    page = open_page()
    expect(page.locator(".tile", has_text="Connected")).to_contain_text("3 / 3")
    with site.platform.frozen("dispatcher"):
        expect(page.get_by_role("alert").first).to_contain_text("no answer from")
        # What was known stays in sight.
        expect(page.locator(".tile", has_text="Connected")).to_contain_text("3 / 3")
    expect(page.get_by_role("alert").first).to_be_hidden(timeout=40_000)


def test_somebody_elses_text_is_shown_as_text(site: Site, open_page: Open) -> None:
    evil = "<img src=x onerror=document.title='owned'>"
    site.api.sessions.change("sim-3", tags=[evil])
    try:
        page = open_page()
        expect(page.get_by_role("region", name="Numbers")).to_contain_text(evil)
        assert page.title() == "Fleet · Paceline"
    finally:
        site.api.sessions.change("sim-3", tags=[])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_accessible_and_fits_a_phone(open_page: Open, theme: str) -> None:
    page = open_page(theme=theme)
    expect(page.get_by_role("region", name="Numbers").locator("tbody tr")).to_have_count(3)
    assert grave_faults(page) == []
    assert width_on_a_phone(page) == PHONE_PX
