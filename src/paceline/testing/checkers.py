"""The judges of a run: each promise of SPEC §11 as functions of the ledger, of what the API would answer and of what
people outside know.

None of them trusts a counter of ours: what went out is what the simulated WhatsApp wrote down.
"""

from collections.abc import Callable, Iterator

import msgspec

from paceline.testing import judges_events, judges_fleet, judges_limits, judges_messages, judges_pace, judges_words
from paceline.testing.evidence import Evidence
from paceline.testing.world import World


class Violation(msgspec.Struct, frozen=True):
    promise: str
    what: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.what}"


JUDGES: list[tuple[str, Callable[[Evidence], Iterator[str]]]] = [
    ("I1", judges_messages.nothing_is_lost),
    ("I1", judges_messages.ends_are_justified),
    ("I1", judges_words.what_was_proven_stays),
    ("I2", judges_messages.what_was_asked_is_what_went_out),
    ("I2", judges_messages.one_id_one_number),
    ("I2", judges_messages.a_warm_chat_stays),
    ("I3", judges_pace.pace_is_kept),
    ("I3", judges_pace.the_fleet_keeps_its_rate),
    ("I3", judges_pace.the_guard_keeps_its_rules),
    ("I4", judges_pace.caps_and_hours_are_kept),
    ("I4", judges_pace.nothing_goes_before_its_time),
    ("I4", judges_pace.nobody_is_written_to_too_often),
    ("I5", judges_messages.first_things_first),
    ("I5", judges_messages.first_come_first_served),
    ("I6", judges_messages.done_once),
    ("I7", judges_fleet.places_are_kept),
    ("I8", judges_fleet.one_worker_per_session),
    ("I8", judges_fleet.none_is_left_behind),
    ("I8", judges_fleet.a_hung_worker_is_replaced),
    ("events", judges_events.customers_are_told),
    ("I9", judges_limits.stop_means_stop),
    ("I9", judges_words.stop_is_confirmed_once),
    ("I9", judges_limits.what_is_paused_rests),
    ("I9", judges_limits.a_paused_session_rests),
    ("I9", judges_limits.what_is_canceled_stays_canceled),
    ("I10", judges_limits.refused_is_refused),
    ("I10", judges_limits.nothing_moves_to_another_number),
    ("I10", judges_limits.no_new_chats_while_restricted),
    ("I10", judges_limits.people_it_knows_go_on),
    ("I10", judges_limits.a_banned_number_is_still),
    ("I10", judges_fleet.a_banned_number_keeps_its_address),
    ("I10", judges_limits.the_breaker_trips),
    ("I10", judges_limits.a_cool_down_is_kept),
]


def check(world: World, ended: bool) -> list[Violation]:
    evidence = Evidence(world)
    found = [] if ended else [Violation("I1", f"not everything ended; stuck: {_stuck(evidence)}")]
    for promise, judge in JUDGES:
        found += [Violation(promise, what) for what in judge(evidence)]
    return found


def _stuck(evidence: Evidence) -> list[str]:
    return [f"{task}={evidence.state(task)}" for task, view in evidence.messages.items() if view.byte in "qrspthcu"][:5]
