"""A plan counts a hundred thousand contacts in bulk, and says what the job itself would say of each."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paceline.domain.errors import Unprocessable
from paceline.domain.jobs import Contact
from paceline.gateway import picture
from paceline.gateway.glance import glance
from paceline.gateway.plan import Counted, Planner
from paceline.gateway.schemas import BadRow, ContactIn, JobRequest
from paceline.gateway.sifting import Sift
from paceline.policy.audience import zones_of_contacts
from paceline.store.client import Command
from paceline.store.guards import Suppression

from .platform import NOON, Platform, big_job

ROUND_TRIPS = 6
"""Of a whole plan of any size, with a fleet that fits on one page: the key, the numbers, the jobs, the suppressions."""

numbers = st.sampled_from(
    [
        "972520000001",
        "+972 52-000-0001",
        "972520000001@c.us",
        "972520000002\n",
        "9725200000",
        "",
        "+",
        "++972520000003",
        "972520000004\n972520000005",
        "12125550123",
        "447911123456",
        "0447911123456",
        "٩٧٢٥٢٠٠٠٠٠٠١",
        "not a number",
        "9" * 65,
        "\u202a+972541234567\u202c",
        "-" * 60 + "972520000006",
    ]
)
values = st.dictionaries(
    st.sampled_from(["name", "city", "x"]), st.sampled_from(["Ada", "", "n" * 4_090, "n" * 4_091]), max_size=3
)
contacts = st.lists(
    st.one_of(
        numbers,
        st.builds(
            lambda to, vars_, zone: ContactIn(to=to, vars=vars_, timezone=zone),
            numbers,
            values,
            st.sampled_from([None, None, "Asia/Tokyo", "Moon/Tycho"]),
        ),
        st.builds(lambda to: BadRow(to=to, code="TOO_MANY_COLUMNS"), numbers),
    ),
    min_size=1,
    max_size=12,
)
texts = st.sampled_from(
    ["hello", "hello {{name}}", "{{name}} {{name}} from {{ city }}", " {{name}}\u200b{{city}}", "x" * 4_096]
)


class Nobody:
    """A suppression list with one person on it."""

    def __init__(self) -> None:
        self.guards = self

    async def suppressed_among(self, people: Any) -> set[str]:
        return {"972520000002"} & set(people)


async def _at_once() -> None:
    pass


def one_by_one(some: list[str | ContactIn], text: str) -> Counted | str:
    """As the intake does it."""
    sift = Sift(text)
    good = sift.take(some)
    sift.accept(good, {"972520000002"})
    try:
        sift.refuse(strict=False)
    except Unprocessable as refusal:
        return refusal.code
    kept: list[Contact] = sift.accepted
    return Counted(len(kept), sift.suppressed, sift.duplicates, sift.rejected, zones_of_contacts(kept))


async def in_bulk(some: list[str | ContactIn], text: str) -> Counted | str:
    planner = Planner(Nobody(), breathe=_at_once)  # type: ignore[arg-type]
    try:
        return await planner.count(JobRequest(contacts=some, text=text))
    except Unprocessable as refusal:
        return refusal.code


@settings(max_examples=300, deadline=None)
@given(contacts, texts)
@example([ContactIn(to="12125550123", vars={"name": "n" * 4_090})], "hello {{name}}")
@example([ContactIn(to="12125550123", vars={"name": "n" * 4_091}), "12125550124"], "hello {{name}}")
@example([ContactIn(to="12125550123", vars={"name": "n" * 2_048}), ContactIn(to="12125550124", vars={"name": "n"})],
         "{{name}}{{name}}{{name}}")  # fmt: skip
async def test_in_bulk_as_one_by_one(some: list[str | ContactIn], text: str) -> None:
    """Good, bad, doubled and suppressed contacts in any order are counted as a job would."""
    bulk, single = await in_bulk(some, text), one_by_one(some, text)
    if isinstance(bulk, Counted) and isinstance(single, Counted) and bulk.zones != single.zones:
        # A person who stands there twice, once in doubt, may be placed by the other mention. Nothing else may differ.
        assert bulk.duplicates
        bulk = msgspec.structs.replace(bulk, zones=single.zones)
    assert bulk == single


def test_nearly_all_are_told_at_a_glance() -> None:
    """Spaces, dashes, plus signs and variables do not make a contact doubtful: only those that need a look are."""
    rng = random.Random(1)
    plain: list[str | ContactIn] = [f"+972 52-{rng.randrange(10**7):07d}" for _ in range(1_000)]
    named = [ContactIn(to=f"44 7911 {i:06d}", vars={"name": "Ada"}, timezone="Europe/London") for i in range(1_000)]
    mixed = [*named, "12", ContactIn(to="972520000001")]
    assert glance(plain, "hello").doubtful == []
    assert glance(mixed, "hello {{name}}").doubtful == [1_000, 1_001]


class Watched:
    """Redis, and how often it was asked."""

    def __init__(self, platform: Platform) -> None:
        self._link = platform.link
        self.asked: list[Any] = []

    def __enter__(self) -> "Watched":
        run, read = self._link.run, self._link.read

        async def counted_run(script: Any, argument: str) -> Any:
            self.asked.append(script)
            return await run(script, argument)

        async def counted_read(*commands: Command) -> list[Any]:
            self.asked.append([command[0] for command in commands])
            return await read(*commands)

        self._link.run, self._link.read = counted_run, counted_read  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        del self._link.run, self._link.read


@pytest.fixture
def people() -> bytes:
    return big_job(100_000)


@pytest.mark.parametrize(
    "suppressed", [pytest.param(0, id="nobody"), pytest.param(300, id="a few"), pytest.param(120_000, id="many")]
)
async def test_round_trips_do_not_grow_with_the_list(platform: Platform, people: bytes, suppressed: int) -> None:
    """However long both lists are, Redis is asked a handful of times; and those on both are found."""
    await platform.connect()
    everybody = [Suppression(str(972_540_000_000 + 7 * index), NOON) for index in range(suppressed)]
    for start in range(0, suppressed, 5_000):
        await platform.store.guards.suppress(everybody[start : start + 5_000])
    with Watched(platform) as watched:
        answer = await platform.gateway.post(
            "/v1/jobs/plan", content=people, headers={"Content-Type": "application/json"}
        )
    plan = answer.json()
    assert (plan["accepted"] + plan["suppressed"], plan["rejected"]) == (100_000, [])
    assert plan["suppressed"] == min(suppressed, -(-100_000 // 7))
    assert len(watched.asked) <= ROUND_TRIPS, watched.asked


async def test_another_notation_of_a_suppressed_number(platform: Platform) -> None:
    """A list of plain digits is compared with every way to write a suppressed number, as the gates do."""
    await platform.connect()
    await platform.store.guards.suppress([Suppression("5215512345678", NOON)])
    answer = await platform.gateway.post(
        "/v1/jobs/plan", json={"contacts": ["525512345678", "972520000001"], "text": "x"}
    )
    assert (answer.json()["accepted"], answer.json()["suppressed"]) == (1, 1)


async def test_the_fleet_is_counted_once(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans that ask in the same second share the picture and what was counted of it."""
    counted = []
    real = picture.crew_of
    monkeypatch.setattr(picture, "crew_of", lambda *some, **more: counted.append(1) or real(*some, **more))
    await platform.connect()
    for _ in range(3):
        await platform.gateway.post("/v1/jobs/plan", json={"contacts": ["972520000001"], "text": "x"})
    assert len(counted) == 1
    platform.clock.forward(picture.PICTURE_AGE_MS)
    await platform.gateway.post("/v1/jobs/plan", json={"contacts": ["972520000001"], "text": "x"})
    assert len(counted) == 2
