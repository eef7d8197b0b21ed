"""What is kept, where and how long; logs; crash tests."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from paceline.settings.section import AnyCase, Section


class Keeping(Section):
    """Audit and housekeeping."""

    # Audit

    db_path: Path | None = None
    """The audit trail, an SQLite file: bindings, operators' actions, confirmed sends. Only one orchestrator writes it
    at a time. Unset, it is `orchestrator.sqlite` in `PACELINE_DATA`, so `./data/orchestrator.sqlite`."""

    audit_kept_days: Annotated[int, Field(ge=1, le=36_500)] = 365
    """How long rows of the audit trail are kept, in days. A year is what most audits ask for."""

    # Housekeeping

    messages_kept_days: Annotated[int, Field(ge=1, le=365)] = 30
    """How long a message is kept in Redis after it has ended, in days: how it went, its receipts, and the list of
    what a person was sent. A receipt that comes later finds no message. A change counts for what ends from then on."""

    jobs_kept_days: Annotated[int, Field(ge=1, le=365)] = 90
    """How long a job is kept in Redis after it has ended, in days: its text, its contacts and how each ended. At
    least as long as its messages; a year at most, so that the record of the key that sent it is still there."""

    job_stats_ttl_seconds: Annotated[int, Field(ge=60, le=31_536_000)] = 86_400
    """How long the counters of a finished job stay in Redis, in seconds. They free memory after the end and
    nothing else; no rule depends on it."""

    log_level: Annotated[Literal["debug", "info", "warning", "error"], AnyCase] = "info"
    """The least severe line that is logged."""

    log_messages: bool = True
    """Whether each step of each message is a line at `info`, with the `X-Request-Id` of the request it came with:
    accepted, routed, handed off, claimed, sent, delivered. A fleet that sends thousands a minute may want to save
    them."""

    failpoints: Annotated[Path | None, Field(validation_alias="PACELINE_FAILPOINTS")] = None
    """For crash tests only: a directory in which a file named like a failpoint kills the process that passes
    it."""

    @field_validator("jobs_kept_days")
    @classmethod
    def _outlives_its_messages(cls, value: int, info: ValidationInfo) -> int:
        if value < info.data.get("messages_kept_days", value):
            raise ValueError("must not be less than MESSAGES_KEPT_DAYS: without its job a message tells nothing")
        return value
