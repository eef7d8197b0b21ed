"""A job that is being written: what is there so far, what is wrong with it, and what the gateway would be asked.

No I/O and no elements. Neighbours: `audience` reads the recipients, `pages.compose` is the form.
"""

from dataclasses import dataclass, field
from typing import Any

from paceline.client.requests_sending import JobOptions
from paceline.dashboard.audience import Audience
from paceline.domain.text import TEXT_LIMIT, is_blank, variables

SPREAD_LIMIT = 43_200
"""A month in minutes, as the gateway has it."""
VALIDITY_LIMIT_HOURS = 8_760


@dataclass
class Draft:
    audience: Audience | None = None
    mode: str = "message"
    text: str = ""
    media_ref: str = ""
    tags: str = ""
    phone: str = ""
    priority: str = "1"
    send_at: int | None = None
    send_at_fault: str = ""
    """Why the time that was typed is not in `send_at`: only the viewer's browser can read it."""
    spread_minutes: str = ""
    validity_hours: str = ""
    faults: dict[str, str] = field(default_factory=dict)

    def check(self) -> bool:
        """Whether it can be planned; what cannot be is in `faults`, by field. The gateway has the last word."""
        found = {
            "audience": "" if self.audience else "Nobody to write to yet.",
            "text": self._text_fault(),
            "file": "" if self.mode == "message" or self.media_ref else f"Choose the {self.mode} to send.",
            "send_at": self.send_at_fault,
            "spread_minutes": _number_fault(self.spread_minutes, SPREAD_LIMIT),
            "validity_hours": _number_fault(self.validity_hours, VALIDITY_LIMIT_HOURS),
        }
        self.faults = {name: why for name, why in found.items() if why}
        return not self.faults

    def people(self) -> dict[str, Any]:
        """The recipients, as the client's calls take them."""
        assert self.audience is not None
        return {"csv": self.audience.csv} if self.audience.csv else {"contacts": self.audience.numbers}

    def options(self) -> JobOptions:
        options = JobOptions(text=self.text, priority=int(self.priority))
        if self.mode != "message":
            options["mode"] = self.mode  # type: ignore[typeddict-item]
            options["media_ref"] = self.media_ref
        if tags := [tag.strip() for tag in self.tags.split(",") if tag.strip()]:
            options["tags"] = tags
        if self.phone.strip():
            options["phone"] = self.phone.strip()
        if self.send_at is not None:
            options["send_at"] = self.send_at
        if int(self.spread_minutes or 0):
            options["spread_minutes"] = int(self.spread_minutes)
        if int(self.validity_hours or 0):
            options["validity_seconds"] = int(self.validity_hours) * 3_600
        return options

    def _text_fault(self) -> str:
        if is_blank(self.text) and self.mode == "message":
            return "Nothing to say yet."
        if len(self.text) > TEXT_LIMIT:
            return f"{len(self.text):,} characters; a message has at most {TEXT_LIMIT:,}."
        known = self.audience.columns if self.audience else ()
        missing = sorted(variables(self.text) - set(known)) if self.audience else []
        if not missing:
            return ""
        named = ", ".join(f"{{{{{name}}}}}" for name in missing)
        if not known:
            return f"{named} has no value: plain numbers bring none. Use a table with such a column."
        return f"{named} is no column of the list. It has: {', '.join(known)}."


def _number_fault(words: str, most: int) -> str:
    if not words.strip():
        return ""
    is_number = words.strip().isascii() and words.strip().isdigit()
    return "" if is_number and int(words) <= most else f"A whole number up to {most:,}."
