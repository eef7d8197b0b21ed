"""Who is alerted, over what, and how often."""

import re
from typing import Annotated, Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from paceline.settings.section import AnyCase, HttpUrl, Section

_BOT_TOKEN = re.compile(r"\d{3,20}:[A-Za-z0-9_-]{20,100}")
_CHAT_ID = re.compile(r"-?\d{1,20}|@[A-Za-z0-9_]{3,40}")


class Alerting(Section):
    """Telegram and other channels."""

    telegram_bot_token: SecretStr | None = None
    """The token BotFather gave you for the bot that alerts you. With `TELEGRAM_CHAT_ID` this switches Telegram on."""

    telegram_chat_id: Annotated[str | None, Field(max_length=64)] = None
    """The chat the bot writes to: a number (groups begin with `-`), or `@name` of a public channel."""

    telegram_api_url: HttpUrl = "https://api.telegram.org"
    """Base address of the Bot API. Another one only for a Bot API server of your own, or a stand-in in tests."""

    alert_urls: SecretStr | None = None
    """Other channels as apprise URLs (Slack, mail and some hundred others), separated by spaces, new lines or commas.
    They hold credentials and are treated as secrets."""

    alert_name: Annotated[str, Field(min_length=1, max_length=64)] = "Paceline"
    """What every alert begins with, so that you can tell several installations apart."""

    alert_level: Annotated[Literal["info", "warning", "critical"], AnyCase] = "info"
    """The least severe alert that is sent. `info` are notes that something is well again."""

    alert_window_minutes: Annotated[int, Field(ge=1, le=1_440)] = 10
    """What happens again within so many minutes is counted and told in one digest. A person reads a digest every ten
    minutes; a flood nobody reads."""

    alert_per_minute: Annotated[int, Field(ge=1, le=60)] = 10
    """Alerts that go out a minute at most, over all kinds; the rest is told in digests. A third of them are kept for
    critical ones. Telegram lets a bot write 20 a minute to a group."""

    @field_validator("telegram_bot_token")
    @classmethod
    def _token_is_one(cls, value: SecretStr | None) -> SecretStr | None:
        # It becomes part of a path; and half a token copied is the usual mistake.
        if value is not None and not _BOT_TOKEN.fullmatch(value.get_secret_value()):
            raise ValueError("is not a bot token; it looks like 123456789:AbC… and BotFather has it")
        return value

    @field_validator("telegram_chat_id")
    @classmethod
    def _chat_goes_with_token(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and not _CHAT_ID.fullmatch(value):
            raise ValueError("is neither a number nor @name")
        if "telegram_bot_token" in info.data and (value is None) != (info.data["telegram_bot_token"] is None):
            raise ValueError("and TELEGRAM_BOT_TOKEN go together; one of them is missing")
        return value
