"""Twenty-odd fleets for the forecast: ages, zones, caps, bursts, overrides, nights, jobs at once, clock changes."""

from dataclasses import dataclass, field
from random import Random

from paceline.domain.jobs import Contact, Job
from paceline.policy.facts import Rules
from paceline.policy.pacing import PacerFields
from paceline.policy.trust import DAY_MS
from policy.builders import DEFAULT, HOUR, ms, preset

from .fast import Number, Trouble

ISRAEL, LONDON, NEW_YORK, TOKYO, INDIA = "97252", "447911", "1212", "8190", "9198"
LENGTH = {ISRAEL: 12, LONDON: 12, NEW_YORK: 11, TOKYO: 12, INDIA: 12}
ZONES = {ISRAEL: "Asia/Jerusalem", LONDON: "Europe/London", NEW_YORK: "America/New_York", INDIA: "Asia/Kolkata"}
RULES = Rules(DEFAULT, liveness_ms=900_000)


@dataclass
class Given:
    name: str
    numbers: list[Number]
    jobs: list[tuple[Job, list[Contact]]]
    start: int
    rules: Rules = RULES
    trouble: Trouble = field(default_factory=Trouble)
    sticky: dict[str, str] = field(default_factory=dict)
    """Who was written to yesterday, and from which number."""


def people(prefix: str, count: int, first: int = 0) -> list[Contact]:
    # Spread over the numbering plan, as real lists are: two neighbours rarely share an exchange.
    width = LENGTH[prefix] - len(prefix)
    return [Contact(f"{prefix}{(2_345_678 + (first + i) * 7_919) % 10**width:0{width}d}") for i in range(count)]


def mixed(*lists: list[Contact]) -> list[Contact]:
    everybody = [contact for some in lists for contact in some]
    Random(1).shuffle(everybody)
    return everybody


def number(index: int, days: float, start: int, zone: str = "Asia/Jerusalem", **changes: object) -> Number:
    return Number(f"9725411{index:05d}", start - round(days * DAY_MS), zone, **changes)  # type: ignore[arg-type]


def job(start: int, contacts: list[Contact], name: str = "a", **changes: object) -> tuple[Job, list[Contact]]:
    base = {"job_id": name, "total": len(contacts), "text": "x", "accepted_at": start, "accepted_by": "t"}
    return Job(**{**base, "validity_seconds": 30 * 86_400, **changes}), contacts  # type: ignore[arg-type]


TUESDAY = ms("2026-03-10T09:30", "Asia/Jerusalem")
EVENING = ms("2026-03-10T20:40", "Asia/Jerusalem")
SPRING = ms("2026-03-26T15:00", "Asia/Jerusalem")
"""The day before the clocks go forward in Israel."""
AUTUMN = ms("2026-10-24T12:00", "Europe/London")
FLAKY = {"lost_ack": 0.003, "fails": 0.02, "gone": 0.01}


def _hours(*spans: tuple[int, float, float], start: int) -> list[tuple[int, int, int]]:
    return [(index, start + round(a * HOUR), start + round(b * HOUR)) for index, a, b in spans]


def fleets() -> list[Given]:
    t, made = TUESDAY, []

    def add(name: str, numbers: list[Number], jobs: list[tuple[Job, list[Contact]]], start: int = t, **more: object):
        trouble = Trouble(**{**FLAKY, **more.pop("trouble", {})})  # type: ignore[arg-type]
        made.append(Given(name, numbers, jobs, start, trouble=trouble, **more))  # type: ignore[arg-type]

    def old(count: int) -> list[Number]:
        return [number(i, 30 + i, t) for i in range(count)]

    add("one hot, an hour", old(1), [job(t, people(ISRAEL, 400))])
    add("one hot, three days", old(1), [job(t, people(ISRAEL, 1_300))])
    add("five hot, an afternoon", old(5), [job(t, people(ISRAEL, 2_000))])
    add("mixed ages, two days", of_all_ages(t), [job(t, people(ISRAEL, 1_600))])
    add("mixed ages, a morning", of_all_ages(t), [job(t, people(ISRAEL, 300))])
    add("levels rise on the way", [number(i, age, t) for i, age in enumerate((1.2, 2.5, 5.5, 12.1))],
        [job(t, people(ISRAEL, 1_800))])  # fmt: skip
    add("cold ones only", [number(i, 0.5, t) for i in range(8)], [job(t, people(ISRAEL, 420))])
    add("from the evening on", [number(i, 20, EVENING) for i in range(2)], [job(EVENING, people(ISRAEL, 900))], EVENING)
    zones = [number(i, 30, t, zone) for i, zone in enumerate(ZONES.values())]
    add("numbers in four zones", zones, [job(t, mixed(people(ISRAEL, 900), people(LONDON, 900)))])
    add("New Yorkers from Israel", old(2), [job(t, people(NEW_YORK, 1_200))])
    add("half of them asleep", old(3), [job(t, mixed(people(ISRAEL, 600), people(NEW_YORK, 600)))])
    add("three nights", of_all_ages(t), [job(t, mixed(people(TOKYO, 500), people(LONDON, 500), people(NEW_YORK, 500)))])
    add("overrides", [number(i, 30, t, rpm_override=rpm) for i, rpm in enumerate((2, 5, 10, 20))],
        [job(t, people(ISRAEL, 1_200))])  # fmt: skip
    add("pacers' fields", [
            number(0, 30, t, pacer=PacerFields(min_delay_ms=8_000, max_delay_ms=20_000)),
            number(1, 30, t, pacer=PacerFields(burst_limit=0)),
            number(2, 30, t, pacer=PacerFields(burst_limit=10, burst_cooldown_ms=60_000)),
        ], [job(t, people(ISRAEL, 1_100))])  # fmt: skip
    add("two sessions a number", [number(i, 30, t, sessions=("one", "two")) for i in range(2)],
        [job(t, people(ISRAEL, 700))])  # fmt: skip
    add("three jobs at once", old(3), [
        job(t, people(ISRAEL, 1_000), "a"), job(t, people(ISRAEL, 150, 5_000), "b"),
        job(t, people(ISRAEL, 400, 9_000), "c"),
    ])  # fmt: skip
    add("one job is urgent", old(2), [
        job(t, people(ISRAEL, 700), "a"), job(t, people(ISRAEL, 150, 5_000), "b", priority=3),
    ])  # fmt: skip
    add("a ceiling for the fleet", old(8), [job(t, people(ISRAEL, 1_500))],
        rules=Rules(DEFAULT, liveness_ms=900_000, global_rpm=20))  # fmt: skip
    add("a ceiling, mixed ages", [*of_all_ages(t), number(9, 40, t)], [job(t, people(ISRAEL, 1_200))],
        rules=Rules(DEFAULT, liveness_ms=900_000, global_rpm=10))  # fmt: skip
    add("spread over the day", old(3), [job(t, people(ISRAEL, 600), spread_minutes=480)])
    add("spread over two days", old(1), [job(t, people(ISRAEL, 900), spread_minutes=2_880)])
    add("spread, but too slow", old(1), [job(t, people(ISRAEL, 450), spread_minutes=30)])
    add("clocks go forward", [number(i, 30, SPRING) for i in range(2)], [job(SPRING, people(ISRAEL, 2_600))], SPRING)
    add("clocks go back", [number(i, 30, AUTUMN, "Europe/London") for i in range(2)],
        [job(AUTUMN, people(LONDON, 2_300))], AUTUMN)  # fmt: skip
    add("one is restricted", [number(0, 30, t, restricted_until=t + 20 * HOUR), *hot_ones(t, 1, 3)],
        [job(t, people(ISRAEL, 1_900))])  # fmt: skip
    add("one named number", old(3), [job(t, people(ISRAEL, 300), phone="972541100001")])
    add("outages", old(3), [job(t, people(ISRAEL, 1_300))],
        trouble={"outages": _hours((0, 0.2, 0.3), (1, 0.5, 0.6), (2, 0.1, 0.15), start=t)})  # fmt: skip
    add("distribution preset", [number(i, age, t) for i, age in enumerate((1, 5, 20, 40))],
        [job(t, people(ISRAEL, 1_500))], rules=Rules(preset("distribution"), liveness_ms=900_000))  # fmt: skip
    add("a small job", old(4), [job(t, people(ISRAEL, 60))])
    add("a thousand on forty numbers", [number(i, 30, t) for i in range(40)], [job(t, people(ISRAEL, 1_600))])
    add("sticky people", old(3), [job(t, people(ISRAEL, 900))],
        sticky={contact.to: "972541100000" for contact in people(ISRAEL, 300)})  # fmt: skip
    return made


def of_all_ages(start: int) -> list[Number]:
    return [number(i, age, start) for i, age in enumerate((1, 5, 10, 30, 60))]


def hot_ones(start: int, first: int, after: int) -> list[Number]:
    return [number(i, 30, start) for i in range(first, after)]
