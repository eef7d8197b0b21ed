"""The times of the send protocol, and of the watchdog that sees whether workers keep to it."""

from typing import Annotated

from pydantic import Field, field_validator

from paceline.settings.section import Milliseconds, Section


class SendProtocol(Section):
    """How long a task may be in each hand."""

    lease_ms: Annotated[int, Field(ge=100, le=600_000)] = 120_000
    """How long a worker may hold a claimed task without a word, in ms; after it the outcome counts as
    unknown. Two minutes cover typing, a slow acknowledgement and a reconnect."""

    handoff_ttl_ms: Annotated[int, Field(ge=100, le=86_400_000)] = 60_000
    """How long a task lies in an outbox unclaimed, in ms, before it is withdrawn to the head of its phone's
    queue."""

    liveness_ms: Annotated[int, Field(ge=100, le=86_400_000)] = 60_000
    """After so many ms without a claim, receipt or ping a session no longer counts as connected. A worker
    claims every 20 s, so this is three missed calls."""

    unknown_grace_ms: Milliseconds = 10_000
    """How long a worker looks for receipts of a message whose outcome is unknown, in ms, before it says so.
    Receipts that were held back arrive within seconds of the reconnect."""


class Watchdog(Section):
    """How long a worker or a proxy may be silent."""

    monitor_interval_ms: Annotated[int, Field(ge=100, le=600_000)] = 30_000
    """How often workers are looked at, in ms: who is silent, stuck or deaf, who is away, what each takes of its
    host."""

    stuck_ms: Annotated[int, Field(ge=1_000, le=3_600_000)] = 120_000
    """A connected worker that asks for no work for so many ms is restarted, however it pings. It asks every 20 s,
    except while it sends."""

    deaf_ms: Annotated[int, Field(ge=20_000, le=3_600_000)] = 180_000
    """A connected worker that has heard nothing of WhatsApp for so many ms, not even the answer to a keep-alive, is
    restarted. Workers tell with every ping, which is every 15 s."""

    down_ms: Annotated[int, Field(ge=1_000, le=86_400_000)] = 120_000
    """A session that should be connected and is not for so many ms is told (SESSION_DOWN). Reconnecting takes
    seconds."""

    proxy_check_url: Annotated[str, Field(max_length=2_048)] = "https://web.whatsapp.com/"
    """What is asked for through each proxy to see whether it works; any answer will do. `none`: proxies are not
    checked, only operators mark them."""

    proxy_check_interval_ms: Annotated[int, Field(ge=1_000, le=86_400_000)] = 300_000
    """How often each proxy is checked, in ms. Three failures in a row, and it is replaced."""

    @field_validator("proxy_check_url")
    @classmethod
    def _is_a_page_or_none(cls, value: str) -> str:
        if value.strip().lower() in ("", "none"):
            return ""
        if not value.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://, or be `none`")
        return value
