"""Messages a minute over the last hour, as bars."""

from collections.abc import Sequence

from nicegui.element import Element

from paceline.client.answers_fleet import Minute


class Minutes(Element, component="minutes.js"):
    def __init__(self) -> None:
        super().__init__()
        self.props["minutes"] = []

    def show(self, minutes: Sequence[Minute]) -> None:
        self.props["minutes"] = [{"at": one.at, "sent": one.sent, "failed": one.failed} for one in minutes]
        self.update()
