"""One number: linking it, steering it, its queue."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from acceptance.platform import wait_for

from .chromium import PHONE_PX, grave_faults, width_on_a_phone
from .conftest import Open, Site


def status(page: Page) -> Locator:
    return page.locator(".page-tools .chip")


@pytest.fixture
def paused(site: Site) -> Iterator[str]:
    """A number that sends nothing, with a queue of five."""
    site.api.sessions.pause("sim-2")
    phone = site.api.sessions.get("sim-2").phone
    contacts = [str(447700900400 + index) for index in range(5)]
    job = site.api.jobs.create(contacts=contacts, text="Wait", phone=phone)
    wait_for("its queue", lambda: site.api.queues.get("sim-2").total == 5)
    yield job.job_id
    site.api.sessions.resume("sim-2")
    site.api.jobs.wait(job.job_id)


def test_a_number_is_added_and_linked_by_its_qr_code(site: Site, open_page: Open) -> None:
    site.platform.simulate(**{"fresh-1": {"linking": "qr"}})
    page = open_page()
    page.get_by_role("button", name="Add a number").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Phone number").fill("+44 7700 900050")
    dialog.get_by_label("How it sends").select_option("simulated")
    dialog.get_by_label("Name of the session").fill("fresh-1")
    dialog.get_by_role("button", name="Add").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("+44 7700 900050")
    code = page.get_by_role("img", name="QR code to link this number")
    expect(code).to_be_visible()
    assert str(code.get_attribute("src")).startswith("data:image/svg+xml")
    expect(status(page)).to_have_text("Needs a scan")
    assert grave_faults(page) == []
    page.get_by_role("button", name="Use a pairing code instead").click()
    expect(page.locator(".pairing-code")).not_to_be_empty()
    page.get_by_role("button", name="Scan it for me").click()
    expect(status(page)).to_have_text("Connected")
    expect(code).to_be_hidden()
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Fleet")
    wait_for("it to be gone", lambda: "fresh-1" not in [one.session_id for one in site.api.sessions.each()])


def test_a_number_that_waits_for_a_proxy_says_so_where_its_code_would_be(site: Site, open_page: Open) -> None:
    """“The worker is getting a code” was all one saw, for ever: there was no worker."""
    site.api.proxies.upload(b"http://proxy.example:1")
    (proxy,) = site.api.proxies.list().items
    site.api.sessions.create("447700900053", session_id="waits-1", driver="simulated", proxy=proxy.proxy_id)
    site.api.sessions.stop("waits-1")
    wait_for("its end", lambda: site.api.proxies.list().items[0].load == 0)
    site.api.proxies.mark_bad(proxy.proxy_id)
    site.api.sessions.start("waits-1")
    page = open_page("/sessions/waits-1")
    expect(page.locator(".link-wait")).to_contain_text("no proxy of the pool is free")
    assert grave_faults(page) == []
    site.api.sessions.remove("waits-1")
    wait_for("it to be gone", lambda: "waits-1" not in [one.session_id for one in site.api.sessions.each()])
    site.api.proxies.drop(proxy.proxy_id)


def test_pressed_twice_a_number_is_added_once(site: Site, open_page: Open) -> None:
    page = open_page()
    page.get_by_role("button", name="Add a number").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Phone number").fill("+44 7700 900054")
    dialog.get_by_label("How it sends").select_option("simulated")
    assert dialog.get_by_label("Goes out by").locator("option").count() == 2
    dialog.get_by_role("button", name="Add").dblclick()
    expect(page.get_by_role("heading", level=1)).to_contain_text("+44 7700 900054")
    (made,) = [one for one in site.api.sessions.each() if one.phone == "447700900054"]
    site.api.sessions.remove(made.session_id)
    wait_for("it to be gone", lambda: made.session_id not in [one.session_id for one in site.api.sessions.each()])


def test_a_quarantined_number_is_started_and_linked_again(site: Site, open_page: Open) -> None:
    """Its status stays “quarantined” until somebody requeues; that must not hide the code."""
    site.platform.simulate(banned_1={"banned": True})
    site.api.sessions.create("447700900052", session_id="banned-1", driver="simulated", proxy="direct")
    wait_for("its ban", lambda: site.api.sessions.get("banned-1").status == "QUARANTINED")
    site.platform.simulate(banned_1={"linking": "qr"})
    for left in (site.platform.data / "ledger").glob("banned-1.*ed"):
        left.unlink()
    page = open_page("/sessions/banned-1")
    expect(status(page)).to_have_text("Quarantined")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("img", name="QR code to link this number")).to_be_visible()
    expect(status(page)).to_have_text("Quarantined")
    page.get_by_role("button", name="Scan it for me").click()
    wait_for("the link", lambda: site.api.sessions.get("banned-1").authorisation == "LINKED")
    expect(page.get_by_role("img", name="QR code to link this number")).to_be_hidden()
    site.api.sessions.remove("banned-1")
    wait_for("it to be gone", lambda: "banned-1" not in [one.session_id for one in site.api.sessions.each()])


def test_its_rate_is_changed_and_given_back_to_trust(site: Site, open_page: Open) -> None:
    page = open_page("/sessions/sim-1")
    rate = page.get_by_label("Rate")
    rate.select_option("5")
    wait_for("the override", lambda: site.api.sessions.explain("sim-1").facts.rpm_override == 5)
    expect(page.get_by_text("Set by an operator.")).to_be_visible()
    rate.select_option("")
    wait_for("trust", lambda: site.api.sessions.explain("sim-1").facts.rpm_override is None)


def test_one_message_of_its_queue_is_canceled(site: Site, open_page: Open, paused: str) -> None:
    page = open_page("/sessions/sim-2")
    queue = page.get_by_role("region", name="Queue")
    expect(queue.locator("tbody tr")).to_have_count(5)
    expect(status(page)).to_have_text("Paused")
    gone = queue.locator("tbody tr").nth(1)
    to = gone.locator("td a").inner_text()
    gone.get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Cancel", exact=True).click()
    expect(dialog).to_be_hidden()
    assert site.api.jobs.get(paused).progress.canceled == 0
    gone.get_by_role("button", name="Cancel").click()
    dialog.get_by_role("button", name="Cancel the message").click()
    expect(queue.locator("tbody tr")).to_have_count(4)
    expect(queue).not_to_contain_text(to)
    assert site.api.jobs.get(paused).progress.canceled == 1


def test_its_whole_queue_is_canceled_and_it_says_how_much_that_was(site: Site, open_page: Open, paused: str) -> None:
    page = open_page("/sessions/sim-2")
    expect(page.get_by_role("region", name="Queue").locator("tbody tr")).to_have_count(5)
    page.get_by_role("button", name="Cancel all").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel all of it").click()
    expect(page.get_by_text("5 messages canceled.")).to_be_visible()
    assert site.api.jobs.get(paused).progress.canceled == 5


def test_it_is_paused_and_resumed(site: Site, open_page: Open) -> None:
    page = open_page("/sessions/sim-3")
    page.get_by_role("button", name="Pause").click()
    expect(status(page)).to_have_text("Paused")
    assert site.api.sessions.get("sim-3").paused
    page.get_by_role("button", name="Resume").click()
    expect(status(page)).to_have_text("Connected")


def test_a_restart_is_asked_about_and_comes_back(site: Site, open_page: Open) -> None:
    page = open_page("/sessions/sim-3")
    before = site.api.sessions.get("sim-3").generation
    page.get_by_role("button", name="Restart").click()
    page.get_by_role("dialog").get_by_role("button", name="Restart").click()
    wait_for("another worker", lambda: site.api.sessions.get("sim-3").generation == before + 1)
    expect(status(page)).to_have_text("Connected")


def test_what_it_does_and_did_is_told(site: Site, open_page: Open) -> None:
    phone = site.api.sessions.get("sim-1").phone
    sent = site.api.jobs.create(contacts=["447700900500"], text="Hello", phone=phone)
    site.api.jobs.wait(sent.job_id)
    page = open_page("/sessions/sim-1")
    expect(page.get_by_role("region", name="Events")).to_contain_text("Sent · +44 7700 900500")
    expect(page.get_by_role("region", name="History")).to_contain_text(f"Sent {sent.job_id}:0")
    expect(page.locator(".dot-sent")).not_to_have_count(0)
    expect(page.get_by_role("img", name="Pacing")).to_be_visible()


def test_whoever_may_only_read_finds_nothing_to_press(open_page: Open) -> None:
    page = open_page("/sessions/sim-1", who="reader")
    expect(status(page)).to_have_text("Connected")
    expect(page.get_by_label("Rate")).to_be_disabled()
    for name in ("Pause", "Restart", "Stop", "Log out", "Remove", "Cancel all"):
        expect(page.locator(".page").get_by_role("button", name=name, exact=True)).to_have_count(0)


def test_a_number_that_is_not_there(open_page: Open) -> None:
    page = open_page("/sessions/nobody")
    expect(status(page)).to_have_text("Not there")
    expect(page.get_by_role("alert").first).to_contain_text("there is no such session")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_accessible_and_fits_a_phone(open_page: Open, theme: str) -> None:
    page = open_page("/sessions/sim-1", theme=theme)
    expect(status(page)).to_have_text("Connected")
    expect(page.get_by_role("img", name="Pacing")).to_be_visible()
    assert grave_faults(page) == []
    assert width_on_a_phone(page) == PHONE_PX
