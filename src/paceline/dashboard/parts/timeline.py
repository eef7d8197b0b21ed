"""A number's pacing on a line: sends, slots, rests, hours."""

from typing import Any

import msgspec
from nicegui.element import Element

from paceline.client.answers_fleet_numbers import Pacing


class Timeline(Element, component="timeline.js"):
    def __init__(self) -> None:
        super().__init__()
        self.props["pacing"] = _EMPTY

    def show(self, pacing: Pacing) -> None:
        self.props["pacing"] = msgspec.to_builtins(pacing)
        self.update()


_EMPTY: dict[str, Any] = {
    "now": 0, "sends": [], "slots": [], "nextSlotAt": None, "busy": False, "burstCount": 0, "burstLimit": 0,
    "burstCooldownMs": 0, "restriction": {"kind": "NONE", "until": None}, "open": None,
}  # fmt: skip
