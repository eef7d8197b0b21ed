"""Queues: where work lies; dead letters, and sending them again."""

import pytest
from playwright.sync_api import Locator, Page, expect

from .chromium import faults_of_look
from .conftest import Open, Site

STRANGERS = ["447700930001", "447700930002", "447700930003"]
"""Not on WhatsApp, until they are."""


@pytest.fixture(scope="module")
def given_up(site: Site) -> list[str]:
    """Jobs of one message each that was given up; since then their recipients can be reached."""
    site.platform.simulate({"not_on_whatsapp": STRANGERS})
    # The file is read again within a second.
    site.platform.let_pass(1_500)
    jobs = [site.api.jobs.create(contacts=[to], text="Hello").job_id for to in STRANGERS]
    for job_id in jobs:
        assert site.api.jobs.wait(job_id).progress.failed == 1
    site.platform.simulate()
    return jobs


def letters(page: Page) -> Locator:
    return page.get_by_role("region", name="Dead letters").locator("tbody tr")


def of(page: Page, job_id: str) -> Locator:
    return letters(page).filter(has=page.get_by_title(job_id))


def test_a_dead_letter_tells_its_story_and_is_sent_again_once(site: Site, open_page: Open, given_up: list[str]) -> None:
    letter = given_up[0]
    page = open_page("/queues")
    row = of(page, letter)
    expect(row).to_contain_text("NOT_ON_WHATSAPP")
    expect(row).to_contain_text("+44 7700 930001")
    row.get_by_role("button", name="History").click()
    expect(page.get_by_role("dialog").get_by_role("listitem")).not_to_have_count(0)
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    row.get_by_role("button", name="Replay").click()
    page.get_by_role("dialog").get_by_role("button", name="Send again").click()
    expect(page.get_by_text("Sent again as job")).to_be_visible()
    expect(row.get_by_role("button", name="Again")).to_be_visible()
    (found,) = site.api.dead_letters.list(job_id=letter).items
    assert found.replayed_as is not None
    again = site.api.jobs.wait(found.replayed_as.partition(":")[0])
    assert (again.progress.sent, again.replay_of) == (1, found.id)


def test_letters_are_found_by_kind_and_code_and_replayed_together(
    site: Site, open_page: Open, given_up: list[str]
) -> None:
    letter = given_up[1]
    page = open_page("/queues")
    expect(of(page, letter)).to_have_count(1)
    page.get_by_role("button", name="refused by WhatsApp").click()
    expect(letters(page)).to_have_text(["None matches."])
    page.get_by_role("button", name="the recipient's").click()
    page.get_by_label("Code").fill("not_on_whatsapp")
    expect(of(page, letter)).to_have_count(1)
    page.get_by_role("button", name="Replay all that match").click()
    page.get_by_role("dialog").get_by_role("button", name="Send all again").click()
    expect(page.get_by_text("sent again in")).to_be_visible()
    assert site.api.dead_letters.list(job_id=letter).items[0].replayed_as is not None


def test_the_longest_queue_stands_first_with_why_it_waits(site: Site, open_page: Open) -> None:
    site.api.sessions.pause("sim-2")
    phone = site.api.sessions.get("sim-2").phone
    job = site.api.jobs.create(contacts=[str(447700930100 + index) for index in range(3)], text="Wait", phone=phone)
    page = open_page("/queues")
    first = page.get_by_role("region", name="Numbers by their queue").locator("tbody tr").first
    expect(first).to_contain_text("sim-2")
    expect(first.locator("td").nth(1)).to_have_text("3")
    expect(first).to_contain_text("paused")
    site.api.sessions.resume("sim-2")
    site.api.jobs.wait(job.job_id)


def test_whoever_may_only_read_replays_nothing(open_page: Open, given_up: list[str]) -> None:
    page = open_page("/queues", who="reader")
    expect(of(page, given_up[2]).get_by_title("Your key has no “send” scope.")).to_be_disabled()
    expect(page.get_by_role("button", name="Replay all that match")).to_be_disabled()


def test_it_is_accessible_and_fits_a_phone(open_page: Open, given_up: list[str]) -> None:
    page = open_page("/queues")
    expect(of(page, given_up[0])).to_have_count(1)
    assert faults_of_look(page) == []
