"""Every method of both clients, against the real gateway. Each answer is decoded into its type, so a field that is
missing, or of another kind, would be a `BadAnswer`."""

from datetime import UTC, date, datetime, timedelta

import pytest

from contract.platform import FRIEND, NOON, PHONE, READ_KEY, SEND_KEY, SESSION, Platform
from contract.receiver import receiving
from contract.test_dead_letters import give_up
from contract.uploads import PDF, PNG, ref_of
from paceline.client import Conflict, Contact, Forbidden, Misused, NotFound, OwnText, Paceline, Refused, Unauthorized

from .conftest import Client

PEOPLE = [str(972_540_000_000 + index) for index in range(5)]


async def test_a_job_from_contacts_of_every_kind(platform: Platform, c: Client) -> None:
    made = await c(
        c.api.jobs.create,
        contacts=[
            Contact(FRIEND, {"name": "Ada"}, client_ref="crm-1"),
            {"to": PEOPLE[0], "vars": {"name": "Alan"}},
            {"to": PEOPLE[0], "vars": {"name": "again"}},
            "not a number",
            PEOPLE[1],
        ],
        text="Hello {{name}}",
        tags=["spring"],
        metadata={"campaign": 3},
        priority=2,
        send_at=datetime.fromtimestamp(NOON / 1000, UTC) + timedelta(hours=1),
    )
    assert (made.total, made.accepted, made.duplicates) == (5, 2, 1)
    assert [(bad.index, bad.code, bad.variable) for bad in made.rejected] == [
        (3, "INVALID_NUMBER", None),
        (4, "MISSING_VARIABLE", "name"),
    ]
    job = await c(c.api.jobs.get, made.job_id)
    assert (job.state, job.progress.total, job.tags, job.metadata) == ("QUEUED", 2, ["spring"], {"campaign": 3})
    assert (job.priority, job.send_at, job.ended) == (2, NOON + 3_600_000, False)
    first, _ = (await c(c.api.jobs.messages, made.job_id)).items
    assert (first.to, first.client_ref, first.ended) == (FRIEND, "crm-1", False)


async def test_a_job_from_csv_has_the_same_fields(platform: Platform, c: Client) -> None:
    made = await c(
        c.api.jobs.create,
        csv=f"to,name\n{FRIEND},עדה\n{PEOPLE[0]},Alan\n",
        text="Hello {{name}} & all?",
        tags=["spring", "vip"],
        metadata={"campaign": 3},
        strict=True,
        send_at=NOON + 60_000,
    )
    job = await c(c.api.jobs.get, made.job_id)
    assert (made.accepted, job.tags, job.metadata, job.send_at) == (
        2,
        ["spring", "vip"],
        {"campaign": 3},
        NOON + 60_000,
    )
    stored = await platform.store.jobs.view(made.job_id)
    assert stored is not None
    assert stored.job.text == "Hello {{name}} & all?"


async def test_plans_store_nothing(platform: Platform, c: Client) -> None:
    await platform.connect()
    async with platform.nothing_stored():
        plan = await c(c.api.jobs.plan, contacts=PEOPLE, text="hello")
        assert await c(c.api.jobs.plan, csv="to\n" + "\n".join(PEOPLE), text="hello") == plan
    assert (plan.accepted, plan.phones[0].phone, plan.will_expire.count) == (5, PHONE, 0)
    assert plan.finishes_at > plan.starts_at >= NOON


async def test_lists_are_walked_to_their_end(platform: Platform, c: Client) -> None:
    jobs = []
    for to in PEOPLE:
        platform.clock.forward(1)
        jobs.append((await c(c.api.jobs.create, contacts=[to], text="hello", tags=["t"])).job_id)
    page = await c(c.api.jobs.list, tag="t", limit=2)
    assert ([item.job_id for item in page.items], page.next_cursor is None) == (jobs[:-3:-1], False)
    assert [item.job_id for item in await c.all(c.api.jobs.each(limit=2, state=["QUEUED", "PAUSED"]))] == jobs[::-1]
    assert await c.all(c.api.jobs.each(tag="other")) == []
    assert await c.all(c.api.jobs.each(single=True)) == []
    assert len(await c.all(c.api.jobs.each(single=False))) == len(jobs)
    assert await c.all(c.api.jobs.each(until=datetime(2020, 1, 1, tzinfo=UTC))) == []
    big = await c(c.api.jobs.create, contacts=PEOPLE, text="hello")
    assert [message.to for message in await c.all(c.api.jobs.each_message(big.job_id, limit=2))] == PEOPLE
    assert await c.all(c.api.jobs.each_message(big.job_id, state="sent")) == []
    found = await c(c.api.messages.find, PEOPLE[0])
    assert {message.job_id for message in found.items} == {jobs[0], big.job_id}
    assert await c.all(c.api.messages.each(f"+{PEOPLE[0]}", limit=1)) == found.items


async def test_a_job_is_paused_resumed_canceled_and_waited_for(platform: Platform, c: Client) -> None:
    job = (await c(c.api.jobs.create, contacts=PEOPLE, text="hello")).job_id
    assert ((await c(c.api.jobs.pause, job)).state, (await c(c.api.jobs.pause, job)).waiting) == ("PAUSED", 5)
    assert (await c(c.api.jobs.resume, job)).job_id == job
    with pytest.raises(Conflict) as refused:
        await c(c.api.jobs.resume, job)
    assert (refused.value.code, refused.value.details) == ("JOB_NOT_PAUSED", {"state": "QUEUED"})
    canceled = await c(c.api.jobs.cancel, job)
    assert (canceled.canceled, canceled.open) == (5, 0)
    ended = await c(c.api.jobs.wait, job)
    assert (ended.state, ended.progress.canceled, ended.ended) == ("CANCELED", 5, True)
    assert await c.all(c.api.jobs.watch(job)) == [ended]
    assert (await c(c.api.messages.wait, f"{job}:0")).state == "canceled"


async def test_single_messages_and_batches(platform: Platform, c: Client) -> None:
    await platform.connect()
    sent = await c(c.api.send, f"+{FRIEND}", "hello", session_id=SESSION, priority=3)
    assert sent.position == 0
    status = await c(c.api.messages.get, sent.message_id)
    assert (status.to, status.phone, status.state, status.waiting is not None) == (FRIEND, PHONE, "queued", True)
    batch = [OwnText(PEOPLE[0], "one"), (PEOPLE[1], "two"), {"to": PEOPLE[2], "text": "three"}]
    made = await c(c.api.send_batch, batch, spread_minutes=1)
    assert (made.queued, made.suppressed) == (3, 0)
    await platform.dispatch()
    queue = await c(c.api.queues.get, SESSION)
    assert (queue.phone, queue.total) == (PHONE, len(queue.items))
    waiting = await c.all(c.api.queues.each(SESSION, limit=1))
    assert [item.message_id for item in waiting] == [item.message_id for item in queue.items]
    victim = waiting[-1].message_id
    assert (await c(c.api.queues.cancel, SESSION, victim)).state == "canceled"
    with pytest.raises(Conflict, match="MESSAGE_ENDED"):
        await c(c.api.queues.cancel, SESSION, victim)
    figures = await c(c.api.queues.stats, SESSION)
    assert figures == await c(c.api.queues.stats, SESSION, date(2026, 3, 10))
    assert (figures.date, figures.sent, figures.avg_delivery_time) == ("2026-03-10", 0, None)


async def test_files(platform: Platform, c: Client) -> None:
    bare = await c(c.api.media.upload, PNG, type="image/png")
    named = await c(c.api.media.upload, PDF, name='menu "of\r\nday".pdf')
    assert (bare.media_ref, bare.size, bare.type) == (ref_of(PNG, "png"), len(PNG), "image/png")
    assert named.type == "application/pdf"
    made = await c(c.api.jobs.create, [FRIEND], mode="document", media_ref=named.media_ref)
    assert (await c(c.api.jobs.get, made.job_id)).mode == "document"


async def test_suppressions(platform: Platform, c: Client) -> None:
    assert (await c(c.api.suppressions.add, PEOPLE[0], "asked us to stop")).added == 1
    assert (await c(c.api.suppressions.add, PEOPLE[:2])).added == 1
    taken = await c(c.api.suppressions.import_csv, f"to,reason\n{PEOPLE[2]},moved\nnobody,\n{PEOPLE[0]},\n")
    assert (taken.added, taken.duplicates, [row.line for row in taken.rejected]) == (1, 1, [3])
    listed = await c.all(c.api.suppressions.each(limit=2))
    assert sorted(item.to for item in listed) == PEOPLE[:3]
    assert (await c(c.api.suppressions.list, limit=1)).next_cursor
    table = await c(c.api.suppressions.export_csv)
    assert table.splitlines()[0] == "to,at,reason,source"
    assert (await c(c.api.suppressions.import_csv, table)).duplicates == 3
    assert (await c(c.api.suppressions.remove, f"+{PEOPLE[0]}")).to == PEOPLE[0]
    with pytest.raises(NotFound):
        await c(c.api.suppressions.remove, PEOPLE[0])


async def test_a_person_is_erased(platform: Platform, c: Client) -> None:
    await c(c.api.jobs.create, contacts=[FRIEND], text="hello")
    gone = await c(c.api.recipients.erase, FRIEND)
    assert (gone.canceled, gone.open, gone.suppressed) == (1, 0, False)


async def test_dead_letters_are_listed_and_sent_again(platform: Platform, c: Client) -> None:
    first = await give_up(platform)
    second = await give_up(platform, contacts=[PEOPLE[0]])
    letters = await c.all(c.api.dead_letters.each(limit=1, class_="recipient", from_=NOON))
    assert [(letter.id, letter.class_, letter.replayable) for letter in letters] == [
        (second, "recipient", True),
        (first, "recipient", True),
    ]
    assert (await c(c.api.dead_letters.list, code="OTHER")).items == []
    again = await c(c.api.dead_letters.replay, first)
    assert again.replay_of == first
    with pytest.raises(Conflict) as refused:
        await c(c.api.dead_letters.replay, first)
    assert (refused.value.code, refused.value.details["jobId"]) == ("ALREADY_REPLAYED", again.job_id)
    rest = await c(c.api.dead_letters.replay_all, code="NOT_ON_WHATSAPP", until=NOON + 86_400_000)
    assert (rest.replayed, [job.accepted for job in rest.jobs], rest.skipped.already_replayed) == (1, [1], 1)


async def test_keys(platform: Platform, c: Client) -> None:
    made = await c(c.api.keys.create, "CRM", ["send"], expires_in_days=9, rate_per_minute=60)
    assert made.key not in repr(made)
    assert made.key not in str(made)
    page = await c(c.api.keys.list, limit=1)
    assert page.next_cursor
    kept = {key.key_id: key for key in await c.all(c.api.keys.each(limit=1))}
    assert (kept[made.key_id].name, kept[made.key_id].rate_per_minute) == ("CRM", 60)
    assert (await c(c.api.keys.revoke, made.key_id)).state == "revoked"


async def test_webhooks(platform: Platform, c: Client) -> None:
    async with receiving() as receiver:
        made = await c(c.api.webhooks.create, receiver.url, ["job.done"], description="CRM")
        assert made.secret.startswith("whsec_")
        assert made.secret not in repr(made)
        platform.clock.forward(1)
        await c(c.api.webhooks.create, receiver.url)
        assert [hook.events for hook in await c.all(c.api.webhooks.each(limit=1))] == [["job.done"], ["*"]]
        assert (await c(c.api.webhooks.list, limit=1)).next_cursor
        job = await c(c.api.jobs.create, contacts=[FRIEND], text="hello")
        await c(c.api.jobs.cancel, job.job_id)
        while await platform.outlets.feeder.step(platform.clock.at_ms):
            pass
        [waits] = (await c(c.api.webhooks.deliveries, made.webhook_id, state="pending")).items
        assert (waits.type, waits.tries) == ("job.done", 0)
        assert await c.all(c.api.webhooks.each_delivery(made.webhook_id)) == [waits]
        # It waits, but not for a later time.
        redriven = await c(c.api.webhooks.redrive, made.webhook_id, from_=NOON)
        assert (redriven.redriven, redriven.pulled) == (0, 0)
        assert (await c(c.api.webhooks.remove, made.webhook_id)).webhook_id == made.webhook_id
        with pytest.raises(NotFound, match="UNKNOWN_WEBHOOK"):
            await c(c.api.webhooks.deliveries, made.webhook_id)


async def test_health(platform: Platform, c: Client) -> None:
    assert (await c(c.api.health)).status == "ok"


@pytest.mark.parametrize(
    ("key", "kind", "code"),
    [
        pytest.param("nobody-knows-this-key", Unauthorized, "UNAUTHORIZED", id="not a key"),
        pytest.param(READ_KEY, Forbidden, "FORBIDDEN", id="no scope"),
        pytest.param(SEND_KEY, Refused, "INVALID_REQUEST", id="a bad field"),
    ],
)
async def test_a_refusal_says_what_the_gateway_said(
    platform: Platform, c: Client, key: str, kind: type[Refused], code: str
) -> None:
    (http,) = c.api._https.values()
    http.headers["X-API-KEY"] = key
    with pytest.raises(kind) as refused:
        await c(c.api.send, FRIEND, "hello", priority=9)
    error = refused.value
    assert (error.code, error.tries, bool(error.request_id)) == (code, 1, True)
    assert error.field == ("priority" if code == "INVALID_REQUEST" else None)
    assert error.message in str(error)
    assert key not in str(error)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(lambda p: p.jobs.create(text="hello"), id="no contacts"),
        pytest.param(lambda p: p.jobs.create(["1"], csv="to\n1"), id="contacts twice"),
        pytest.param(lambda p: p.jobs.create("972541234567"), id="a text for a list"),
        pytest.param(lambda p: p.jobs.create(["1"], texxt="hello"), id="a misspelt field"),
        pytest.param(lambda p: p.jobs.create(["1"], send_at=datetime(2026, 1, 1)), id="a naive time"),  # noqa: DTZ001
        pytest.param(lambda p: p.jobs.create(csv="to\n1", tags=["a,b"]), id="a comma in a tag beside a CSV"),
        pytest.param(lambda p: p.jobs.create([object()]), id="what is no JSON"),
        pytest.param(lambda p: p.jobs.get(""), id="no id"),
        pytest.param(lambda p: p.jobs.get(".."), id="an id that leaves its path"),
        pytest.param(lambda p: p.media.upload("menu.pdf"), id="a name for a file"),
        pytest.param(lambda p: p.send("1", "hello", idempotency_key="two words"), id="a key with a space"),
        pytest.param(lambda p: Paceline("localhost:4000", "k"), id="no scheme"),
        pytest.param(lambda p: Paceline("http://", "k"), id="no host"),
        pytest.param(lambda p: Paceline("http://localhost", "ключ"), id="no possible key"),
        pytest.param(lambda p: Paceline("http://localhost", ""), id="no key"),
    ],
)
def test_what_cannot_be_asked_is_told_at_once(wrong: object) -> None:
    with pytest.raises(Misused), Paceline("http://127.0.0.1:9", "k") as p:
        wrong(p)  # type: ignore[operator]
