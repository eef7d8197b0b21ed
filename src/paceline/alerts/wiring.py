"""From settings to the alerts of an orchestrator."""

import httpx

from paceline.alerts.channels import TIMEOUT_S, Channel
from paceline.alerts.loop import Alerts
from paceline.alerts.others import other_channels, split_urls
from paceline.alerts.telegram import Telegram
from paceline.kits.logging import register_secret
from paceline.policy.alert_kinds import Severity
from paceline.policy.alerts import AlertRules
from paceline.settings import Settings
from paceline.store.alerts import AlertBook


def alerts_of(settings: Settings, book: AlertBook, *, holder: str) -> Alerts:
    """Raises ConfigError for an address that is none."""
    rules = AlertRules(
        window_ms=settings.alert_window_minutes * 60_000,
        per_minute=settings.alert_per_minute,
        level=Severity(settings.alert_level),
        name=settings.alert_name,
    )
    return Alerts(book, channels_of(settings), rules, holder=holder)


def channels_of(settings: Settings) -> list[Channel]:
    channels: list[Channel] = []
    if settings.telegram_bot_token is not None and settings.telegram_chat_id is not None:
        token = settings.telegram_bot_token.get_secret_value()
        register_secret(token)
        # No proxy from the environment, which is there for other ways.
        client = httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False)
        channels.append(Telegram(token, settings.telegram_chat_id, api_url=settings.telegram_api_url, client=client))
    if settings.alert_urls is not None:
        urls = settings.alert_urls.get_secret_value()
        for url in split_urls(urls):
            register_secret(url)
        channels.extend(other_channels(urls))
    return channels
