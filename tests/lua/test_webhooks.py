"""Webhooks in Redis: the outbox fills as the cursor moves, a delivery is posted by one, its end is written once."""

from random import Random
from typing import Any

import msgspec
import pytest

from paceline.domain.events import Event
from paceline.policy.webhooks import RETRY_AFTER_MS, Verdict, after_try
from paceline.store import keys
from paceline.store.webhooks import LOG_KEPT, WEBHOOKS_LIMIT, Delivery, WebhookRecord, WebhookState

from .stage import HOUR, T0, Stage, value_of

DELIVERED, FAILED = Verdict("delivered"), Verdict("failed")


def record(id_: str = "wh_1", *events: str) -> WebhookRecord:
    return WebhookRecord(id_, "https://x.example/", list(events) or ["*"], "whsec_x", T0, "k")


def save(stage: Stage, id_: str = "wh_1", *events: str) -> str:
    return value_of(stage.store.webhooks.save(record(id_, *events)))


def state(stage: Stage, id_: str = "wh_1") -> WebhookState:
    found = value_of(stage.store.webhooks.get(id_))
    assert found is not None
    return found


def events(count: int, start: int = 1) -> list[Event]:
    return [Event(f"{number}-0", "job.done", T0 + number, {"job": "J"}) for number in range(start, start + count)]


def feed(stage: Stage, count: int = 1, *, start: int = 1, id_: str = "wh_1", behind: bool = False) -> Any:
    items, cursor = events(count, start), state(stage, id_).cursor
    return value_of(
        stage.store.webhooks.feed(id_, items, from_=cursor, cursor=items[-1].id, behind=behind, now_ms=stage.now)
    )


def take(stage: Stage, parallel: int = 4) -> Any:
    return value_of(stage.store.webhooks.take(now_ms=stage.now, lease_ms=60_000, parallel=parallel))


def taken(stage: Stage) -> tuple[str, Delivery]:
    answer = take(stage)
    assert answer.code == "OK"
    return answer.webhook, msgspec.json.decode(answer.delivery, type=Delivery)


def settle(stage: Stage, webhook: str, delivery: Delivery, verdict: Verdict, **facts: Any) -> Any:
    given = {"status": 200 if verdict.outcome == "delivered" else 500, "error": None, **facts}
    return value_of(stage.store.webhooks.settle(webhook, delivery, verdict, now_ms=stage.now, **given))


def log(stage: Stage, wanted: str | None = None, id_: str = "wh_1") -> list[Delivery]:
    return value_of(stage.store.webhooks.deliveries(id_, None, 5_000, wanted))


def incidents(stage: Stage) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in stage.redis.lrange(keys.incidents(), 0, -1)]


def test_a_webhook_begins_where_the_stream_is_now(stage: Stage) -> None:
    assert save(stage) == "OK"
    assert state(stage).cursor == "0-0"
    stage.cancel(stage.accept(1))
    save(stage, "wh_2")
    assert state(stage, "wh_2").cursor == value_of(stage.store.events.newest()) != "0-0"
    before = stage.dump()
    assert save(stage) == "OK"
    assert stage.dump() == before


def test_there_is_a_limit_of_webhooks(stage: Stage) -> None:
    assert [save(stage, f"wh_{number}") for number in range(WEBHOOKS_LIMIT + 1)] == ["OK"] * WEBHOOKS_LIMIT + ["FULL"]


def test_removing_leaves_nothing(stage: Stage) -> None:
    save(stage)
    feed(stage, 3)
    webhook, delivery = taken(stage)
    assert value_of(stage.store.webhooks.remove("wh_1", by="k", now_ms=T0))
    assert not value_of(stage.store.webhooks.remove("wh_1", by="k", now_ms=T0))
    assert stage.redis.keys("webhook*") == []
    assert settle(stage, webhook, delivery, DELIVERED).code == "GONE"
    assert stage.redis.keys("webhook*") == []


def test_cursor_and_outbox_move_together_and_only_from_where_the_feeder_looked(stage: Stage) -> None:
    save(stage)
    assert feed(stage, 2).added == 2
    webhooks = stage.store.webhooks
    stale = value_of(webhooks.feed("wh_1", events(2), from_="0-0", cursor="2-0", behind=False, now_ms=T0))
    gone = value_of(webhooks.feed("wh_9", events(2), from_="0-0", cursor="2-0", behind=False, now_ms=T0))
    assert (stale.code, gone.code) == ("STALE", "GONE")
    assert (state(stage).cursor, state(stage).pending) == ("2-0", 2)
    assert stage.redis.exists(keys.webhook("wh_9")) == 0


def test_falling_behind_is_an_incident(stage: Stage) -> None:
    save(stage)
    feed(stage, 1, start=5, behind=True)
    (found,) = incidents(stage)
    assert (found["kind"], found["webhookId"], found["after"]) == ("WEBHOOK_BEHIND", "wh_1", "0-0")


def test_one_takes_a_delivery_and_others_find_none_until_its_lease_ends(stage: Stage) -> None:
    save(stage)
    feed(stage)
    _, delivery = taken(stage)
    second = take(stage)
    assert (second.code, second.next_at) == ("NONE", T0 + 60_000)
    stage.now += 60_000
    assert taken(stage)[1].id == delivery.id


def test_what_was_delivered_counts_whoever_says_so_but_a_lost_lease_decides_nothing_else(stage: Stage) -> None:
    save(stage)
    feed(stage)
    webhook, mine = taken(stage)
    stage.now += 60_000
    _, theirs = taken(stage)
    settle(stage, webhook, theirs, Verdict("retry", stage.now + HOUR))
    assert settle(stage, webhook, mine, FAILED).code == "STALE"
    assert settle(stage, webhook, mine, DELIVERED).state == "delivered"
    assert settle(stage, webhook, mine, DELIVERED).code == "REPEAT"
    assert settle(stage, webhook, theirs, FAILED).code == "REPEAT"
    assert (state(stage).pending, take(stage).code) == (0, "NONE")


def test_a_slow_receiver_takes_no_more_than_its_share(stage: Stage) -> None:
    """With four of its posts under way the next free poster serves somebody else, however much waits there."""
    save(stage, "wh_1")
    save(stage, "wh_2")
    feed(stage, 10, id_="wh_1")
    stage.now += 1
    feed(stage, 2, id_="wh_2")
    assert [taken(stage)[0] for _ in range(6)] == ["wh_1", "wh_2", "wh_1", "wh_2", "wh_1", "wh_1"]
    assert take(stage).code == "NONE"


def test_a_retry_waits_for_its_time(stage: Stage) -> None:
    save(stage)
    feed(stage)
    settle(stage, *taken(stage), Verdict("retry", T0 + 5_000), status=503, error="busy")
    assert take(stage).next_at == T0 + 5_000
    (waiting,) = log(stage, "pending")
    assert (waiting.tries, waiting.status, waiting.error, waiting.next_at) == (1, 503, "busy", T0 + 5_000)
    assert state(stage).failing_since == T0
    stage.now += 5_000
    settle(stage, *taken(stage), DELIVERED)
    (ended,) = log(stage)
    assert (ended.state, ended.tries, ended.next_at, ended.error) == ("delivered", 2, None, None)
    assert state(stage).failing_since is None


def test_when_a_receiver_is_back_all_that_waited_for_it_goes(stage: Stage) -> None:
    save(stage)
    feed(stage, 5)
    for _ in range(4):
        settle(stage, *taken(stage), Verdict("retry", T0 + HOUR))
    first = taken(stage)
    stage.now += 60_000
    settle(stage, *first, DELIVERED)
    assert [taken(stage)[1].id for _ in range(4)] == ["1-0", "2-0", "3-0", "4-0"]


def test_after_a_hiccup_nothing_is_pulled_and_what_is_being_posted_never(stage: Stage) -> None:
    save(stage)
    feed(stage, 3)
    settle(stage, *taken(stage), Verdict("retry", T0 + HOUR))
    settle(stage, *taken(stage), DELIVERED)
    assert log(stage, "pending")[-1].next_at == T0 + HOUR
    posting = taken(stage)[1]
    value_of(stage.store.webhooks.redrive("wh_1", from_ms=None, until_ms=None, by="k", now_ms=stage.now))
    assert taken(stage)[1].id != posting.id
    assert take(stage).code == "NONE"


@pytest.mark.parametrize("reason", ["GONE", "FAILING"])
def test_a_disabled_webhook_rests_with_one_incident_and_keeps_what_waits(stage: Stage, reason: str) -> None:
    save(stage)
    feed(stage, 3)
    pair = [taken(stage), taken(stage)]
    for webhook, delivery in pair:
        settle(stage, webhook, delivery, Verdict("failed", disable=reason), status=410)
    assert (state(stage).disabled_at, state(stage).disabled_reason, state(stage).pending) == (T0, reason, 1)
    assert take(stage).code == "NONE"
    assert [(line["kind"], line["reason"]) for line in incidents(stage)] == [("WEBHOOK_DISABLED", reason)]


def test_redrive_starts_failed_ones_again_within_a_time_and_enables(stage: Stage) -> None:
    save(stage)
    feed(stage, 4)
    for _ in range(3):
        settle(stage, *taken(stage), FAILED)
    settle(stage, *taken(stage), Verdict("failed", disable="GONE"))
    answer = value_of(stage.store.webhooks.redrive("wh_1", from_ms=T0 + 2, until_ms=T0 + 3, by="k", now_ms=stage.now))
    assert (answer.redriven, answer.pulled) == (2, 0)
    assert [(item.id, item.state, item.tries) for item in log(stage)] == [
        ("4-0", "failed", 1),
        ("3-0", "pending", 0),
        ("2-0", "pending", 0),
        ("1-0", "failed", 1),
    ]
    assert state(stage).disabled_at is None
    assert [taken(stage)[1].id for _ in range(2)] == ["2-0", "3-0"]
    assert value_of(stage.store.webhooks.redrive("wh_9", from_ms=None, until_ms=None, by="k", now_ms=T0)).code == "GONE"


def test_the_newest_thousand_that_ended_are_kept(stage: Stage) -> None:
    save(stage)
    for start in range(1, LOG_KEPT + 301, 100):
        feed(stage, 100, start=start)
        for _ in range(100):
            settle(stage, *taken(stage), DELIVERED)
    assert [item.number for item in log(stage)] == list(range(LOG_KEPT + 300, 300, -1))
    sizes = [stage.redis.hlen(keys.webhook_deliveries("wh_1")), stage.redis.zcard(keys.webhook_log("wh_1"))]
    assert sizes == [LOG_KEPT, LOG_KEPT]


def test_the_log_is_read_in_pages(stage: Stage) -> None:
    save(stage)
    feed(stage, 50)
    delivered = [taken(stage) for _ in range(4)]
    for pair in delivered:
        settle(stage, *pair, DELIVERED)
    for _ in range(21):
        delivered.append(taken(stage))
        settle(stage, *delivered[-1], DELIVERED)
    seen: list[int] = []
    before: int | None = None
    while page := value_of(stage.store.webhooks.deliveries("wh_1", before, 10, "delivered")):
        seen += [item.number for item in page]
        before = page[-1].number
    assert seen == sorted((delivery.number for _, delivery in delivered), reverse=True)


@pytest.mark.parametrize(
    ("tries", "status", "since", "expected"),
    [
        pytest.param(1, 204, None, ("delivered", None), id="any 2xx"),
        pytest.param(1, 302, None, ("retry", None), id="a redirect is no success"),
        pytest.param(1, None, None, ("retry", None), id="nobody answers"),
        pytest.param(10, 500, None, ("failed", None), id="the tenth try was the last"),
        pytest.param(1, 410, None, ("failed", "GONE"), id="gone"),
        pytest.param(3, 500, T0 - 5 * 24 * HOUR, ("retry", "FAILING"), id="five days"),
        pytest.param(3, 500, T0 - 5 * 24 * HOUR + 1, ("retry", None), id="not quite five days"),
        pytest.param(1, 200, T0 - 9 * 24 * HOUR, ("delivered", None), id="back after long"),
    ],
)
def test_the_verdict_on_a_try(tries: int, status: int | None, since: int | None, expected: tuple[str, Any]) -> None:
    verdict = after_try(
        tries=tries, status=status, retry_after_s=None, failing_since_ms=since, now_ms=T0, rng=Random(1)
    )
    assert (verdict.outcome, verdict.disable) == expected
    assert (verdict.next_at_ms is not None) == (expected[0] == "retry")


@pytest.mark.parametrize("tries", range(1, 10))
def test_the_waits_grow_over_days_and_no_two_are_alike(tries: int) -> None:
    def wait(seed: int, asked: int | None = None) -> int:
        given = {"status": 503, "retry_after_s": asked, "failing_since_ms": None}
        verdict = after_try(tries=tries, now_ms=T0, rng=Random(seed), **given)  # type: ignore[arg-type]
        return (verdict.next_at_ms or 0) - T0

    base = RETRY_AFTER_MS[tries - 1]
    waits = [wait(seed) for seed in range(50)]
    assert 0.8 * base <= min(waits) < max(waits) <= 1.2 * base
    assert len(set(waits)) > 40
    assert wait(1, 10**9) <= max(24 * HOUR, 1.2 * base)
    assert wait(1, 3 * 3_600) >= 3 * HOUR


def test_what_falls_due_together_goes_in_the_order_of_its_events(stage: Stage) -> None:
    """Not in that of their names, in which the tenth stands before the second."""
    save(stage)
    feed(stage, 12)
    assert [int(delivery.id.removesuffix("-0")) for _, delivery in _all_posted(stage)] == list(range(1, 13))


def test_nor_does_what_waited_for_a_receiver_come_back_in_another_order(stage: Stage) -> None:
    """Each had a next try of its own; one press makes them all due at once."""
    save(stage)
    feed(stage, 12)
    for place in range(12):
        settle(stage, *taken(stage), Verdict("retry", next_at_ms=T0 + HOUR - place))
    stage.now += 1_000
    value_of(stage.store.webhooks.redrive("wh_1", from_ms=None, until_ms=None, by="k", now_ms=stage.now))
    assert [int(delivery.id.removesuffix("-0")) for _, delivery in _all_posted(stage)] == list(range(1, 13))


def test_what_fell_due_earlier_goes_first(stage: Stage) -> None:
    save(stage)
    feed(stage, 2)
    first = taken(stage)
    settle(stage, *first, Verdict("retry", next_at_ms=T0 + 1_000))
    stage.now += 2_000
    assert [delivery.id for _, delivery in _all_posted(stage)] == ["2-0", "1-0"]


def _all_posted(stage: Stage) -> list[tuple[str, Delivery]]:
    found = []
    while stage.redis.zcount(keys.webhook_outbox("wh_1"), 0, stage.now):
        found.append(taken(stage))
        settle(stage, *found[-1], DELIVERED)
    return found
