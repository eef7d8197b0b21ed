"""How long the list of all sessions takes, the dashboard's table: sessions → milliseconds.

    python bench/roster.py

look    at the whole fleet, processor time of the dispatcher: once for all who ask, and kept ten times as long
page    of 50, sorted, what the caller waits for while the look is fresh; on the wall
search  the same with a word to look for
"""

import asyncio
import time

from paceline.dispatcher.roster import Roster, Wanted
from paceline.kits.logging import silence
from paceline.policy.facts import Rules
from paceline.policy.trust import DAY_MS, parse
from paceline.settings import read_policy
from paceline.store.client import RedisLink
from paceline.store.scripts import ScriptConfig
from paceline.store.store import Store
from paceline.testing.prove import redis_server

NOON = 1_773_136_800_000
SESSIONS = (100, 1_000, 10_000)
RUNS = 7
TASKS = 50
"""Registrations under way at once."""


async def register(store: Store, first: int, last: int) -> None:
    for start in range(first, last, TASKS):
        await asyncio.gather(*(_one(store, number) for number in range(start, min(last, start + TASKS))))


async def _one(store: Store, number: int) -> None:
    await store.sessions.register(
        f"s{number:05}", str(447700000000 + number), driver="simulated", created_at_ms=NOON - number % 40 * DAY_MS,
        timezone=None, tags=["bench"], limit=4, now_ms=NOON,
    )  # fmt: skip


async def measure(store: Store, rules: Rules) -> list[float]:
    looks, pages, searches = [], [], []
    for _ in range(RUNS):
        roster = Roster(store, rules)
        began = time.process_time()
        await roster.entries(now_ms=NOON)
        looks.append(time.process_time() - began)
        for times, wanted in ((pages, Wanted()), (searches, Wanted(search="s000 bench"))):
            began = time.perf_counter()
            await roster.page(wanted, "budget", "desc", 0, 50, now_ms=NOON)
            times.append(time.perf_counter() - began)
    return [1000 * min(times) for times in (looks, pages, searches)]


async def main() -> None:
    silence()
    rules = Rules(parse(read_policy("default")))
    with redis_server() as socket:
        link = RedisLink(f"unix://{socket}")
        store = Store(link, ScriptConfig(lead_ms=rules.lead_ms))
        print("| sessions | look | page | search |\n| ---: | ---: | ---: | ---: |")
        done = 0
        for count in SESSIONS:
            await register(store, done, count)
            done = count
            print(f"| {count:,} |" + "".join(f" {ms:.0f} ms |" for ms in await measure(store, rules)), flush=True)
        await link.close()


if __name__ == "__main__":
    asyncio.run(main())
