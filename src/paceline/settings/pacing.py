"""How fast, by whom and how often a person is written to, and what makes it stop."""

from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from paceline.domain.jobs import Strategy
from paceline.domain.text import variables
from paceline.settings.section import AnyCase, Milliseconds, PositiveMilliseconds, Section


class Pacing(Section):
    """Pacing, routing, retries."""

    policy: Annotated[str, Field(validation_alias="PACELINE_POLICY", min_length=1)] = "default"
    """The policy: a preset (`default`, `distribution`, `demo`) or the path of a policy file in TOML."""

    default_min_delay_ms: Milliseconds = 2_000
    """Shortest gap between two sends of a phone, in ms, for trust levels that state no window of their
    own."""

    default_max_delay_ms: Milliseconds = 5_000
    """Longest drawn gap between two sends of a phone, in ms, for trust levels without a window. Not below
    `DEFAULT_MIN_DELAY_MS`."""

    burst_limit: Annotated[int, Field(ge=0, le=32)] = 5
    """So many messages may follow each other before the phone rests for `BURST_COOLDOWN_MS`; 0 switches the
    rule off. 5 is a handful, as a person would write; 32 is as far back as a pacer remembers."""

    burst_cooldown_ms: Milliseconds = 30_000
    """The rest after a burst, in ms; 1 to 3 s are added at random."""

    route_ahead: Annotated[int, Field(ge=1, le=10_000)] = 200
    """How many tasks a phone's queue is filled with ahead of need. Enough that no phone runs dry between two
    rounds, few enough that a ban or a new phone leaves little to re-route."""

    routing_strategy: Annotated[Strategy, AnyCase] = "sticky"
    """Which number takes a contact, unless the job says otherwise: `sticky` (the one that wrote to them last,
    else the least loaded), `least_loaded`, `health_based` (fewest failures, then load) or `round_robin`.
    Whoever wrote to a number stays with it in all of them."""

    global_rpm: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """A ceiling for the whole fleet, messages in any 60 s; 0 is none."""

    recipient_cap: Annotated[int, Field(ge=0, le=1_000)] = 0
    """How many messages one person gets within `RECIPIENT_CAP_HOURS`, over all numbers and jobs; what exceeds
    it waits. 0 is no cap."""

    recipient_cap_hours: Annotated[int, Field(ge=1, le=720)] = 24
    """The rolling time `RECIPIENT_CAP` counts in, in hours."""

    smart_guard_enabled: bool = True
    """Whether SmartGuard slows numbers down whose messages fail, until an operator says otherwise over the
    API."""

    smart_guard_tick_ms: Annotated[int, Field(ge=1_000, le=3_600_000)] = 10_000
    """How often SmartGuard looks at the fleet, in ms; one look however many dispatchers there are."""

    max_concurrent_jobs: Annotated[int, Field(ge=1, le=1_000)] = 10
    """How many jobs one dispatcher routes at the same time; they take turns."""

    max_retries: Annotated[int, Field(ge=0, le=100)] = 3
    """How often a transient failure is tried again before the task goes to the dead letters."""

    retry_delay_ms: PositiveMilliseconds = 60_000
    """The wait before the first retry, in ms; it doubles with each, held within 1 s and 10 min."""

    poll_interval_ms: Annotated[int, Field(ge=10, le=60_000)] = 1_000
    """The longest an idle loop sleeps, in ms. Loops are woken by events; this bounds the harm of a lost
    wake-up."""

    @field_validator("default_max_delay_ms")
    @classmethod
    def _window_is_not_inverted(cls, value: int, info: ValidationInfo) -> int:
        # A field that is itself bad is absent from info.data and already reported.
        if value < info.data.get("default_min_delay_ms", value):
            raise ValueError("must not be below DEFAULT_MIN_DELAY_MS")
        return value


class People(Section):
    """People who say stop."""

    stop_words: Annotated[str, Field(max_length=4_096)] = ""
    """Words that say stop beside ours, separated by commas. A person whose whole message is such a word, with
    or without a please, is put on the suppression list. Ours are in many languages."""

    stop_confirmation: Annotated[str, Field(max_length=1_000)] = (
        "You are unsubscribed and will get no more messages from us."
    )
    """What a person who says stop is told, once, by the number they wrote to: the only message they still get.
    `none` tells them nothing."""

    @field_validator("stop_confirmation")
    @classmethod
    def _has_no_variables(cls, value: str) -> str:
        if variables(value):
            raise ValueError("has {{…}} in it, and there is nothing to fill it from")
        return "" if value.strip().lower() in ("", "none") else value.strip()
