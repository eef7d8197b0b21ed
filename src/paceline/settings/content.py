"""What is sent beside text, and what is told to others."""

from typing import Annotated

from pydantic import Field

from paceline.settings.section import Section


class Media(Section):
    """Files that messages carry."""

    media_max_bytes: Annotated[int, Field(ge=1_024, le=104_857_600)] = 16_777_216
    """The largest file that is taken, in bytes, uploaded or fetched. 16 MB is what WhatsApp takes as a picture."""

    media_kept_days: Annotated[int, Field(ge=1, le=3_650)] = 30
    """How long a file is kept that no open job needs, in days from its last use. Then it is removed from
    `$PACELINE_DATA/media`. As long as messages, by default."""

    media_max_total_mb: Annotated[int, Field(ge=1, le=104_857_600)] = 10_240
    """How many megabytes the files in `$PACELINE_DATA/media` may take together; an upload beyond that is a 429
    `MEDIA_FULL` until others are removed. 10 GB are 640 of the largest, and leave a small disk room for Redis, which
    stops everything when it cannot write."""


class Events(Section):
    """Events and webhooks."""

    events_kept: Annotated[int, Field(ge=1_000, le=10_000_000)] = 100_000
    """How many events are kept for webhooks that are behind and for `Last-Event-ID`, the newest first; about 100
    bytes each. A webhook that falls further behind than this loses events, with an incident."""

    event_inbound_text: bool = False
    """Whether `message.received` carries what the person wrote. It is not kept anywhere else, but it lies in the
    stream of events until that many newer ones have come."""

    event_streams: Annotated[int, Field(ge=1, le=10_000)] = 100
    """How many `GET /v1/events` one gateway process serves at once."""

    webhook_allow_private: bool = False
    """Whether webhooks may be on a private network or on this machine. Only for those who hold all admin keys
    themselves: whoever may add a webhook can then make the gateway call what only it can reach."""
