"""Drills: runs made for one rule each, in an otherwise quiet world, so that no rule waits for chance."""

from typing import Any

import msgspec

from paceline.policy.trust import DAY_MS, Policy
from paceline.testing.plans import (
    BURSTY,
    CAREFUL,
    FAST,
    HOUR_MS,
    MIDNIGHTS_MS,
    MINUTE_MS,
    TIGHT,
    Around,
    Deed,
    DeedKind,
    JobPlan,
    PhonePlan,
    Receiver,
    Scenario,
)
from paceline.testing.steps import Faults
from paceline.worker.drivers.config import Behaviour

NOON = MIDNIGHTS_MS[0] + 12 * HOUR_MS
"""In London, a few hours after the clocks went back: the hour at which TIGHT closes."""
EARLY = NOON - 2 * HOUR_MS


def _drill(
    number: int,
    policy: Policy,
    jobs: list[JobPlan],
    *,
    start_ms: int,
    outage: tuple[int, int] | None = None,
    phones: int = 1,
    behaviour: Behaviour | None = None,
    faults: Faults | None = None,
    **more: Any,
) -> Scenario:
    return Scenario(
        seed=-number,
        policy=policy,
        start_ms=start_ms,
        phones=[PhonePlan(f"44770090000{n}", f"s{n}", 30 * DAY_MS, "Europe/London") for n in range(phones)],
        jobs=jobs,
        suppressions=[],
        cancels=[],
        outage=outage or (start_ms, 0),
        behaviour=behaviour or Behaviour(ack_delay_ms=(20, 200)),
        faults=faults or Faults(),
        lease_ms=120_000,
        **more,
    )


def _plain_job(name: str, at_ms: int, count: int, priority: int = 1, **more: Any) -> JobPlan:
    contacts = [f"97250{priority}{number:06d}" for number in range(count)]
    return JobPlan(
        name=name,
        at_ms=at_ms,
        contacts=contacts,
        priority=priority,
        on_unknown="resend",
        validity_seconds=864_000,
        **more,
    )


def _pace() -> list[Scenario]:
    # Something urgent again and again: at one moment there may be nothing in the queue that it could overtake.
    urgent = [_plain_job(f"high-{after}", EARLY + after * 1_000, 4, priority=3) for after in (25, 60, 75, 120)]
    return [
        _drill(1, FAST, [_plain_job("many", EARLY, 30)], start_ms=EARLY),
        _drill(2, BURSTY, [_plain_job("low", EARLY, 60), *urgent], start_ms=EARLY),
    ]


def _closing() -> list[Scenario]:
    start = NOON - MINUTE_MS
    return [
        _drill(number, TIGHT, [_plain_job("late", start, 12)], start_ms=start, outage=(NOON - number * 1_500, 20_000))
        for number in range(3, 9)
    ]


def _after(seconds: int, kind: DeedKind, which: int = 0, value: Any = None) -> Deed:
    return Deed(at_ms=EARLY + seconds * 1_000, kind=kind, which=which, value=value)


def _platform() -> list[Scenario]:
    """What the platform lays on numbers: locks that trip the breaker, cool-downs, bans."""
    locked = Behaviour(ack_delay_ms=(20, 200), time_lock=0.25, time_lock_ms=HOUR_MS, reply_ratio=0.5)
    slowed = Behaviour(ack_delay_ms=(20, 200), rate_limit=0.15)
    banned = Behaviour(ack_delay_ms=(20, 200), ban=0.12)
    again = _plain_job("again", EARLY + 90_000, 40)
    late = _plain_job("late", EARLY + 20 * MINUTE_MS, 20, priority=2)
    many = [_plain_job("many", EARLY, 40)]
    return [
        _drill(9, FAST, [*many, again, late], start_ms=EARLY, phones=4, behaviour=locked),
        _drill(10, FAST, [*many, late], start_ms=EARLY, phones=2, behaviour=slowed),
        _drill(11, FAST, many, start_ms=EARLY, phones=3, behaviour=banned, restores=True, patience_ms=MINUTE_MS),
    ]


def _buttons() -> list[Scenario]:
    """Operators at work: everything that can be held, and everything that can be canceled."""
    held = [
        _after(30, "pause_job"), _after(90, "resume_job"), _after(110, "pause"), _after(180, "resume"),
        _after(182, "stop"), _after(270, "start"), *[_after(274, "cancel_message", value=n) for n in range(30, 40, 3)],
        _after(300, "pause_job"), _after(330, "cancel_queue"), _after(360, "resume_job"),
    ]  # fmt: skip
    paced = [
        _after(25, "pacer", value={"min_delay_ms": 9_000, "max_delay_ms": 12_000}),
        _after(120, "pacer", value={"min_delay_ms": None, "max_delay_ms": None}),
        _after(150, "rpm", value=3),
        _after(300, "rpm"),
    ]
    away = (EARLY + 20_000, 30_000)
    away_held = [_after(30, "pause_job"), _after(200, "resume_job"), _after(220, "pause"), _after(300, "resume")]
    return [
        _drill(12, FAST, [_plain_job("many", EARLY, 60)], start_ms=EARLY, deeds=held),
        _drill(13, FAST, [_plain_job("many", EARLY, 40)], start_ms=EARLY, deeds=paced),
        _drill(14, FAST, [_plain_job("many", EARLY + 25_000, 20)], start_ms=EARLY, deeds=away_held, outage=away),
    ]


def _shared() -> list[Scenario]:
    """Limits that hold over all numbers, and people who get several messages."""
    twice = [_plain_job(f"job-{n}", EARLY + n * 1_000, 8, strategy="least_loaded") for n in range(3)]
    answered = Behaviour(ack_delay_ms=(20, 200), read_ratio=1.0, read_delay_ms=(500, 2_000), reply_ratio=1.0)
    people = _plain_job("first", EARLY, 10).contacts
    # Never in the same order, so that a turn of the ring brings another number.
    later = [
        msgspec.structs.replace(
            _plain_job(f"job-{n}", EARLY + n * 180_000, 10, strategy="round_robin"), contacts=people[n:] + people[:n]
        )
        for n in range(3)
    ]
    named = [_plain_job("named", EARLY, 12, phone="447700900001", strategy="least_loaded")]
    return [
        _drill(15, FAST, twice, start_ms=EARLY, phones=3, frequency=(1, 5 * MINUTE_MS)),
        _drill(16, FAST, [_plain_job("many", EARLY, 30)], start_ms=EARLY, phones=4, global_rpm=4),
        _drill(17, FAST, later, start_ms=EARLY, phones=3, behaviour=answered),
        _drill(18, FAST, named, start_ms=EARLY, phones=3, api=True),
    ]


def _guarded() -> list[Scenario]:
    """Sends that fail, so that SmartGuard has something to do; with and without an operator's own rate. Everybody has
    written first, so that the refusals do not keep the number from going on."""
    failing = Behaviour(ack_delay_ms=(20, 200), restricted=0.4)
    many = _plain_job("many", EARLY + 30_000, 40)
    heard = [_after(12 + n // 5, "hear", value=to) for n, to in enumerate(many.contacts)]
    rate = [_after(40, "rpm", value=20), _after(600, "rpm")]
    guarded: dict[str, Any] = {"start_ms": EARLY, "behaviour": failing, "guard_tick_ms": 20_000}
    return [
        _drill(19, CAREFUL, [many], deeds=heard, **guarded),
        _drill(20, CAREFUL, [many], deeds=[*heard, *rate], **guarded),
    ]


def _posted() -> list[Scenario]:
    """Posts that arrive long after their senders gave up."""
    tried_again = Behaviour(ack_delay_ms=(20, 200), disconnect_before=0.3)
    faults = Faults(lose_reply=0.15, until_ms=EARLY + 15 * MINUTE_MS)
    job = _plain_job("many", EARLY, 30)
    return [_drill(21, FAST, [job], start_ms=EARLY, phones=2, api=True, behaviour=tried_again, faults=faults)]


def _paused_sessions() -> list[Scenario]:
    """One of two numbers is paused twice while it has much to do; also while its worker is away."""
    presses = [
        _after(20, "pause_session"), _after(100, "resume_session"), _after(125, "pause_session"),
        _after(190, "pause_session"), _after(200, "resume_session"),
    ]  # fmt: skip
    job = _plain_job("many", EARLY, 40)
    return [_drill(23, FAST, [job], start_ms=EARLY, phones=2, deeds=presses, outage=(EARLY + 120_000, 30_000))]


def _proven_late() -> list[Scenario]:
    """Acks get lost, the messages are given up, and then their receipts come."""
    unseen = Behaviour(ack_delay_ms=(20, 200), lost_ack=0.5, delivered_delay_ms=(110_000, 150_000))
    job = msgspec.structs.replace(_plain_job("held", EARLY, 6), on_unknown="hold")
    return [_drill(22, FAST, [job], start_ms=EARLY, behaviour=unseen)]


def _words() -> list[Scenario]:
    """Workers whose words come late: receipts, and what the platform lays on a number and takes off it again."""
    faults = Faults(until_ms=EARLY + 2 * HOUR_MS)
    read = Behaviour(ack_delay_ms=(20, 200), read_ratio=1.0, read_delay_ms=(500, 60_000))
    capped = Behaviour(ack_delay_ms=(20, 200), new_chats=4, new_chats_cycle_ms=10 * MINUTE_MS)
    many, more = [_plain_job("many", EARLY, 30)], [_plain_job("more", EARLY, 60)]
    late, later = Around(late_words=0.3), Around(late_words=0.6)
    return [
        _drill(24, FAST, many, start_ms=EARLY, behaviour=read, faults=faults, around=late),
        _drill(25, FAST, more, start_ms=EARLY, behaviour=capped, faults=faults, around=later),
    ]


def _stops() -> list[Scenario]:
    """People who say stop in the middle, some of them twice, and some before it is their turn."""
    many = _plain_job("many", EARLY, 40)
    after = msgspec.structs.replace(many, name="after", at_ms=EARLY + 10 * MINUTE_MS, says="again")
    stops = [_after(20 + 9 * n, "stop_word", value=(to, "STOP!")) for n, to in enumerate(many.contacts[::4])]
    again = [_after(150 + 5 * n, "stop_word", value=(to, "stop")) for n, to in enumerate(many.contacts[:20:4])]
    around = Around(confirmation="You will not hear from us again.", late_words=0.1)
    faults = Faults(until_ms=EARLY + HOUR_MS)
    return [_drill(26, FAST, [many, after], start_ms=EARLY, deeds=[*stops, *again], faults=faults, around=around)]


def _told() -> list[Scenario]:
    """A customer's receiver that forgets to answer, and is away for two days."""
    receiver = Receiver(down=(EARLY + 120_000, 2 * DAY_MS), forgets=0.3)
    job = _plain_job("many", EARLY, 20)
    faults = Faults(crash=0.004, lose_reply=0.004, until_ms=EARLY + 10 * MINUTE_MS)
    return [_drill(27, FAST, [job], start_ms=EARLY, faults=faults, around=Around(receiver=receiver))]


def _provisioned() -> list[Scenario]:
    """Workers that crash, hang, get banned and lose their proxies, with an orchestrator that crashes as well."""
    around = Around(provisioned=True, proxies=4)
    deeds = [
        _after(60, "proxy_bad", 0), _after(90, "proxy_bad", 1), _after(100, "restart_session", 1),
        _after(150, "proxy_ok", 0), _after(200, "proxy_ok", 1), _after(230, "proxy_bad", 2),
        _after(231, "proxy_bad", 3), _after(400, "proxy_ok", 2), _after(1_200, "hang", 0, 3 * HOUR_MS),
    ]  # fmt: skip
    # While bans stand, all addresses but one are gone for the better part of an hour.
    gone = [_after(300, "proxy_bad", n) for n in range(3)] + [_after(3_000, "proxy_ok", n) for n in range(3)]
    faults = Faults(crash=0.004, refuse=0.004, lose_reply=0.004, until_ms=EARLY + 5 * MINUTE_MS)
    calm, banned = Behaviour(ack_delay_ms=(20, 200)), Behaviour(ack_delay_ms=(20, 200), ban=0.1)
    jobs = [_plain_job("many", EARLY, 40), _plain_job("late", EARLY + 2 * HOUR_MS, 40, priority=2)]
    more: dict[str, Any] = {"start_ms": EARLY, "phones": 3, "around": around}
    return [
        _drill(28, FAST, jobs, behaviour=calm, faults=faults, deeds=deeds, **more),
        _drill(29, FAST, jobs, behaviour=banned, deeds=gone, restores=True, patience_ms=10 * MINUTE_MS, **more),
    ]


def _files() -> list[Scenario]:
    job = _plain_job("pictures", EARLY, 30, file="a picture")
    around, faults = Around(bad_files=0.5), Faults(crash=0.003, until_ms=EARLY + 5 * MINUTE_MS)
    return [_drill(30, FAST, [job], start_ms=EARLY, phones=4, around=around, faults=faults)]


def _set_clocks() -> list[Scenario]:
    """The clock is set forward past closing time again and again, while workers hold messages to be sent before it."""
    start = NOON - 10 * MINUTE_MS
    jobs = [_plain_job("many", start, 60)]
    deeds = [
        Deed(at_ms=start + at * 1_000, kind="clock", value=ms)
        for at, ms in ((31, 10 * MINUTE_MS), (86_000, 25 * HOUR_MS), (90_000, HOUR_MS))
    ]
    return [
        _drill(31, TIGHT, jobs, start_ms=start, phones=6, deeds=deeds),
        _drill(32, BURSTY, jobs, start_ms=start, deeds=deeds),
    ]


DRILLS = [
    *_pace(), *_closing(), *_platform(), *_buttons(), *_shared(), *_guarded(), *_posted(), *_proven_late(),
    *_paused_sessions(), *_words(), *_stops(), *_told(), *_provisioned(), *_files(), *_set_clocks(),
]  # fmt: skip
