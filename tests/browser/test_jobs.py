"""Jobs: the list, one job from its start to its end, and stopping it or a part of it."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from .chromium import faults_of_look
from .conftest import Open, Site

FIRST = 447700910000
HOUR_MS = 3_600_000


def people(count: int, first: int = FIRST) -> list[str]:
    return [str(first + index) for index in range(count)]


def chip(page: Page) -> Locator:
    return page.locator(".standing .chip")


@pytest.fixture
def later(site: Site) -> Iterator[str]:
    """A job of four that does not begin before an hour has passed."""
    at = site.platform.now_ms() + HOUR_MS
    job = site.api.jobs.create(contacts=people(4), text="Later", send_at=at, tags=["later"])
    yield job.job_id
    if not site.api.jobs.get(job.job_id).ended:
        site.api.jobs.cancel(job.job_id)


def test_a_job_is_watched_from_the_list_to_its_end(site: Site, open_page: Open) -> None:
    page = open_page("/jobs")
    job = site.api.jobs.create(contacts=people(6, FIRST + 100), text="Hello", tags=["watched"])
    row = page.get_by_role("row", name="watched").first
    expect(row).to_be_visible()
    row.get_by_role("link", name="watched").click()
    expect(page.get_by_text(job.job_id, exact=True)).to_be_visible()
    expect(chip(page)).to_have_text("done")
    expect(page.locator(".standing-figure")).to_have_text("6 of 6 sent")
    chart = page.locator(".course svg")
    expect(chart).to_have_attribute("aria-label", "6 of 6 messages sent; 6 were planned by now")
    expect(page.locator(".course-actual")).to_be_visible()
    expect(page.get_by_role("region", name="Messages of this job").locator("tbody tr")).to_have_count(6)
    for name in ("Pause", "Resume", "Cancel job"):
        expect(page.get_by_role("button", name=name)).to_be_hidden()


def test_why_a_message_waits_is_told_and_one_is_canceled(site: Site, open_page: Open, later: str) -> None:
    page = open_page(f"/jobs/{later}")
    messages = page.get_by_role("region", name="Messages of this job")
    expect(messages.locator("tbody tr")).to_have_count(4)
    reason = site.api.jobs.messages(later).items[1].waiting
    assert reason is not None
    expect(messages.locator("tbody tr").nth(1)).to_contain_text(reason.text)
    messages.locator("tbody tr").nth(1).get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the message").click()
    expect(messages.locator("tbody tr").nth(1)).to_contain_text("canceled")
    assert [item.state == "canceled" for item in site.api.jobs.messages(later).items] == [False, True, False, False]
    page.get_by_role("button", name="canceled 1").click()
    expect(messages.locator("tbody tr")).to_have_count(1)


def test_a_job_is_paused_resumed_and_canceled(site: Site, open_page: Open, later: str) -> None:
    page = open_page(f"/jobs/{later}")
    page.get_by_role("button", name="Pause").click()
    expect(chip(page)).to_have_text("paused")
    assert site.api.jobs.get(later).state == "PAUSED"
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    assert site.api.jobs.get(later).state != "PAUSED"
    page.get_by_role("button", name="Cancel job").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the job").click()
    expect(chip(page)).to_have_text("canceled")
    assert site.api.jobs.get(later).progress.canceled == 4


def test_the_list_is_filtered_by_state_and_tag(site: Site, open_page: Open, later: str) -> None:
    page = open_page("/jobs")
    rows = page.get_by_role("region", name="Jobs").locator("tbody tr")
    page.get_by_label("Tag").fill("later")
    expect(rows.first).to_contain_text("later")
    page.get_by_label("State").select_option(label="Done")
    expect(rows).to_have_text(["No job matches."])


def test_somebody_elses_words_stay_words(site: Site, open_page: Open) -> None:
    """In a tag, in metadata, and in both directions."""
    evil = "<script>document.title='owned'</script>"
    at = site.platform.now_ms() + HOUR_MS
    words = {"note": f"שלום {evil}"}
    job = site.api.jobs.create(contacts=people(1), text="Hello", send_at=at, tags=[evil], metadata=words)
    page = open_page("/jobs")
    link = page.get_by_role("link", name=evil)
    expect(link).to_have_attribute("dir", "auto")
    link.click()
    expect(page.get_by_text(words["note"])).to_be_visible()
    assert page.title() == "Job · Paceline"
    site.api.jobs.cancel(job.job_id)


def test_whoever_may_only_read_finds_nothing_to_press(open_page: Open, later: str) -> None:
    page = open_page(f"/jobs/{later}", who="reader")
    expect(page.get_by_role("region", name="Messages of this job").locator("tbody tr")).to_have_count(4)
    expect(page.get_by_role("button", name="Pause")).to_be_disabled()
    expect(page.get_by_role("button", name="Cancel job")).to_have_attribute("title", "Your key has no “send” scope.")
    expect(page.get_by_role("button", name="Cancel", exact=True)).to_have_count(0)


def test_a_job_that_is_not_there_is_said_once(open_page: Open) -> None:
    page = open_page("/jobs/01KKBK4FE0S7MP2BKPJTKCXK0V")
    expect(page.get_by_text("There is no such job, or it ended")).to_be_visible()
    expect(page.get_by_role("alert").locator("visible=true")).to_have_count(0)


def test_they_are_accessible_and_fit_a_phone(open_page: Open, later: str) -> None:
    for path, ready in (("/jobs", "later"), (f"/jobs/{later}", "Planned and actual")):
        page = open_page(path)
        expect(page.get_by_text(ready).first).to_be_visible()
        assert faults_of_look(page) == []
