"""Drills about what is around the messages: workers' words, people who say stop, customers, proxies and the workers
themselves, files, clocks."""

from typing import Any

import msgspec

from paceline.policy.trust import DAY_MS
from paceline.testing.drilling import EARLY, NOON, after, drill, plain_job
from paceline.testing.plans import (
    BURSTY,
    FAST,
    HOUR_MS,
    MINUTE_MS,
    TIGHT,
    Around,
    Deed,
    Receiver,
    Scenario,
)
from paceline.testing.steps import Faults
from paceline.worker.drivers.config import Behaviour


def _words() -> list[Scenario]:
    """Workers whose words come late: receipts, and what the platform lays on a number and takes off it again."""
    faults = Faults(until_ms=EARLY + 2 * HOUR_MS)
    read = Behaviour(ack_delay_ms=(20, 200), read_ratio=1.0, read_delay_ms=(500, 60_000))
    many, late = [plain_job("many", EARLY, 30)], Around(late_words=0.3)
    return [drill(24, FAST, many, start_ms=EARLY, behaviour=read, faults=faults, around=late), _late_limits(25)]


def _late_limits(seed: int) -> Scenario:
    """Over several numbers: it takes a word that is late at the right moment, which is luck: several are drawn."""
    faults, later = Faults(until_ms=EARLY + 2 * HOUR_MS), Around(late_words=0.6)
    capped = Behaviour(ack_delay_ms=(20, 200), new_chats=4, new_chats_cycle_ms=10 * MINUTE_MS)
    more = [plain_job("more", EARLY, 90)]
    return drill(seed, FAST, more, start_ms=EARLY, phones=3, behaviour=capped, faults=faults, around=later)


def _words_from_ahead() -> list[Scenario]:
    """Connections that come and go, told by workers whose clocks may be ahead: no time tells a copy of a word from what
    was said after it."""
    faults = Faults(until_ms=EARLY + 2 * HOUR_MS)
    flapping = Behaviour(ack_delay_ms=(20, 200), disconnect_before=0.5)
    around = Around(late_words=0.6, skew_ms=HOUR_MS)
    jobs = [plain_job("many", EARLY, 24)]
    # When all copies have come, each number has something to say.
    jobs += [plain_job(f"late-{n}", EARLY + HOUR_MS, 2, priority=2, phone=f"44770090000{n}") for n in range(8)]
    # Which copy is the last is luck: one of several is enough.
    return [
        drill(seed, FAST, jobs, start_ms=EARLY, phones=8, behaviour=flapping, faults=faults, around=around)
        for seed in (37, 38, 39)
    ]


def _stops() -> list[Scenario]:
    """People who say stop in the middle, some of them twice, and some before it is their turn."""
    many = plain_job("many", EARLY, 40)
    once_more = msgspec.structs.replace(many, name="once more", at_ms=EARLY + 10 * MINUTE_MS, says="again")
    stops = [after(20 + 9 * n, "stop_word", value=(to, "STOP!")) for n, to in enumerate(many.contacts[::4])]
    again = [after(150 + 5 * n, "stop_word", value=(to, "stop")) for n, to in enumerate(many.contacts[:20:4])]
    around = Around(confirmation="You will not hear from us again.", late_words=0.1)
    faults = Faults(until_ms=EARLY + HOUR_MS)
    return [drill(26, FAST, [many, once_more], start_ms=EARLY, deeds=[*stops, *again], faults=faults, around=around)]


def _told() -> list[Scenario]:
    """A customer's receiver that forgets to answer, and is away for two days."""
    receiver = Receiver(down=(EARLY + 120_000, 2 * DAY_MS), forgets=0.3)
    job = plain_job("many", EARLY, 20)
    faults = Faults(crash=0.004, lose_reply=0.004, until_ms=EARLY + 10 * MINUTE_MS)
    return [drill(27, FAST, [job], start_ms=EARLY, faults=faults, around=Around(receiver=receiver))]


def _provisioned() -> list[Scenario]:
    """Workers that crash, hang, get banned and lose their proxies, with an orchestrator that crashes as well."""
    around = Around(provisioned=True, proxies=4)
    deeds = [
        after(60, "proxy_bad", 0), after(90, "proxy_bad", 1), after(100, "restart_session", 1),
        after(150, "proxy_ok", 0), after(200, "proxy_ok", 1), after(230, "proxy_bad", 2),
        after(231, "proxy_bad", 3), after(400, "proxy_ok", 2), after(1_200, "hang", 0, 3 * HOUR_MS),
    ]  # fmt: skip
    # While bans stand, all addresses but one are gone for the better part of an hour.
    gone = [after(300, "proxy_bad", n) for n in range(3)] + [after(3_000, "proxy_ok", n) for n in range(3)]
    faults = Faults(crash=0.004, refuse=0.004, lose_reply=0.004, until_ms=EARLY + 5 * MINUTE_MS)
    calm, banned = Behaviour(ack_delay_ms=(20, 200)), Behaviour(ack_delay_ms=(20, 200), ban=0.1)
    jobs = [plain_job("many", EARLY, 40), plain_job("late", EARLY + 2 * HOUR_MS, 40, priority=2)]
    more: dict[str, Any] = {"start_ms": EARLY, "phones": 3, "around": around}
    return [
        drill(28, FAST, jobs, behaviour=calm, faults=faults, deeds=deeds, **more),
        drill(29, FAST, jobs, behaviour=banned, deeds=gone, restores=True, patience_ms=10 * MINUTE_MS, **more),
    ]


def _files() -> list[Scenario]:
    job = plain_job("pictures", EARLY, 30, file="a picture")
    around, faults = Around(bad_files=0.5), Faults(crash=0.003, until_ms=EARLY + 5 * MINUTE_MS)
    return [drill(30, FAST, [job], start_ms=EARLY, phones=4, around=around, faults=faults)]


def _set_clocks() -> list[Scenario]:
    """The clock is set forward past closing time again and again, while workers hold messages to be sent before it."""
    start = NOON - 10 * MINUTE_MS
    jobs = [plain_job("many", start, 60)]
    deeds = [
        Deed(at_ms=start + at * 1_000, kind="clock", value=ms)
        for at, ms in ((31, 10 * MINUTE_MS), (86_000, 25 * HOUR_MS), (90_000, HOUR_MS))
    ]
    return [
        drill(31, TIGHT, jobs, start_ms=start, phones=6, deeds=deeds),
        drill(32, BURSTY, jobs, start_ms=start, deeds=deeds),
    ]


def _set_back() -> list[Scenario]:
    """The services' clock is set back again and again, by seconds that are easily missed and by an hour; and workers
    whose hosts' clocks are wrong."""
    jobs = [plain_job("many", EARLY, 40), plain_job("late", EARLY + 2 * HOUR_MS, 10)]
    steps = [after(at, "clock", value=-ms) for at, ms in ((40, 5_000), (90, 3_000), (150, 8_000), (200, 30_000))]
    return [
        drill(33, BURSTY, jobs, start_ms=EARLY, phones=2, deeds=steps),
        drill(34, FAST, jobs, start_ms=EARLY, phones=2, deeds=[*steps, after(60, "clock", value=-HOUR_MS)]),
        drill(35, FAST, jobs, start_ms=EARLY, phones=3, around=Around(skew_ms=5 * MINUTE_MS)),
    ]


BY_LUCK = [*_words_from_ahead(), _late_limits(40), _late_limits(41)]
AROUND = [*_words(), *_stops(), *_told(), *_provisioned(), *_files(), *_set_clocks(), *_set_back()]
