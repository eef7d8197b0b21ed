"""Calls beside sending: queues, people, dead letters, keys, webhooks, health."""

import datetime
from collections.abc import Sequence
from typing import Literal

from paceline.client.answers_jobs import Page
from paceline.client.answers_lists import (
    ApiKey,
    DeadLetter,
    Delivery,
    ErasedPerson,
    Health,
    MessageCanceled,
    NewApiKey,
    NewWebhook,
    Queue,
    Redriven,
    Replayed,
    ReplayedMany,
    SessionStats,
    Suppressed,
    Suppression,
    SuppressionRemoved,
    SuppressionsImported,
    Webhook,
    WebhookRemoved,
)
from paceline.client.calls import CSV, Call, Csv, Moment, Repeat, body, encoded_csv, moment, path, query

ErrorClass = Literal["transient", "recipient", "platform"]


def health() -> Call[Health]:
    """Is it working? `Unavailable` if its store does not answer."""
    return Call("GET", "/health", Health)


def queue(session_id: str, *, cursor: str = "", limit: int = 100) -> Call[Queue]:
    """What waits for the session's number, in the order it will go; then what is parked."""
    return Call("GET", path("/api/v1/queue/{}", session_id), Queue, query=query(cursor=cursor, limit=limit))


def cancel_message(session_id: str, message_id: str) -> Call[MessageCanceled]:
    """Takes one message out of the queue. `Conflict` once a worker holds it."""
    return Call("DELETE", path("/api/v1/queue/{}/{}", session_id, message_id), MessageCanceled)


def stats(session_id: str, date: str | datetime.date = "") -> Call[SessionStats]:
    """A day in figures; today in the number's timezone if left out."""
    return Call("GET", path("/api/v1/stats/{}", session_id), SessionStats, query=query(date=str(date)))


def suppress(to: str | Sequence[str], reason: str = "") -> Call[Suppressed]:
    """Never write to this person, or these up to 10,000, again. All or none."""
    return Call("POST", "/v1/suppressions", Suppressed, content=body(to=to, reason=reason))


def import_suppressions(csv: Csv) -> Call[SuppressionsImported]:
    """Up to 100,000 rows `to[,reason]`; bad ones are listed, the rest is stored."""
    return Call("POST", "/v1/suppressions", SuppressionsImported, content=encoded_csv(csv), content_type=CSV)


def list_suppressions(*, to: str | None = None, cursor: str = "", limit: int = 100) -> Call[Page[Suppression]]:
    """A page of those who must not be written to; with `to` that person alone, or nobody."""
    asked = query(cursor=cursor, limit=limit) if to is None else {"to": to, **query(cursor=cursor)}
    return Call("GET", "/v1/suppressions", Page[Suppression], query=asked)


def export_suppressions() -> Call[str]:
    """The whole list as CSV, which can be imported again."""
    return Call("GET", "/v1/suppressions", str)


def lift_suppression(to: str) -> Call[SuppressionRemoved]:
    """Takes a person off the list."""
    return Call("DELETE", path("/v1/suppressions/{}", to), SuppressionRemoved)


def erase(to: str) -> Call[ErasedPerson]:
    """Removes a person from everything that is kept, but for the suppression list."""
    return Call("DELETE", path("/v1/recipients/{}", to), ErasedPerson)


def list_letters(
    *,
    code: str = "",
    class_: ErrorClass | None = None,
    phone: str = "",
    job_id: str = "",
    from_: Moment | None = None,
    until: Moment | None = None,
    cursor: str = "",
    limit: int = 100,
) -> Call[Page[DeadLetter]]:
    """A page of what was given up, newest first."""
    given = query(
        code=code,
        class_=class_,
        phone=phone,
        job_id=job_id,
        from_=moment(from_),
        until=moment(until),
        cursor=cursor,
        limit=limit,
    )
    return Call("GET", "/v1/dead-letters", Page[DeadLetter], query=given)


def replay(letter_id: str, *, again: bool = False, idempotency_key: str | None = None) -> Call[Replayed]:
    """Sends one again as a new job; what was sent again before, only with `again`."""
    return Call(
        "POST",
        path("/v1/dead-letters/{}/replay", letter_id),
        Replayed,
        content=body(again=again),
        repeat=Repeat.KEYED,
        idempotency_key=idempotency_key,
    )


def replay_all(
    *,
    code: str | None = None,
    class_: ErrorClass | None = None,
    phone: str | None = None,
    job_id: str | None = None,
    from_: Moment | None = None,
    until: Moment | None = None,
    limit: int = 100,
    again: bool = False,
    idempotency_key: str | None = None,
) -> Call[ReplayedMany]:
    """Sends all that match again, up to `limit`; one new job for each old one."""
    content = body(
        code=code,
        class_=class_,
        phone=phone,
        job_id=job_id,
        from_=moment(from_),
        until=moment(until),
        limit=limit,
        again=again,
    )
    return Call(
        "POST",
        "/v1/dead-letters/replay",
        ReplayedMany,
        content=content,
        repeat=Repeat.KEYED,
        idempotency_key=idempotency_key,
    )


def create_key(
    name: str,
    scopes: Sequence[str],
    *,
    expires_in_days: int | None = None,
    rate_per_minute: int | None = None,
) -> Call[NewApiKey]:
    """The key is in this answer and never shown again. Not repeated if its answer is lost: that would be a second."""
    content = body(name=name, scopes=scopes, expires_in_days=expires_in_days, rate_per_minute=rate_per_minute)
    return Call("POST", "/v1/keys", NewApiKey, content=content, repeat=Repeat.ANOTHER)


def list_keys(*, cursor: str = "", limit: int = 100) -> Call[Page[ApiKey]]:
    """A page of all keys, also those that have ended."""
    return Call("GET", "/v1/keys", Page[ApiKey], query=query(cursor=cursor, limit=limit))


def own_key() -> Call[ApiKey]:
    """What the key that asks may do, and until when."""
    return Call("GET", "/v1/keys/self", ApiKey)


def revoke_key(key_id: str) -> Call[ApiKey]:
    """Refused from now on, everywhere within a second."""
    return Call("DELETE", path("/v1/keys/{}", key_id), ApiKey)


def create_webhook(
    url: str, events: Sequence[str] = ("*",), *, description: str = "", secret: str | None = None
) -> Call[NewWebhook]:
    """The signing secret is in this answer and never shown again. Not repeated if its answer is lost."""
    content = body(url=url, events=events, description=description, secret=secret)
    return Call("POST", "/v1/webhooks", NewWebhook, content=content, repeat=Repeat.ANOTHER)


def list_webhooks(*, cursor: str = "", limit: int = 100) -> Call[Page[Webhook]]:
    """A page of where events are posted to."""
    return Call("GET", "/v1/webhooks", Page[Webhook], query=query(cursor=cursor, limit=limit))


def remove_webhook(webhook_id: str) -> Call[WebhookRemoved]:
    """With its log and all that waits for it."""
    return Call("DELETE", path("/v1/webhooks/{}", webhook_id), WebhookRemoved)


def deliveries(
    webhook_id: str,
    *,
    state: Literal["pending", "delivered", "failed"] | None = None,
    cursor: str = "",
    limit: int = 100,
) -> Call[Page[Delivery]]:
    """A page of what was posted there and what waits, newest first."""
    given = query(state=state, cursor=cursor, limit=limit)
    return Call("GET", path("/v1/webhooks/{}/deliveries", webhook_id), Page[Delivery], query=given)


def redrive(webhook_id: str, *, from_: Moment | None = None, until: Moment | None = None) -> Call[Redriven]:
    """Failed deliveries start again, waiting ones go now, a disabled webhook is enabled."""
    content = body(from_=moment(from_), until=moment(until))
    return Call("POST", path("/v1/webhooks/{}/redrive", webhook_id), Redriven, content=content)
