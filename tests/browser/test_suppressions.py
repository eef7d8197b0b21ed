"""Suppressions: putting people on the list, by hand or from a file, and taking one off."""

import pytest
from playwright.sync_api import Locator, Page, expect

from .chromium import faults_of_look
from .conftest import Open, Site
from .test_compose import WriteCsv


def listed(page: Page, number: str) -> Locator:
    return page.get_by_role("region", name="Suppressed numbers").locator("tbody tr", has_text=number)


@pytest.mark.parametrize(("theme", "words"), [("light", "rgb(245, 244, 239)"), ("dark", "rgb(18, 23, 22)")])
def test_what_was_done_can_be_read_in_light_and_dark(open_page: Open, theme: str, words: str) -> None:
    page = open_page("/suppressions", theme=theme)
    page.get_by_label("Numbers, one on each line").fill("+44 7700 940009")
    page.get_by_role("button", name="Add to the list").click()
    expect(page.locator(".note .q-notification__message")).to_have_css("color", words)


def test_people_are_added_by_hand_and_one_is_taken_off(site: Site, open_page: Open) -> None:
    page = open_page("/suppressions")
    page.get_by_role("button", name="Add to the list").click()
    expect(page.get_by_text("No number yet.")).to_be_visible()
    page.get_by_label("Numbers, one on each line").fill("+44 7700 940001\n447700940002")
    page.get_by_label("Reason", exact=True).fill("asked by <b>mail</b>")
    page.get_by_role("button", name="Add to the list").click()
    expect(page.get_by_text("2 added.")).to_be_visible()
    expect(listed(page, "+44 7700 940001")).to_contain_text("asked by <b>mail</b>")
    expect(page.get_by_label("Numbers, one on each line")).to_have_value("")
    listed(page, "+44 7700 940001").get_by_role("button", name="Take off").click()
    page.get_by_role("dialog").get_by_role("button", name="Take off the list").click()
    expect(listed(page, "+44 7700 940001")).to_have_count(0)
    numbers = {one.to for one in site.api.suppressions.each()}
    assert "447700940002" in numbers
    assert "447700940001" not in numbers


def test_a_bad_number_is_refused_with_the_gateways_word(open_page: Open) -> None:
    page = open_page("/suppressions")
    page.get_by_label("Numbers, one on each line").fill("nobody")
    page.get_by_role("button", name="Add to the list").click()
    expect(page.get_by_role("alert").filter(has_text="no possible phone number")).to_be_visible()
    expect(page.get_by_label("Numbers, one on each line")).to_have_value("nobody")


def test_a_file_is_imported_and_the_list_exported(site: Site, open_page: Open, csv_file: WriteCsv) -> None:
    page = open_page("/suppressions")
    page.locator(".drop input").set_input_files(csv_file("to,reason\n447700940011,left\nnobody,\n447700940011,\n"))
    expect(page.get_by_text("contacts.csv: 1 added, 1 there already, 1 bad row")).to_be_visible()
    bad = page.get_by_role("region", name="Bad rows").locator("tbody tr")
    expect(bad).to_have_count(1)
    expect(bad).to_contain_text("INVALID_NUMBER")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as CSV").click()
    text = download.value.path().read_text()
    assert text.startswith("to,at,reason,source")
    assert "447700940011" in text


def test_a_person_is_erased(site: Site, open_page: Open) -> None:
    job = site.api.jobs.create(contacts=["447700940021"], text="Hello")
    site.api.jobs.wait(job.job_id)
    page = open_page("/suppressions")
    page.get_by_label("Number", exact=True).fill("+44 7700 940021")
    page.get_by_role("button", name="Erase…").click()
    page.get_by_role("dialog").get_by_role("button", name="Erase").click()
    expect(page.get_by_text("Erased in")).to_be_visible()
    assert site.api.jobs.messages(job.job_id).items[0].to == "erased"


def test_a_key_that_sends_adds_but_lifts_nothing(site: Site, open_page: Open) -> None:
    site.api.suppressions.add("447700940031")
    page = open_page("/suppressions", who="sender")
    expect(listed(page, "+44 7700 940031")).to_have_count(1)
    expect(page.get_by_role("button", name="Add to the list")).to_be_visible()
    expect(page.get_by_role("button", name="Take off")).to_have_count(0)
    expect(page.get_by_role("button", name="Erase…")).to_have_count(0)


def test_a_key_that_reads_only_looks(open_page: Open) -> None:
    page = open_page("/suppressions", who="reader")
    expect(page.get_by_role("heading", name="On the list")).to_be_visible()
    expect(page.get_by_role("button", name="Add to the list")).to_have_count(0)


def test_it_is_accessible_and_fits_a_phone(site: Site, open_page: Open) -> None:
    site.api.suppressions.add("447700940041")
    page = open_page("/suppressions")
    expect(listed(page, "+44 7700 940041")).to_have_count(1)
    assert faults_of_look(page) == []
