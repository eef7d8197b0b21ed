"""Drills: runs made for one rule each, in an otherwise quiet world, so that no rule waits for chance. Neighbours:
`drilling` has what they are made of, `drills_around` those about what is around the messages."""

from typing import Any

import msgspec

from paceline.testing.drilling import EARLY, NOON, after, drill, plain_job
from paceline.testing.drills_around import AROUND, BY_LUCK
from paceline.testing.plans import BURSTY, CAREFUL, FAST, HOUR_MS, MINUTE_MS, TIGHT, Scenario
from paceline.testing.steps import Faults
from paceline.worker.drivers.config import Behaviour


def _pace() -> list[Scenario]:
    # Something urgent again and again: at one moment there may be nothing in the queue that it could overtake.
    urgent = [plain_job(f"high-{at}", EARLY + at * 1_000, 4, priority=3) for at in (25, 60, 75, 120)]
    return [
        drill(1, FAST, [plain_job("many", EARLY, 30)], start_ms=EARLY),
        drill(2, BURSTY, [plain_job("low", EARLY, 60), *urgent], start_ms=EARLY),
    ]


def _closing() -> list[Scenario]:
    start = NOON - MINUTE_MS
    return [
        drill(number, TIGHT, [plain_job("late", start, 12)], start_ms=start, outage=(NOON - number * 1_500, 20_000))
        for number in range(3, 9)
    ]


def _platform() -> list[Scenario]:
    """What the platform lays on numbers: locks that trip the breaker, cool-downs, bans."""
    locked = Behaviour(ack_delay_ms=(20, 200), time_lock=0.25, time_lock_ms=HOUR_MS, reply_ratio=0.5)
    slowed = Behaviour(ack_delay_ms=(20, 200), rate_limit=0.15)
    banned = Behaviour(ack_delay_ms=(20, 200), ban=0.12)
    again = plain_job("again", EARLY + 90_000, 40)
    late = plain_job("late", EARLY + 20 * MINUTE_MS, 20, priority=2)
    many = [plain_job("many", EARLY, 40)]
    bans = drill(11, FAST, many, start_ms=EARLY, phones=3, behaviour=banned, restores=True, patience_ms=MINUTE_MS)
    # A session that is banned says nothing more; only another one of its number could go on.
    second = msgspec.structs.replace(bans.phones[0], session="second")
    return [
        drill(9, FAST, [*many, again, late], start_ms=EARLY, phones=4, behaviour=locked),
        drill(10, FAST, [*many, late], start_ms=EARLY, phones=2, behaviour=slowed),
        msgspec.structs.replace(bans, phones=[*bans.phones, second]),
    ]


def _buttons() -> list[Scenario]:
    """Operators at work: everything that can be held, and everything that can be canceled."""
    held = [
        after(30, "pause_job"), after(90, "resume_job"), after(110, "pause"), after(180, "resume"),
        after(182, "stop"), after(270, "start"), *[after(274, "cancel_message", value=n) for n in range(30, 40, 3)],
        after(300, "pause_job"), after(330, "cancel_queue"), after(360, "resume_job"),
    ]  # fmt: skip
    paced = [
        after(25, "pacer", value={"min_delay_ms": 9_000, "max_delay_ms": 12_000}),
        after(120, "pacer", value={"min_delay_ms": None, "max_delay_ms": None}),
        after(150, "rpm", value=3),
        after(300, "rpm"),
    ]
    away = (EARLY + 20_000, 30_000)
    away_held = [after(30, "pause_job"), after(200, "resume_job"), after(220, "pause"), after(300, "resume")]
    return [
        drill(12, FAST, [plain_job("many", EARLY, 60)], start_ms=EARLY, deeds=held),
        drill(13, FAST, [plain_job("many", EARLY, 40)], start_ms=EARLY, deeds=paced),
        drill(14, FAST, [plain_job("many", EARLY + 25_000, 20)], start_ms=EARLY, deeds=away_held, outage=away),
    ]


def _shared() -> list[Scenario]:
    """Limits that hold over all numbers, and people who get several messages."""
    twice = [plain_job(f"job-{n}", EARLY + n * 1_000, 8, strategy="least_loaded") for n in range(3)]
    answered = Behaviour(ack_delay_ms=(20, 200), read_ratio=1.0, read_delay_ms=(500, 2_000), reply_ratio=1.0)
    people = plain_job("first", EARLY, 10).contacts
    # Never in the same order, so that a turn of the ring brings another number.
    later = [
        msgspec.structs.replace(
            plain_job(f"job-{n}", EARLY + n * 180_000, 10, strategy="round_robin"), contacts=people[n:] + people[:n]
        )
        for n in range(3)
    ]
    named = [plain_job("named", EARLY, 12, phone="447700900001", strategy="least_loaded")]
    return [
        drill(15, FAST, twice, start_ms=EARLY, phones=3, frequency=(1, 5 * MINUTE_MS)),
        drill(16, FAST, [plain_job("many", EARLY, 30)], start_ms=EARLY, phones=4, global_rpm=4),
        drill(17, FAST, later, start_ms=EARLY, phones=3, behaviour=answered),
        drill(18, FAST, named, start_ms=EARLY, phones=3, api=True),
    ]


def _guarded() -> list[Scenario]:
    """Sends that fail, so that SmartGuard has something to do; with and without an operator's own rate. Everybody has
    written first, so that the refusals do not keep the number from going on."""
    failing = Behaviour(ack_delay_ms=(20, 200), restricted=0.4)
    many = plain_job("many", EARLY + 30_000, 40)
    heard = [after(12 + n // 5, "hear", value=to) for n, to in enumerate(many.contacts)]
    rate = [after(40, "rpm", value=20), after(600, "rpm")]
    guarded: dict[str, Any] = {"start_ms": EARLY, "behaviour": failing, "guard_tick_ms": 20_000}
    return [
        drill(19, CAREFUL, [many], deeds=heard, **guarded),
        drill(20, CAREFUL, [many], deeds=[*heard, *rate], **guarded),
    ]


def _posted() -> list[Scenario]:
    """Posts that arrive long after their senders gave up."""
    tried_again = Behaviour(ack_delay_ms=(20, 200), disconnect_before=0.3)
    faults = Faults(lose_reply=0.25, until_ms=EARLY + 15 * MINUTE_MS)
    job = plain_job("many", EARLY, 30)
    return [drill(21, FAST, [job], start_ms=EARLY, phones=2, api=True, behaviour=tried_again, faults=faults)]


def _paused_sessions() -> list[Scenario]:
    """One of two numbers is paused twice while it has much to do; also while its worker is away."""
    presses = [
        after(20, "pause_session"), after(100, "resume_session"), after(125, "pause_session"),
        after(190, "pause_session"), after(200, "resume_session"),
    ]  # fmt: skip
    job = plain_job("many", EARLY, 40)
    return [drill(23, FAST, [job], start_ms=EARLY, phones=2, deeds=presses, outage=(EARLY + 120_000, 30_000))]


def _proven_late() -> list[Scenario]:
    """Acks get lost, the messages are given up, and then their receipts come."""
    unseen = Behaviour(ack_delay_ms=(20, 200), lost_ack=0.5, delivered_delay_ms=(110_000, 150_000))
    job = msgspec.structs.replace(plain_job("held", EARLY, 6), on_unknown="hold")
    return [drill(22, FAST, [job], start_ms=EARLY, behaviour=unseen)]


def _cut_off() -> list[Scenario]:
    """Acks and receipts get lost and workers die waiting for them, so that repeats are cut off, too."""
    silent = Behaviour(ack_delay_ms=(20, 200), lost_ack=0.9, delivered_ratio=0.0)
    faults = Faults(crash=0.04, until_ms=EARLY + HOUR_MS)
    return [drill(36, FAST, [plain_job("many", EARLY, 12)], start_ms=EARLY, phones=4, behaviour=silent, faults=faults)]


DRILLS = [
    *_pace(), *_closing(), *_platform(), *_buttons(), *_shared(), *_guarded(), *_posted(), *_proven_late(),
    *_paused_sessions(), *AROUND, *_cut_off(), *BY_LUCK,
]  # fmt: skip
