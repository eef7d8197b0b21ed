"""Where alerts go, and sending a test alert, to see that they arrive before one matters."""

import msgspec
from litestar import get, post

from paceline.alerts.loop import Alerts
from paceline.apidoc import KEY
from paceline.domain.errors import Conflict
from paceline.edge import Keys
from paceline.kits.web import Handler


class ChannelAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    channel: str
    """`telegram`, or the service and its place in `ALERT_URLS`: `slack#1`."""
    ok: bool
    reason: str = ""


class AlertTestAnswer(msgspec.Struct, frozen=True):
    ok: bool
    """Whether it reached all of them."""
    channels: list[ChannelAnswer]


class AlertChannels(msgspec.Struct, frozen=True):
    channels: list[str]


def alert_routes(alerts: Alerts, keys: Keys) -> list[Handler]:
    @get("/api/alerts", summary="Where alerts go", guards=[keys.requires("read")], security=KEY, tags=["Alerts"])
    async def alert_channels() -> AlertChannels:
        """The channels that are set up, by name; none: nobody is alerted."""
        return AlertChannels(alerts.channels)

    @post(
        "/api/alerts/test",
        summary="Send a test alert",
        status_code=200,
        guards=[keys.requires("admin")],
        security=KEY,
        tags=["Alerts"],
    )
    async def test_alerts() -> AlertTestAnswer:
        """To every channel that is set up; says of each whether it took it. 409 if there is none."""
        if not alerts.channels:
            raise Conflict("NO_ALERT_CHANNEL", "no channel is set up: see TELEGRAM_BOT_TOKEN and ALERT_URLS")
        told = [ChannelAnswer(name, outcome.ok, outcome.reason) for name, outcome in await alerts.test()]
        return AlertTestAnswer(all(one.ok for one in told), told)

    return [alert_channels, test_alerts]
