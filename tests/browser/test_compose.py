"""Compose: from a list and a text to a plan, and from the plan to one job."""

import base64
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from .chromium import faults_of_look
from .conftest import Open, Site, log_in

WriteCsv = Callable[[str], Path]
PEOPLE = "Phone,First name\n+44 7700 920001,Ada\n447700920002,עדה\n447700920003,\nnobody,Bob\n447700920009,Sue\n"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def drop(page: Page, file: Path, place: int = 0) -> None:
    page.locator(".drop input").nth(place).set_input_files(file)


def say(page: Page, words: str) -> None:
    page.get_by_label("Text", exact=True).fill(words)


def plan(page: Page) -> None:
    page.get_by_role("button", name="Plan").click()


def test_a_csv_is_planned_sent_and_watched_to_its_end(site: Site, open_page: Open, csv_file: WriteCsv) -> None:
    """The plan tells who is left out and why; what is sent is what was planned."""
    site.api.suppressions.add("447700920009")
    page = open_page("/compose")
    drop(page, csv_file(PEOPLE))
    expect(page.get_by_text("5 recipients · numbers from “Phone” · columns: First_name")).to_be_visible()
    say(page, "Hello ")
    page.get_by_role("button", name="{{First_name}}").click()
    expect(page.locator(".bubble-text")).to_have_text("Hello Ada")
    page.get_by_label("The next recipient").click()
    expect(page.locator(".bubble-text")).to_have_text("Hello עדה")
    page.get_by_label("Tags").fill("from a file")
    plan(page)
    box = page.locator(".plan")
    for words in ("2 will be written to", "2 refused", "1 on the suppression list", "Load on each number"):
        expect(box).to_contain_text(words)
    refused = page.get_by_role("region", name="Refused recipients")
    expect(refused).to_contain_text("a variable has no value: First_name")
    expect(refused).to_contain_text("not a phone number")
    page.get_by_role("button", name="Send to 2 people").click()
    expect(page.locator(".standing .chip")).to_have_text("done")
    expect(page.locator(".standing-figure")).to_have_text("2 of 2 sent")
    (job,) = site.api.jobs.list(tag="from a file").items
    sent = {line["to"]: line["text"] for line in site.platform.ledger() if line["taskId"].startswith(job.job_id)}
    assert sent == {"447700920001": "Hello Ada", "447700920002": "Hello עדה"}


def test_a_changed_form_must_be_planned_again(open_page: Open) -> None:
    page = open_page("/compose")
    page.get_by_label("Numbers, one on each line").fill("+44 7700 920011")
    say(page, "Hello")
    plan(page)
    expect(page.get_by_role("button", name="Send to one person")).to_be_visible()
    say(page, "Hello, and more")
    expect(page.get_by_role("button", name="Send to one person")).to_be_hidden()
    expect(page.get_by_text("The form has changed since the plan.")).to_be_visible()


def test_what_is_written_while_the_plan_is_made_is_not_sent_unplanned(site: Site, open_page: Open) -> None:
    """The plan is of the form as it was when it was asked for."""
    page = open_page("/compose")
    page.get_by_label("Numbers, one on each line").fill("+44 7700 920016")
    say(page, "Hello")
    expect(page.locator(".bubble-text")).to_have_text("Hello")
    with site.platform.frozen("gateway"):
        plan(page)
        say(page, "Hello, and more")
        expect(page.locator(".bubble-text")).to_have_text("Hello, and more")
    expect(page.get_by_text("The form has changed since the plan.")).to_be_visible()
    expect(page.get_by_role("button", name="Send to one person")).to_be_hidden()
    plan(page)
    expect(page.get_by_role("button", name="Send to one person")).to_be_visible()


@pytest.mark.parametrize(
    ("browser_says", "words"),
    [("NaN", "This is no time."), ("new Promise(() => {})", "Your browser has not said when that is.")],
    ids=["no time", "no answer"],
)
def test_a_time_that_the_browser_cannot_tell_is_said_at_its_field(
    open_page: Open, browser_says: str, words: str
) -> None:
    page = open_page("/compose")
    page.get_by_label("Numbers, one on each line").fill("+44 7700 920017")
    say(page, "Hello")
    page.get_by_label("Not before").fill("2031-02-03T04:05")
    page.evaluate(f"void (Date.prototype.getTime = () => {browser_says})")
    plan(page)
    expect(page.get_by_role("alert").filter(has_text=words)).to_be_visible()
    expect(page.get_by_role("button", name="Send to one person")).to_be_hidden()
    page.get_by_label("Not before").fill("")
    expect(page.get_by_role("alert").filter(has_text=words)).to_be_hidden()
    plan(page)
    expect(page.get_by_role("button", name="Send to one person")).to_be_visible()


def paste(page: Page, words: str, then: str = "") -> None:
    """Typing ten thousand lines, which is what `fill` does, takes a browser minutes. `then` is done at once."""
    inside = "field.value = words; for (const one of ['input', 'change']) field.dispatchEvent(new Event(one))"
    page.get_by_label("Numbers, one on each line").evaluate(f"(field, words) => {{ {inside}; {then} }}", words)


def numbers(count: int) -> str:
    return "\n".join(f"+44 7700 {n:06}" for n in range(count))


def test_a_plan_waits_until_the_list_is_read(open_page: Open) -> None:
    """A long list takes the dashboard a while; whoever presses at once must not be told that there is nobody in it."""
    page = open_page("/compose")
    say(page, "Hello")
    expect(page.locator(".bubble-text")).to_have_text("Hello")
    paste(
        page, numbers(20_000), then="[...document.querySelectorAll('button')].find(b => b.innerText == 'Plan').click()"
    )
    expect(page.get_by_role("button", name="Send to 20,000 people")).to_be_visible()


def test_a_list_too_long_to_paste_is_said_to_be(open_page: Open) -> None:
    """The connection would drop it without a word, and the list before it would be the one that is sent."""
    page = open_page("/compose")
    paste(page, numbers(2))
    expect(page.get_by_text("2 recipients")).to_be_visible()
    # Six bytes each on their way.
    paste(page, "\x01" * 160_000)
    expect(page.get_by_role("alert")).to_contain_text("Drop it as a file.")
    expect(page.get_by_text("2 recipients")).to_be_hidden()
    paste(page, numbers(3))
    expect(page.get_by_text("3 recipients")).to_be_visible()
    expect(page.get_by_role("alert")).to_be_hidden()


def test_pressed_twice_it_is_sent_once(site: Site, open_page: Open) -> None:
    page = open_page("/compose")
    page.get_by_label("Numbers, one on each line").fill("+44 7700 920012")
    say(page, "Hello")
    page.get_by_label("Tags").fill("twice")
    plan(page)
    page.get_by_role("button", name="Send to one person").dblclick()
    expect(page.get_by_role("heading", level=1)).to_have_text("Job")
    assert len(site.api.jobs.list(tag="twice").items) == 1


def test_an_image_goes_with_its_caption(site: Site, open_page: Open, tmp_path: Path) -> None:
    picture = tmp_path / "dot.png"
    picture.write_bytes(PIXEL)
    page = open_page("/compose")
    page.get_by_label("Numbers, one on each line").fill("+44 7700 920013")
    page.get_by_label("Kind").select_option("image")
    plan(page)
    expect(page.get_by_text("Choose the image to send.")).to_be_visible()
    drop(page, picture, 1)
    expect(page.get_by_text("dot.png, ")).to_be_visible()
    expect(page.locator(".bubble-image")).to_have_attribute("src", re.compile("^blob:"))
    say(page, "A dot")
    page.get_by_label("Tags").fill("picture")
    plan(page)
    page.get_by_role("button", name="Send to one person").click()
    expect(page.locator(".standing .chip")).to_have_text("done")
    (job,) = site.api.jobs.list(tag="picture").items
    assert job.mode == "image"


def test_while_a_picture_is_under_way_none_is_shown_and_a_plan_waits_for_it(
    site: Site, open_page: Open, tmp_path: Path
) -> None:
    """The old one is neither shown nor sent any more, the new one not yet."""
    first, second = tmp_path / "first.png", tmp_path / "second.png"
    for path in (first, second):
        path.write_bytes(PIXEL)
    page = open_page("/compose")
    page.get_by_label("Numbers, one on each line").fill("+44 7700 920018")
    page.get_by_label("Kind").select_option("image")
    drop(page, first, 1)
    expect(page.locator(".bubble-image")).to_be_visible()
    plan(page)
    expect(page.get_by_role("button", name="Send to one person")).to_be_visible()
    with site.platform.frozen("gateway"):
        drop(page, second, 1)
        expect(page.get_by_text("second.png is being stored…")).to_be_visible()
        expect(page.locator(".bubble-image")).to_be_hidden()
        expect(page.get_by_role("button", name="Send to one person")).to_be_hidden()
        plan(page)
    expect(page.get_by_text("second.png, ")).to_be_visible()
    expect(page.locator(".bubble-image")).to_be_visible()
    expect(page.get_by_role("button", name="Send to one person")).to_be_visible()


def hold_uploads(page: Page, times: int | None = None) -> list[Route]:
    """As a slow line does: the dashboard has nothing of them until they are let go."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/upload/**", hold, times=times)
    return held


@pytest.fixture
def with_picture(open_page: Open, tmp_path: Path) -> Page:
    """A form with a picture in it that is planned; others lie beside."""
    for name in ("first", "second", "third"):
        (tmp_path / f"{name}.png").write_bytes(PIXEL)
    page = open_page("/compose")
    page.get_by_label("Numbers, one on each line").fill("+44 7700 920019")
    page.get_by_label("Kind").select_option("image")
    drop(page, tmp_path / "first.png", 1)
    expect(page.locator(".bubble-image")).to_be_visible()
    plan(page)
    expect(page.get_by_role("button", name="Send to one person")).to_be_visible()
    return page


def test_a_picture_that_the_dashboard_does_not_have_yet_is_the_one_that_counts(
    with_picture: Page, tmp_path: Path
) -> None:
    """On a slow line the one before was shown, planned and sent while the new one was under way."""
    page, held = with_picture, hold_uploads(with_picture)
    with page.expect_request("**/upload/**"):
        drop(page, tmp_path / "second.png", 1)
    expect(page.get_by_text("second.png is under way…")).to_be_visible()
    expect(page.locator(".bubble-image")).to_be_hidden()
    expect(page.get_by_role("button", name="Send to one person")).to_be_hidden()
    plan(page)
    # What is done after it is seen while the plan still waits.
    say(page, "A dot")
    expect(page.locator(".bubble-text")).to_have_text("A dot")
    expect(page.get_by_role("button", name="Send to one person")).to_be_hidden()
    held[0].continue_()
    expect(page.get_by_text("second.png, ")).to_be_visible()
    expect(page.locator(".bubble-image")).to_be_visible()
    expect(page.get_by_role("button", name="Send to one person")).to_be_visible()


def test_a_newer_picture_ends_the_upload_of_the_one_before(with_picture: Page, tmp_path: Path) -> None:
    """It was swallowed, and the one before was sent."""
    page = with_picture
    hold_uploads(page, times=1)
    with page.expect_event("requestfailed", lambda request: "/upload/" in request.url):
        with page.expect_request("**/upload/**"):
            drop(page, tmp_path / "second.png", 1)
        drop(page, tmp_path / "third.png", 1)
    expect(page.get_by_text("third.png, ")).to_be_visible()
    expect(page.locator(".bubble-image")).to_be_visible()
    expect(page.locator(".drop").nth(1)).to_contain_text("Drop the image here")


def test_a_picture_that_did_not_arrive_leaves_none(with_picture: Page, tmp_path: Path) -> None:
    page = with_picture
    page.route("**/upload/**", lambda route: route.abort())
    drop(page, tmp_path / "second.png", 1)
    expect(page.get_by_role("alert")).to_contain_text("The dashboard cannot be reached. Try again.")
    expect(page.locator(".bubble-image")).to_be_hidden()
    plan(page)
    expect(page.get_by_text("Choose the image to send.")).to_be_visible()
    expect(page.get_by_role("button", name="Send to one person")).to_be_hidden()


def test_what_is_missing_is_said_beside_its_field(open_page: Open) -> None:
    page = open_page("/compose")
    numbers = page.get_by_label("Numbers, one on each line")
    plan(page)
    for words in ("Nobody to write to yet.", "Nothing to say yet."):
        expect(page.get_by_role("alert").filter(has_text=words)).to_be_visible()
    numbers.fill("447700920014")
    say(page, "Hi {{name}}")
    plan(page)
    expect(page.get_by_role("alert")).to_contain_text("{{name}} has no value: plain numbers bring none.")
    numbers.fill("name,city\nAda,London")
    expect(page.get_by_role("alert").first).to_contain_text("must name the columns")
    expect(page.get_by_role("button", name="Send to")).to_have_count(0)


def test_a_file_that_cannot_be_read_says_why(open_page: Open, tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_bytes("to,name\n447700920015,Zoë".encode("latin-1"))
    page = open_page("/compose")
    drop(page, path)
    expect(page.get_by_role("alert")).to_contain_text("old.csv cannot be used: it is not UTF-8")


def test_a_file_that_comes_after_the_login_has_ended_says_so(browser: Browser, site: Site, csv_file: WriteCsv) -> None:
    """The door's answer to it is a good one, and the file was gone without a word."""
    with browser.new_context() as context:
        page = context.new_page()
        log_in(page, site, site.keys["sender"])
        page.goto(f"{site.url}/compose")
        expect(page.get_by_role("button", name="Plan")).to_be_visible()
        context.clear_cookies()
        drop(page, csv_file(PEOPLE))
        expect(page.get_by_role("alert")).to_contain_text("Your login has ended, and the file was not taken.")


def test_what_the_gateway_refuses_is_told(open_page: Open) -> None:
    page = open_page("/compose")
    page.get_by_label("Numbers, one on each line").fill("12345\n")
    say(page, "Hello")
    plan(page)
    expect(page.get_by_text("no contact could be accepted")).to_be_visible()


def test_a_key_that_may_only_read_does_not_compose(open_page: Open) -> None:
    page = open_page("/compose", who="reader")
    expect(page.get_by_text("This page needs a key with the “send” scope.")).to_be_visible()
    expect(page.get_by_role("button", name="Plan")).to_have_count(0)


def test_why_a_file_was_not_taken_can_be_read_in_light_and_dark(open_page: Open, tmp_path: Path) -> None:
    (tmp_path / "none.png").write_bytes(b"no picture at all")
    page = open_page("/compose")
    page.get_by_label("Kind").select_option("image")
    drop(page, tmp_path / "none.png", 1)
    expect(page.locator(".note--bad")).to_contain_text("the file is not what its type says")
    # It fades in.
    expect(page.locator(".note--bad")).to_have_css("opacity", "1")
    assert faults_of_look(page) == []


def test_it_is_accessible_and_fits_a_phone(open_page: Open, csv_file: WriteCsv) -> None:
    page = open_page("/compose")
    drop(page, csv_file(PEOPLE))
    say(page, "Hello {{First_name}}")
    plan(page)
    expect(page.locator(".plan")).to_contain_text("will be written to")
    assert faults_of_look(page) == []
