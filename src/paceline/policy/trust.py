"""Trust: how much a number may do, from its age. The table is data; `parse` reads it from a policy file.

Neighbours: `settings` finds the file, `pacing`, `hours` and `budget` use the level.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from paceline.domain.errors import ConfigError

DAY_MS = 86_400_000
RPM_MAX = 600
"""The demo preset's rate; the pacer keeps one rolling minute of sends, so this bounds its memory."""
BURST_MAX = 32
"""The pacer keeps at least this many past sends to count a burst in."""
DEMO = "demo"
"""The preset for simulated numbers only: it has no limits."""


class Level(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    rpm: int
    delay_ms: tuple[int, int] | None = None
    max_age_days: float | None = None
    daily_cap: int | None = None
    hours: tuple[int, int] | None = None


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"levels": "level"}):
    """A whole policy file. Hours are `[open, close)` in local time; an absent limit is no limit."""

    name: str
    levels: tuple[Level, ...]
    recipient_hours: tuple[int, int] | None = None
    typing_ms: tuple[int, int] = (1000, 3000)
    jitter: float = 0.2
    burst_limit: int | None = None
    burst_cooldown_ms: int | None = None

    def level(self, created_at_ms: int | None, *, now_ms: int) -> Level:
        """The level of a number of that age; a number without a known age is cold."""
        age_days = 0.0 if created_at_ms is None else (now_ms - created_at_ms) / DAY_MS
        for level in self.levels:
            if level.max_age_days is None or age_days < level.max_age_days:
                return level
        return self.levels[-1]


def parse(data: dict[str, Any]) -> Policy:
    """A policy from TOML's dictionary; every fault is named at once."""
    try:
        policy = msgspec.convert(data, Policy)
    except msgspec.ValidationError as error:
        raise ConfigError([f"policy: {fault}" for fault in _shape_faults(data, Policy)]) from error
    if faults := list(_faults(policy)):
        raise ConfigError([f"policy: {fault}" for fault in faults])
    return policy


def _shape_faults(data: dict[str, Any], struct: type[msgspec.Struct], where: str = "") -> Iterator[str]:
    """msgspec stops at the first wrong type; asked field by field, it names them all."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    yield from (f"{where}{name}: there is no such setting" for name in data if name not in fields)
    for name, field in fields.items():
        value = data.get(name)
        if name not in data:
            if field.required:
                yield f"{where}{name}: is missing"
        elif name == "level" and isinstance(value, list) and all(isinstance(level, dict) for level in value):
            for number, level in enumerate(value, 1):
                yield from _shape_faults(level, Level, f"level {level.get('name', number)}: ")
        else:
            try:
                msgspec.convert(value, field.type)
            except msgspec.ValidationError as error:
                yield f"{where}{name}: {error}"


def _faults(policy: Policy) -> list[str]:
    faults = []
    if not policy.levels:
        faults.append("level: at least one is needed")
    ages = [level.max_age_days for level in policy.levels]
    if any(age is None for age in ages[:-1]) or (ages and ages[-1] is not None):
        faults.append("level: the last one, and only it, has no max_age_days")
    known = [age for age in ages if age is not None]
    if known != sorted(set(known)) or not all(age > 0 for age in known):
        faults.append("level: max_age_days must rise")
    faults += [fault for level in policy.levels for fault in _level_faults(level)]
    if not _is_window(policy.recipient_hours, 24):
        faults.append("recipient_hours: must be [open, close] with 0 <= open < close <= 24")
    if not _is_span(policy.typing_ms):
        faults.append("typing_ms: must be [min, max] with 0 <= min <= max")
    if not 0 <= policy.jitter < 1:
        faults.append("jitter: must be at least 0 and less than 1")
    if policy.burst_limit is not None and not 0 <= policy.burst_limit <= BURST_MAX:
        faults.append(f"burst_limit: must be 0 to {BURST_MAX}")
    if policy.burst_cooldown_ms is not None and policy.burst_cooldown_ms < 0:
        faults.append("burst_cooldown_ms: must not be negative")
    return faults


def _level_faults(level: Level) -> list[str]:
    faults = []
    if not 1 <= level.rpm <= RPM_MAX:
        faults.append(f"level {level.name}: rpm must be 1 to {RPM_MAX}")
    if level.delay_ms is not None and not _is_span(level.delay_ms):
        faults.append(f"level {level.name}: delay_ms must be [min, max] with 0 <= min <= max")
    if level.daily_cap is not None and level.daily_cap < 1:
        faults.append(f"level {level.name}: daily_cap must be at least 1")
    if not _is_window(level.hours, 24):
        faults.append(f"level {level.name}: hours must be [open, close] with 0 <= open < close <= 24")
    return faults


def _is_window(hours: tuple[int, int] | None, end: int) -> bool:
    return hours is None or 0 <= hours[0] < hours[1] <= end


def _is_span(span: tuple[int, int]) -> bool:
    return 0 <= span[0] <= span[1]
