"""A job and its contacts as they are stored: immutable from the moment the gateway accepted them."""

from typing import Any, Literal

import msgspec

from paceline.domain.ids import task_id
from paceline.domain.media import Media, Mode

OnUnknown = Literal["resend", "hold"]
Strategy = Literal["sticky", "least_loaded", "health_based", "round_robin"]
"""How a contact gets its number; what each does is in `policy.routing`."""

MAX_CONTACTS = 100_000
"""One request; larger campaigns are several jobs. The body limit (32 MB) allows about 300 bytes a contact."""


class Contact(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    to: str
    vars: dict[str, str] = {}
    client_ref: str | None = None
    timezone: str | None = None


class Job(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", kw_only=True):
    job_id: str
    total: int
    text: str
    accepted_at: int
    accepted_by: str
    mode: Mode = "message"
    media: Media | None = None
    """Of mode image and document; the text is then its caption and may be empty."""
    priority: int = 1
    phone: str | None = None
    session_id: str | None = None
    send_at: int | None = None
    spread_minutes: int = 0
    validity_seconds: int
    on_unknown: OnUnknown = "resend"
    strategy: Strategy | None = None
    """None is the setting."""
    single: bool = False
    confirmation: bool = False
    """The answer to somebody's "stop". It says what the job is; what lets it through is their place on the list."""
    replay_of: str | None = None
    """The dead letter (a task), or the job whose dead letters, this job sends again."""
    zones: dict[str, int] = {}
    """How many of its people may be in which timezones, for forecasts; empty if nobody counted."""
    planned: list[tuple[int, int]] = []
    """The forecast at accept: by when how many should have gone out (`policy.course`)."""
    tags: list[str] = []
    metadata: dict[str, Any] = {}
    request_id: str = ""
    """The `X-Request-Id` of the request that was accepted: in every log line about its messages."""

    def scheduled_at(self, index: int) -> int:
        """When the task may go at the earliest; a spread job gives the i-th its share of the time."""
        return (self.send_at or self.accepted_at) + spread_ms(index, self.spread_minutes, self.total)

    def expires_at(self, index: int) -> int:
        return self.scheduled_at(index) + self.validity_seconds * 1000

    def task_id(self, index: int) -> str:
        return task_id(self.job_id, index)


def spread_ms(index: int, spread_minutes: int, total: int) -> int:
    """How much later than the first the i-th of a spread job may go."""
    return index * spread_minutes * 60_000 // total


_encoder = msgspec.json.Encoder()
_job_decoder = msgspec.json.Decoder(Job)
_contact_decoder = msgspec.json.Decoder(Contact)


def encode_job(job: Job) -> str:
    return _encoder.encode(job).decode()


def decode_job(raw: str | bytes) -> Job:
    return _job_decoder.decode(raw)


def encode_contact(contact: Contact) -> str:
    """Most contacts are a number and nothing else; those cost their digits, not a JSON object."""
    plain = not contact.vars and contact.client_ref is None and contact.timezone is None
    return contact.to if plain else _encoder.encode(contact).decode()


def decode_contact(raw: str) -> Contact:
    return Contact(raw) if not raw.startswith("{") else _contact_decoder.decode(raw)
