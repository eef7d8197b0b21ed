"""`make screenshots`: a picture of every page into docs/pictures, from a platform that really runs.

A small fleet of simulated numbers of every age sends for some minutes, with a mistake here and there, so that each page
has something to show. Pictures have few colours, so that they stay small.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext, Page

from acceptance.platform import Platform, free_ports, wait_for
from paceline.client import Contact

from .chromium import chromium
from .conftest import Site, log_in

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
DAY_MS = 86_400_000
SETTLE_SECONDS = 6
"""What a page needs to have asked for everything."""

POLICY = """
name = "pictures"
typing_ms = [200, 600]
jitter = 0.2
burst_limit = 8
burst_cooldown_ms = 12000

[[level]]
name = "cold"
max_age_days = 3
rpm = 5
delay_ms = [9000, 14000]
daily_cap = 20

[[level]]
name = "warm"
max_age_days = 14
rpm = 20
delay_ms = [2500, 4000]
daily_cap = 100

[[level]]
name = "hot"
rpm = 40
delay_ms = [900, 1600]
daily_cap = 500
"""
NUMBERS = (
    ("support-1", 40, ["support"]), ("support-2", 31, ["support"]), ("sales-il", 22, ["sales"]),
    ("sales-uk", 16, ["sales"]), ("events-1", 9, ["events"]), ("events-2", 2, ["events"]),
)  # fmt: skip
PROXIES = "http://amy:secret@proxy-1.example.net:8080\nsocks5h://bob:secret@proxy-2.example.net:1080\n"
PROFILES = (
    '{"displayName": "Front desk", "timezone": "Europe/London", "tags": ["support"]}\n{"displayName": "Night shift"}\n'
)


class Set:
    """The stage the pictures are taken on."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.api = site.api
        self.job = ""

    def build(self) -> None:
        now = self.site.platform.now_ms()
        self.site.platform.simulate({"read_ratio": 0.6, "delivered_delay_ms": [300, 2500]}, fresh={"linking": "qr"})
        for number, (name, age_days, tags) in enumerate(NUMBERS):
            phone, created = str(447700900010 + number), now - age_days * DAY_MS
            self.api.sessions.create(
                phone, session_id=name, driver="simulated", created_at=created, tags=tags, proxy="direct"
            )
        self.api.sessions.create("447700900077", session_id="fresh", driver="simulated", proxy="direct")
        wait_for("the numbers", lambda: self.api.fleet.overview().connected == len(NUMBERS))
        wait_for("a QR code", lambda: self.api.sessions.get("fresh").status == "SCAN_QR")
        self.api.proxies.upload(PROXIES.encode())
        self.api.profiles.upload(PROFILES.encode())
        self.api.suppressions.add(["447700900801", "447700900802"], reason="asked us to stop")

    def send(self) -> None:
        """Two jobs that take a while, one that is done, one that waits; and somebody who is not on WhatsApp."""
        strangers = {"not_on_whatsapp": ["447700900990", "447700900991"]}
        self.site.platform.simulate({"read_ratio": 0.6, **strangers}, fresh={"linking": "qr"})
        first = self._job("Hello {{name}}, your table for tonight is ready.", 18, tags=["restaurant"])
        self.api.jobs.wait(first, timeout_seconds=600)
        self.job = self._job("שלום {{name}}, ההזמנה שלך מוכנה לאיסוף.", 700, first=200, tags=["pickup"])
        self._job("Hello {{name}}, see you tomorrow at nine.", 90, first=100, spread_minutes=60, tags=["reminder"])
        held = self._job("Hello {{name}}, a word about next week.", 40, first=300, tags=["newsletter"])
        self.api.jobs.pause(held)
        self.api.send("447700900990", "Are you there?")
        self.api.sessions.set_rpm("sales-uk", 10)
        self.api.sessions.pause("events-1")

    def _job(self, text: str, count: int, *, first: int = 0, tags: list[str], spread_minutes: int | None = None) -> str:
        names = ("Ada", "Grace", "Alan", "Noa", "Barbara", "יעל", "Margaret", "Tony", "Radia", "Leslie")
        contacts = [
            Contact(str(447700900100 + first + index), {"name": names[index % len(names)]}) for index in range(count)
        ]
        accepted = self.api.jobs.create(contacts, text=text, tags=tags, spread_minutes=spread_minutes)
        return accepted.job_id

    def pages(self) -> dict[str, str]:
        return {
            "fleet": "/", "number": "/sessions/support-1", "link": "/sessions/fresh", "jobs": "/jobs",
            "job": f"/jobs/{self.job}", "compose": "/compose", "queues": "/queues", "proxies": "/inventory",
            "suppressions": "/suppressions", "settings": "/settings",
        }  # fmt: skip


DARK = ("fleet", "number", "job")
SMALL = ("fleet", "number", "compose")


@contextmanager
def on_stage() -> Iterator[Set]:
    port = free_ports(1)
    platform = Platform(sessions=0, policy=POLICY, env={"DASHBOARD_PORT": str(port), "LOG_LEVEL": "warning"})
    try:
        platform.start()
        made = Set(Site(platform, port))
        made.build()
        made.send()
        yield made
    finally:
        platform.destroy(keep=False)


def picture(page: Page, name: str, url: str) -> None:
    page.goto(url)
    page.wait_for_timeout(SETTLE_SECONDS * 1000)
    path = PICTURES / f"{name}.png"
    page.screenshot(path=path)
    print(f"{path.name}: {path.stat().st_size // 1024} kB")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make screenshots", description=__doc__)
    parser.add_argument("--minutes", type=float, default=3, help="how long it sends before the pictures are taken")
    minutes = parser.parse_args().minutes
    PICTURES.mkdir(parents=True, exist_ok=True)
    with on_stage() as stage, chromium() as browser:
        time.sleep(60 * minutes)

        def person(theme: str, size: dict[str, int]) -> BrowserContext:
            context = browser.new_context(viewport=size, color_scheme=theme, locale="en-GB")  # type: ignore[arg-type]
            log_in(context.new_page(), stage.site, stage.site.keys["admin"])
            return context

        desk, dark, small = person("light", DESK), person("dark", DESK), person("light", PHONE)
        for name, path in stage.pages().items():
            url = stage.site.url + path
            picture(desk.pages[0], name, url)
            if name in DARK:
                picture(dark.pages[0], f"{name}-dark", url)
            if name in SMALL:
                picture(small.pages[0], f"{name}-phone", url)
        visitor = browser.new_context(viewport=DESK).new_page()
        picture(visitor, "login", f"{stage.site.url}/login")


if __name__ == "__main__":
    main()
