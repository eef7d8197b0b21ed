"""Judges of the workers themselves: one for each session, none doubled or left behind, places on proxies kept, and a
banned number's address too (I7, I8, I10)."""

from collections.abc import Iterator

from paceline.store.store import Store
from paceline.store.workers import WorkerRow
from paceline.testing.evidence import Evidence
from paceline.testing.fleet import LOOK_MS, PER_PROXY, WATCH_MS, Life
from paceline.testing.plans import MINUTE_MS
from paceline.testing.words import LATEST_MS
from paceline.testing.world import LIVENESS_MS

REPLACED_WITHIN_MS = LIVENESS_MS + LATEST_MS + 2 * WATCH_MS + 10 * MINUTE_MS
"""Silence until it counts, a word from before that comes late, two looks of the watchdog, the longest pause before a
start, and time to start."""


def one_worker_per_session(evidence: Evidence) -> Iterator[str]:
    runner = evidence.world.runner
    for life, at in runner.doubled if runner else ():
        yield f"another worker of {life.spec.session_id} was begun at {at} while {life.spec.instance} still ran"


def none_is_left_behind(evidence: Evidence) -> Iterator[str]:
    """At the end, long after the last fault, each session has the worker it should have, and no other."""
    runner, now_ms = evidence.world.runner, evidence.world.sim.now_ms
    if runner is None:
        return
    rows: list[WorkerRow] = evidence.world.ask(_rows)[0]
    for row in rows:
        lives = [life for life in runner.lives if life.spec.session_id == row.session_id]
        running = [life for life in lives if life.ended_ms is None]
        wanted = [life for life in running if life.spec.instance == row.wanted_instance]
        just_ended = any((life.ended_ms or 0) > now_ms - LOOK_MS - MINUTE_MS for life in lives)
        not_before = row.not_before + evidence.behind_ms
        is_resting = row.connection == "FAILED" or row.quarantined or not_before > now_ms - MINUTE_MS or just_ended
        has_place = not evidence.scenario.around.proxies or row.holds
        if len(wanted) != 1 and has_place and not is_resting:
            yield f"{row.session_id} ({row.connection}) has no worker"
        if running != wanted:
            yield f"{row.session_id} has a worker that nobody wants"


def places_are_kept(evidence: Evidence) -> Iterator[str]:
    """At no moment more workers on a proxy than there is room for."""
    runner = evidence.world.runner
    for life in runner.lives if runner else ():
        proxy = life.spec.proxy_url
        beside = [other for other in _on(evidence, proxy) if other.overlaps(life.began_ms, life.began_ms + 1)]
        if proxy and len({other.spec.session_id for other in beside}) > PER_PROXY:
            yield f"{len(beside)} workers were on one proxy at {life.began_ms}"


def a_banned_number_keeps_its_address(evidence: Evidence) -> Iterator[str]:
    """Until somebody says that it is restored."""
    runner = evidence.world.runner
    for told in evidence.outside.told if runner else ():
        if told.kind != "BANNED" or runner is None:
            continue
        presses = evidence.outside.presses("requeue", which=told.phone)
        until = min((press.began for press in presses if (press.ended or 2**62) >= told.began), default=2**62)
        mine = [life for life in runner.lives if life.spec.phone == told.phone]
        before = {life.spec.proxy_url for life in mine if life.began_ms <= told.ended}
        for life in mine:
            if told.ended < life.began_ms < until and life.spec.proxy_url not in before:
                yield f"{told.phone} was banned at {told.ended} and went out by another proxy at {life.began_ms}"


def a_hung_worker_is_replaced(evidence: Evidence) -> Iterator[str]:
    runner, now_ms = evidence.world.runner, evidence.world.sim.now_ms
    for life, at in evidence.outside.hung if runner else ():
        late = at + REPLACED_WITHIN_MS + evidence.world.sim.jumped_ms + evidence.behind_ms
        # A banned number's worker is left as it is.
        banned = any(told.kind == "BANNED" and told.phone == life.spec.phone for told in evidence.outside.told)
        if late < now_ms and not banned and (life.ended_ms is None or life.ended_ms > late):
            yield f"the worker of {life.spec.session_id} hung at {at} and nobody replaced it"


async def _rows(store: Store) -> list[WorkerRow]:
    return await store.fleet.rows(await store.fleet.ids())


def _on(evidence: Evidence, proxy: str) -> list[Life]:
    runner = evidence.world.runner
    return [life for life in runner.lives if life.spec.proxy_url == proxy] if runner else []
