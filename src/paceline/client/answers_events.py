"""An event, live or from a webhook. Neighbours: `streaming` reads the live ones, `verifying` those that are posted."""

from typing import Any

import msgspec

GAP = "gap"
"""The type of what a live stream says when events after the given one are no longer kept."""


class Told(msgspec.Struct, frozen=True):
    """The body that both carry."""

    type: str
    timestamp: str
    data: dict[str, Any]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    """Live: the `Last-Event-ID` to go on after it. Of a webhook: its `webhook-id`; drop one that you have seen."""
    type: str
    timestamp: str
    """ISO 8601; `data["at"]` is the same moment in milliseconds."""
    data: dict[str, Any]

    @property
    def job_id(self) -> str | None:
        return self.data.get("jobId")

    @property
    def message_id(self) -> str | None:
        return self.data.get("messageId")
