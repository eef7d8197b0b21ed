"""What is kept, where and how long; logs; crash tests."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

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
