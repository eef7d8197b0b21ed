"""Judges of what must stand still: refused messages, restricted and banned numbers, the breaker, cool-downs, and
whatever an operator paused, stopped or canceled (I9, I10)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from paceline.testing.evidence import Evidence
from paceline.testing.outside import Claim, Placed, Pressed, Told

HOUR_MS = 3_600_000
COOLDOWN_MS = 1_800_000
GUESS_MS = 24 * HOUR_MS
BREAKER_PHONES = 3
BREAKER_MS = HOUR_MS - 600_000
"""A word whose answer was lost is told again minutes later; within less than an hour it is certain."""


class Span(msgspec.Struct, frozen=True):
    """A time in which something must not happen."""

    from_ms: int
    to_ms: int

    def holds(self, at_ms: int) -> bool:
        return self.from_ms < at_ms < self.to_ms


def refused_is_refused(evidence: Evidence) -> Iterator[str]:
    """What the platform refused with 463 is not tried again, by no number; unless the worker that got the refusal died
    with it, so that all anybody knew was an unknown outcome."""
    for refusal in evidence.refusals:
        if refusal.code != "RESTRICTED_463":
            continue
        for event in evidence.wire:
            again = event.task_id == refusal.task_id and event.at > refusal.at
            if again and not _was_unknown(evidence, refusal.task_id, refusal.at, event.at):
                yield f"{event.task_id} was refused at {refusal.at} and tried again at {event.at}"


def _was_unknown(evidence: Evidence, task: str, from_ms: int, to_ms: int) -> bool:
    from_ms -= evidence.behind_ms
    return any(line["what"] == "unknown" and from_ms < line["at"] < to_ms for line in evidence.history(task))


def nothing_moves_to_another_number(evidence: Evidence) -> Iterator[str]:
    """What was given to a number goes out from it or not at all: routed once, parked, handed over, on the wire."""
    phones: dict[str, set[str]] = defaultdict(set)
    outside = evidence.outside
    for placed in (*outside.routed, *outside.handed, *outside.parked):
        phones[placed.task].add(placed.phone)
    for event in evidence.wire:
        phones[event.task_id].add(evidence.phone_of(event))
    for task, seen in phones.items():
        if len(seen) > 1:
            yield f"{task} was with {sorted(seen)}"


def no_new_chats_while_restricted(evidence: Evidence) -> Iterator[str]:
    spans, _ = _restrictions(evidence)
    for claim in evidence.outside.claims:
        phone = evidence.phone_of(claim)
        if any(span.holds(claim.at) for span in spans[phone]) and not _knew(evidence, phone, claim):
            yield f"{claim.task} was claimed at {claim.at} for somebody new, but {phone} was restricted"


def people_it_knows_go_on(evidence: Evidence) -> Iterator[str]:
    """A restricted number keeps serving those who wrote to it: nothing to them is put aside for that."""
    heard: dict[tuple[str, str], int] = {}
    for told in evidence.outside.told:
        if told.kind == "RECEIVED":
            heard.setdefault((told.phone, told.who), told.ended)
    for placed in evidence.outside.parked:
        if placed.reason in ("TIME_LOCKED", "CAPPED"):
            known_at = heard.get((placed.phone, evidence.to(placed.task)))
            if known_at is not None and known_at < placed.asked:
                yield f"{placed.task} was put aside at {placed.at}, though {placed.phone} had heard of them {known_at}"


def _knew(evidence: Evidence, phone: str, claim: Claim) -> bool:
    to = evidence.to(claim.task)
    wrote = any(line.to == to and line.at <= claim.at for line in evidence.by_phone[phone])
    # A worker that crashed before the answer came may all the same have been heard.
    return wrote or any(who == to and where == phone and at <= claim.at for where, who, at in evidence.outside.wrote)


def _restrictions(evidence: Evidence) -> tuple[dict[str, list[Span]], list[tuple[int, str]]]:
    """When each number was restricted by what the platform was told, and when each was newly so. A stated lock or cap
    replaces what was known of the same; a 463 without one counts for a day, unless and until something is stated. A
    word counts once, and its time says something beside those of the same worker's others. What lifts a limit was not
    said before another worker stated it."""
    words = _first_heard(told for told in evidence.outside.told if told.kind in ("TIME_LOCKED", "CAPPED", "NONE"))
    guesses = [
        Told("GUESS", evidence.phone_of(evidence.claims[no.task][-1]), no.asked, no.at, 0, no.asked + GUESS_MS)
        for no in evidence.outside.settled
        if no.code == "RESTRICTED_463"
    ]
    spans: dict[str, list[Span]] = defaultdict(list)
    newly: list[tuple[int, str]] = []
    stated: dict[tuple[str, int], int] = defaultdict(int)
    standing: dict[str, dict[str, Span]] = defaultdict(dict)
    stated_by: dict[tuple[str, str], Told] = {}
    in_doubt: dict[str, int] = defaultdict(int)
    for told in sorted((*words, *guesses), key=lambda told: told.ended):
        known = standing[told.phone]
        is_restricted = max(in_doubt[told.phone], *(span.to_ms for span in known.values()), 0) > told.began
        # What lies ahead of its hearing was stated before the clock was set back.
        by = (told.session, told.epoch)
        is_late = told.kind != "GUESS" and told.stated < stated[by] <= told.heard
        if is_late or (told.kind == "GUESS" and is_restricted):
            continue
        if told.kind != "GUESS":
            stated[by] = told.stated
        is_over = told.kind == "NONE" or told.until <= told.ended
        for kind in [kind for kind in known if told.kind == "NONE" or kind in (told.kind, "GUESS")]:
            stays = is_over and kind != "GUESS" and _came_later(stated_by[told.phone, kind], told)
            if stays:
                continue
            span = known.pop(kind)
            if stays is None:
                in_doubt[told.phone] = max(in_doubt[told.phone], span.to_ms)
            spans[told.phone].append(Span(span.from_ms, min(span.to_ms, told.began)))
        if not is_over:
            known[told.kind] = Span(told.ended, told.until)
            stated_by[told.phone, told.kind] = told
            newly += [] if is_restricted else [(told.ended, told.phone)]
    for phone, known in standing.items():
        spans[phone] += known.values()
    return spans, newly


def _came_later(limit: Told, word: Told) -> bool | None:
    """Whether a limit was heard of after another worker said that there is none; None if nobody can tell. What lies
    ahead of the word's hearing was heard before the clock was set back."""
    if limit.session == word.session or word.stated >= max(limit.first_heard, limit.heard):
        return False
    is_certain = word.stated < min(limit.first_heard, limit.heard) and max(limit.first_heard, limit.heard) <= word.heard
    return True if is_certain else None


def _first_heard(words: Iterable[Told]) -> Iterator[Told]:
    """Each word where it was heard first, but those of a worker after whose successor's first."""
    seen: set[tuple[str, int, str]] = set()
    newest: dict[str, int] = defaultdict(int)
    for told in sorted(words, key=lambda told: told.ended):
        name = (told.session, told.epoch, told.word)
        if name not in seen and told.epoch >= newest[told.session]:
            yield told
        seen.add(name)
        newest[told.session] = max(newest[told.session], told.epoch)


def a_banned_number_is_still(evidence: Evidence) -> Iterator[str]:
    """Nothing is claimed for it until somebody says that it is restored."""
    for told in evidence.outside.told:
        if told.kind == "BANNED":
            span = _until(told.ended, told.began, evidence.outside.presses("requeue", which=told.phone), only_ok=True)
            yield from _claimed_within(evidence, span, f"{told.phone} was banned", phone=told.phone)


def the_breaker_trips(evidence: Evidence) -> Iterator[str]:
    """Three numbers restricted or banned within an hour: nothing is claimed until somebody resumes."""
    _, newly = _restrictions(evidence)
    banned = [(told.ended, told.phone) for told in evidence.outside.told if told.kind == "BANNED"]
    events = sorted((*newly, *banned))
    resumes = evidence.outside.presses("resume")
    tripped = [line["at"] for line in evidence.incidents if line["kind"] == "FLEET_BREAKER"]
    restricted = {phone for _, phone in events}
    if tripped and len(restricted) < BREAKER_PHONES:
        yield f"the breaker tripped at {tripped[-1]}, but only {sorted(restricted)} were ever restricted"
    for at, _ in events:
        # What came before somebody resumed does not count any more.
        seen = [
            (before, phone)
            for before, phone in events
            if at - BREAKER_MS < before <= at
            and not any(resume.began <= at and (resume.ended or at) >= before for resume in resumes)
        ]
        if len({phone for _, phone in seen}) >= BREAKER_PHONES:
            yield from _claimed_within(evidence, _until(at, at, resumes), f"the breaker had tripped at {at}")


def a_cool_down_is_kept(evidence: Evidence) -> Iterator[str]:
    for no in evidence.outside.settled:
        if no.code != "RATE_LIMIT":
            continue
        phone = evidence.phone_of(evidence.claims[no.task][-1])
        span = _until(no.at, no.at, evidence.outside.presses("cooldown", which=phone))
        span = Span(span.from_ms, min(span.to_ms, no.asked + COOLDOWN_MS))
        yield from _claimed_within(evidence, span, f"{phone} was cooling down since {no.asked}", phone=phone)


def stop_means_stop(evidence: Evidence) -> Iterator[str]:
    """What no worker had claimed by then is not sent: neither to people who said stop nor of a canceled job."""
    world, stopped = evidence.world, evidence.outside.suppressed_at
    for line in evidence.lines:
        claim = evidence.claim_of(line)
        claimed_at = claim.at if claim else line.at
        for stopped_at, why in (
            (None if line.task_id in evidence.confirmations else stopped.get(line.to), f"{line.to} had said stop"),
            (world.canceled_at.get(line.task_id.partition(":")[0]), "its job was canceled"),
        ):
            if stopped_at is not None and claimed_at > stopped_at:
                yield f"{line.task_id} went out at {line.at}, claimed {claimed_at}, but {why} at {stopped_at}"


def what_is_paused_rests(evidence: Evidence) -> Iterator[str]:
    """A paused fleet and a paused job are handed over and claimed nothing; a stopped fleet is handed over nothing."""
    outside = evidence.outside
    for press in outside.presses("pause"):
        span = _from(press, outside.presses("resume"))
        yield from _claimed_within(evidence, span, "the fleet was paused")
        yield from _handed_within(outside.handed, span, "the fleet was paused")
    for press in outside.presses("stop"):
        yield from _handed_within(outside.handed, _from(press, outside.presses("start")), "the fleet was stopped")
    for press in outside.presses("pause_job"):
        span, job = _from(press, outside.presses("resume_job", which=press.which)), press.which
        yield from _claimed_within(evidence, span, "its job was paused", job=job)
        mine = [placed for placed in outside.handed if placed.task.partition(":")[0] == job]
        yield from _handed_within(mine, span, "its job was paused")


def a_paused_session_rests(evidence: Evidence) -> Iterator[str]:
    outside = evidence.outside
    for press in outside.presses("pause_session"):
        span, session = (
            _from(press, outside.presses("resume_session", which=press.which)),
            press.which.removeprefix("@"),
        )
        for claim in outside.claims:
            if claim.session == session and span.holds(claim.at):
                yield f"{claim.task} was claimed at {claim.at} although {session} was paused"


def what_is_canceled_stays_canceled(evidence: Evidence) -> Iterator[str]:
    """One message, or all that waited for a number and had never been claimed."""
    outside = evidence.outside
    for press in outside.presses("cancel_message", "cancel_queue"):
        if not press.ok or press.ended is None:
            continue
        mine = {press.which}
        if press.kind == "cancel_queue":
            mine = {placed.task for placed in outside.routed if placed.phone == press.which and placed.at < press.began}
        for claim in outside.claims:
            untouched = claim is evidence.claims[claim.task][0] or press.kind == "cancel_message"
            if claim.task in mine and claim.at > press.ended and untouched:
                yield f"{claim.task} was claimed at {claim.at} but had been canceled at {press.ended}"


def _from(press: Pressed, undone: list[Pressed]) -> Span:
    return Span(0, 0) if press.ended is None or not press.ok else _until(press.ended, press.began, undone)


def _until(from_ms: int, began_ms: int, undone: list[Pressed], *, only_ok: bool = False) -> Span:
    """From then until somebody began to undo it; what was under way at the time may have come after it."""
    ends = [
        press.began
        for press in undone
        if (press.ended is None or press.ended >= began_ms) and (press.ok or press.ended is None or not only_ok)
    ]
    return Span(from_ms, min(ends, default=2**62))


def _claimed_within(
    evidence: Evidence, span: Span, why: str, *, phone: str | None = None, job: str | None = None
) -> Iterator[str]:
    for claim in evidence.outside.claims:
        is_meant = phone in (None, evidence.phone_of(claim)) and job in (None, claim.task.partition(":")[0])
        if is_meant and span.holds(claim.at):
            yield f"{claim.task} was claimed at {claim.at} although {why}"


def _handed_within(handed: Iterable[Placed], span: Span, why: str) -> Iterator[str]:
    for placed in handed:
        if span.holds(placed.at):
            yield f"{placed.task} was handed over at {placed.at} although {why}"
