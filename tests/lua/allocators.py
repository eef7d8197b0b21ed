"""Forty who begin, end, mark and crash at once, and a judge who replays what the scripts wrote down.

Every taking and giving back is a line of the audit stream, written by the script that did it. So the stream is the
order in which things happened, and replaying it against a model shows each moment, not only those at which one looked.
"""

import asyncio
from collections import Counter, defaultdict
from random import Random
from typing import Any

import msgspec
import redis

from paceline.store import keys
from paceline.store.client import RedisLink
from paceline.store.fleet import AllocationLimits
from paceline.store.scripts import ScriptConfig
from paceline.store.store import Store

from .stage import T0

LIMITS = AllocationLimits(per_proxy=4, per_phone=4)
PHONES = [f"97250000{number:04d}" for number in range(12)]
SESSIONS = [f"s{number}" for number in range(72)]
"""Six of each phone: more than may run at once."""
PROXIES = [f"http://u{number}:secret@host{number}:8080" for number in range(10)]
"""Room for 40, where the phones would have room for 48: both limits are reached."""
ALLOCATORS, STEPS = 40, 25

Mutation = dict[str, tuple[str, str]] | None


def phone_of(session: str) -> str:
    return PHONES[int(session[1:]) % len(PHONES)]


class Allocator:
    """One of many, with a connection of its own."""

    def __init__(self, url: str, number: int, seed: int, mutate: Mutation) -> None:
        self.link = RedisLink(url)
        self.store = Store(self.link, ScriptConfig(), mutate=mutate)
        self.name = f"a{number}"
        self.rng = Random(seed * 1_000 + number)
        self.counted = 0
        self.released: list[str] = []
        """The instances whose places this one was told to have given back."""

    async def step(self) -> None:
        verbs = (self.begin, self.begin, self.begin, self.end, self.end, self.mark, self.restart)
        await self.rng.choice(verbs)(self.rng.choice(SESSIONS))

    async def begin(self, session: str) -> None:
        self.counted += 1
        instance, generation = f"{self.name}-{self.counted}", await self._generation(session)
        given: Any = {"generation": generation, "instance": instance, "limits": LIMITS, "now_ms": T0}
        if self.rng.random() < 0.3:
            await self._lost(self.store.fleet.begin_start(session, **given))
        if self.rng.random() < 0.3:
            await asyncio.gather(*[self.store.fleet.begin_start(session, **given) for _ in range(2)])
        await self.store.fleet.begin_start(session, **given)

    async def end(self, session: str) -> None:
        """The word about a worker, once or several times, in time or late."""
        instance = (await self.link.read(("HGET", keys.session(session), "wantedInstance")))[0]
        if not instance:
            return
        if self.rng.random() < 0.3:
            await self._lost(self.store.fleet.release(session, instance=instance, now_ms=T0))
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            answer = await self.store.fleet.release(session, instance=instance, now_ms=T0)
            self.released += [instance] if answer.released else []

    async def mark(self, _session: str) -> None:
        proxy, state = f"p{self.rng.randint(1, len(PROXIES))}", self.rng.choice(("OK", "OK", "BAD"))
        for _ in range(self.rng.choice((1, 2))):
            await self.store.fleet.mark_proxy(proxy, state, reason="test", by=self.name, now_ms=T0)

    async def restart(self, session: str) -> None:
        await self.store.fleet.wish(session, "restart", reason="OPERATOR", by=self.name, now_ms=T0)

    async def _generation(self, session: str) -> int:
        return int((await self.link.read(("HGET", keys.session(session), "generation")))[0])

    async def _lost(self, call: Any) -> None:
        """Whoever asked died before the answer; whether it was done, nobody knows."""
        task = asyncio.create_task(call)
        for _ in range(self.rng.choice((1, 2, 5, 20))):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def commotion(url: str, seed: int, mutate: Mutation = None) -> list[str]:
    """All at once. Returns the instances whose places somebody was told to have given back."""
    allocators = [Allocator(url, number, seed, mutate) for number in range(ALLOCATORS)]
    store = allocators[0].store
    await store.inventory.add_proxies(PROXIES, limit=100, by="test", now_ms=T0)
    for session in SESSIONS:
        code = await store.sessions.register(
            session, phone_of(session), driver="simulated", created_at_ms=T0, timezone=None, tags=[], limit=6,
            now_ms=T0, direct=False,
        )  # fmt: skip
        assert code == "OK"
    await asyncio.gather(*[_walk(allocator) for allocator in allocators])
    for allocator in allocators:
        await allocator.link.close()
    return [instance for allocator in allocators for instance in allocator.released]


async def _walk(allocator: Allocator) -> None:
    for _ in range(STEPS):
        await allocator.step()


def facts(client: redis.Redis) -> list[tuple[str, dict[str, Any]]]:
    return [(fields["k"], msgspec.json.decode(fields["d"])) for _, fields in client.xrange(keys.audit())]


class Judge:
    """A model of the rules, slow and obvious, that every line of the trail must agree with."""

    def __init__(self, client: redis.Redis) -> None:
        self.good = {f"p{number}" for number in range(1, len(PROXIES) + 1)}
        self.holds: dict[str, str] = {}
        self.sticky: dict[str, str] = {}
        self.seen: Counter[str] = Counter()
        self.gone: list[str] = []
        """The instances whose places were given back, one entry for each time."""
        for kind, fact in facts(client):
            self.seen[fact["action"]] += 1
            if kind == "BINDING":
                getattr(self, fact["action"].lower())(fact)
            elif fact["action"] in ("PROXY_BAD", "PROXY_OK"):
                self.marked(fact)

    def load(self, proxy: str) -> int:
        return sum(1 for held in self.holds.values() if held == proxy)

    def proxy_taken(self, fact: dict[str, Any]) -> None:
        session, phone, proxy = fact["sessionId"], fact["phone"], fact["proxyId"]
        assert session not in self.holds, f"{session} took twice"
        assert proxy in self.good, f"{session} took the bad {proxy}"
        sticky = self.sticky.get(phone)
        if sticky in self.good and self.load(sticky) < LIMITS.per_proxy:
            assert proxy == sticky, f"{phone} did not keep {sticky}"
        else:
            assert self.load(proxy) == min(map(self.load, self.good)), f"{proxy} was not the least loaded"
        self.holds[session] = proxy
        assert self.load(proxy) <= LIMITS.per_proxy, f"{proxy} is overloaded"
        active = [other for other in self.holds if phone_of(other) == phone]
        assert len(active) <= LIMITS.per_phone, f"{phone} has {active}"
        if not (sticky in self.good and any(self.holds[other] == sticky for other in active)):
            self.sticky[phone] = proxy

    def proxy_released(self, fact: dict[str, Any]) -> None:
        assert self.holds.pop(fact["sessionId"], None) == fact["proxyId"], f"{fact} was given back and not held"
        self.gone.append(fact["instance"])

    def proxy_left(self, fact: dict[str, Any]) -> None:
        # The phone keeps it until another is taken: should it be banned meanwhile, that is its address.
        assert self.holds[fact["sessionId"]] == fact["proxyId"]

    def marked(self, fact: dict[str, Any]) -> None:
        (self.good.add if fact["action"] == "PROXY_OK" else self.good.discard)(fact["proxyId"])

    def agrees_with(self, client: redis.Redis, released: list[str]) -> None:
        """What Redis says now, and what allocators were told, is what the trail says."""
        assert not Counter(released) - Counter(self.gone), "the word about one worker took the places of another"
        ids = {url: f"p{number}" for number, url in enumerate(PROXIES, 1)}
        rows = {session: client.hgetall(keys.session(session)) for session in SESSIONS}
        held = {session: ids[row["proxy"]] for session, row in rows.items() if row.get("proxy")}
        assert held == self.holds
        assert {session for session, row in rows.items() if row.get("holds") == "1"} == set(self.holds)
        by_proxy: defaultdict[str, set[str]] = defaultdict(set)
        for session, proxy in held.items():
            by_proxy[proxy].add(session)
        for url, proxy in ids.items():
            assert client.smembers(keys.proxy_sessions(url)) == by_proxy[proxy]
            assert client.get(keys.proxy_status(url)) == ("OK" if proxy in self.good else "BAD")
        counts = {ids[url]: int(count) for url, count in client.hgetall(keys.proxy_active()).items()}
        assert counts == dict(Counter(self.holds.values()))
        phones = {phone: int(count) for phone, count in client.hgetall(keys.phone_active()).items()}
        assert phones == dict(Counter(phone_of(session) for session in self.holds))
        load = {ids[url]: int(score) for url, score in client.zrange(keys.proxies_load(), 0, -1, withscores=True)}
        assert load == {proxy: self.load(proxy) for proxy in self.good}
        room = {proxy for proxy in self.good if self.load(proxy) < LIMITS.per_proxy}
        assert {ids[url] for url in client.smembers(keys.proxies_available())} == room
        assert {ids[url] for url in client.smembers(keys.proxies_bad())} == set(ids.values()) - self.good
        sticky = {phone: ids[url] for phone, url in client.hgetall(keys.sticky_proxy()).items()}
        assert sticky == self.sticky
