"""Every setting of every service, read from the environment once, at the entry point.

One class, one field per variable, its documentation directly under it (meaning, unit, why this default); the
docs and a test read them from there. `load_settings` names all bad values at once, because being told of them
one restart at a time is a waste of an evening.
"""

import ipaddress
import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from paceline.domain.errors import ConfigError
from paceline.domain.jobs import Strategy
from paceline.domain.text import variables

# Words that have been seen as "keys" on the open internet; compared without case. Shorter ones fall to the
# length.
TRIVIAL_KEYS = frozenset(
    {
        "0123456789abcdef",
        "1234567890123456",
        "api-key-change-me",
        "changemechangeme",
        "passwordpassword",
        "paceline-api-key",
        "secretsecretsecret",
        "your-api-key-here",
        "your_api_key_here",
    }
)

# 16 characters of hex are 64 bits: out of reach for guessing over a network.
MIN_KEY_LENGTH = 16

_BOT_TOKEN = re.compile(r"\d{3,20}:[A-Za-z0-9_-]{20,100}")
_CHAT_ID = re.compile(r"-?\d{1,20}|@[A-Za-z0-9_]{3,40}")

Port = Annotated[int, Field(ge=1, le=65_535)]
Milliseconds = Annotated[int, Field(ge=0, le=86_400_000)]
PositiveMilliseconds = Annotated[int, Field(ge=1, le=86_400_000)]


class SettingsError(ConfigError):
    """The environment holds values we cannot start with. `faults` names each: variable, then what is wrong."""

    def __str__(self) -> str:
        return "bad settings:\n" + "\n".join(f"  {fault}" for fault in self.faults)


class Settings(BaseSettings):
    """The settings of one process; unset and empty variables take the default."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="ignore",
        env_ignore_empty=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
        validate_default=True,
    )

    # Where it listens

    host: str = "127.0.0.1"
    """Address to listen on. Loopback, so that a first run is reachable from this machine only; any other
    address needs a real `API_KEY`."""

    port: Port | None = None
    """Port to listen on. Unset, each service takes its own: gateway 4000, dispatcher 4001, orchestrator
    3000."""

    # Secrets

    api_key: SecretStr | None = None
    """The bootstrap admin key that callers send as `X-API-KEY`. `paceline up` generates one when it is unset.
    Missing, shorter than 16 characters or a well-known word is refused unless the service listens on loopback
    only."""

    webhook_secret: SecretStr | None = None
    """From this each session's own secret is derived (HMAC-SHA256 of the sessionId), with which its worker
    proves who it is. The orchestrator does not start without it; beyond loopback it is held to the same length
    as `API_KEY`. In a worker's environment it is the derived one."""

    auth_secret: SecretStr | None = None
    """From this the key of each session's login is derived (HMAC-SHA256), with which a `baileys` worker encrypts the
    linked device on its volume. Unset, it is `WEBHOOK_SECRET`. Whoever changes it has to link all those numbers again;
    with one of its own, `WEBHOOK_SECRET` can be changed without that."""

    # Request rates

    key_rate_per_minute: Annotated[int, Field(ge=0, le=1_000_000)] = 6_000
    """Requests one API key may make a minute at a gateway process, unless its own record says otherwise; 0 is no limit.
    100 a second is more than a caller needs who sends jobs, and stops one that runs in circles."""

    rate_per_minute: Annotated[int, Field(ge=0, le=10_000_000)] = 60_000
    """Requests all API keys together may make a minute at a gateway process; 0 is no limit. About what one process can
    answer."""

    body_timeout_seconds: Annotated[int, Field(ge=1, le=600)] = 30
    """How long a caller may send nothing in the middle of its body, in seconds; the whole body may take twenty times
    that. Then it is a 408. Longer than any hiccup of a network, shorter than anybody's patience."""

    bodies_at_once_mb: Annotated[int, Field(ge=32, le=65_536)] = 64
    """How many megabytes of bodies a process holds at once; what comes on top is a 503 with `Retry-After`. Decoded, a
    body takes five times its size, and one made to hurt fifteen times: 64 MB, two jobs of the largest size, are at
    most a gigabyte. Bodies under 64 kB are always served."""

    # Neighbours

    redis_url: Annotated[str, Field(repr=False)] = "redis://127.0.0.1:6379"
    """Where the state lives: `redis://`, `rediss://` (TLS) or `unix://`. Redis 6.2 or newer, or Valkey, with
    `appendonly yes` and `maxmemory-policy noeviction`. The default is Redis' own."""

    orchestrator_url: str = "http://localhost:3000"
    """Base address of the orchestrator, for those who call it over HTTP. The default is its own default
    port."""

    send_mode: Literal["api", "redis"] = "api"
    """How a paced task reaches the orchestrator's outbox: `api`, by its HTTP interface, which lets it refuse
    and be watched; or `redis`, in one atomic step, which is faster. Both keep the same promises.
    `paceline up` uses `redis`."""

    orchestrator_api_key: SecretStr | None = None
    """The key a dispatcher shows the orchestrator with `SEND_MODE=api`. Unset, it is `API_KEY`; one of the two
    it needs."""

    session_brain_url: Annotated[str | None, Field(repr=False)] = None
    """If set, `SEND_FAILED` and `SESSION_CONSUMER_ERROR` events are posted to `<url>/event`, best effort."""

    data: Annotated[Path, Field(validation_alias="PACELINE_DATA")] = Path("./data")
    """Directory below which all local state lies: worker volumes, ledgers, and with `paceline up` Redis,
    logs, pid files and generated keys. Below the working directory, so that trying it out leaves nothing
    elsewhere."""

    # Pacing and routing

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

    routing_strategy: Strategy = "sticky"
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

    # People

    stop_words: Annotated[str, Field(max_length=4_096)] = ""
    """Words that say stop beside ours, separated by commas. A person whose whole message is such a word, with
    or without a please, is put on the suppression list. Ours are in many languages."""

    stop_confirmation: Annotated[str, Field(max_length=1_000)] = (
        "You are unsubscribed and will get no more messages from us."
    )
    """What a person who says stop is told, once, by the number they wrote to: the only message they still get.
    `none` tells them nothing."""

    # The send protocol

    lease_ms: Annotated[int, Field(ge=100, le=600_000)] = 120_000
    """How long a worker may hold a claimed task without a word, in ms; after it the outcome counts as
    unknown. Two minutes cover typing, a slow acknowledgement and a reconnect."""

    handoff_ttl_ms: Annotated[int, Field(ge=100, le=86_400_000)] = 60_000
    """How long a task lies in an outbox unclaimed, in ms, before it is withdrawn to the head of its phone's
    queue."""

    liveness_ms: Annotated[int, Field(ge=100, le=86_400_000)] = 60_000
    """After so many ms without a claim, receipt or ping a session no longer counts as connected. A worker
    claims every 20 s, so this is three missed calls."""

    unknown_grace_ms: Milliseconds = 10_000
    """How long a worker looks for receipts of a message whose outcome is unknown, in ms, before it says so.
    Receipts that were held back arrive within seconds of the reconnect."""

    # The watchdog

    monitor_interval_ms: Annotated[int, Field(ge=100, le=600_000)] = 30_000
    """How often workers are looked at, in ms: who is silent, stuck or deaf, who is away, what each takes of its
    host."""

    stuck_ms: Annotated[int, Field(ge=1_000, le=3_600_000)] = 120_000
    """A connected worker that asks for no work for so many ms is restarted, however it pings. It asks every 20 s,
    except while it sends."""

    deaf_ms: Annotated[int, Field(ge=20_000, le=3_600_000)] = 180_000
    """A connected worker that has heard nothing of WhatsApp for so many ms, not even the answer to a keep-alive, is
    restarted. Workers tell with every ping, which is every 15 s."""

    down_ms: Annotated[int, Field(ge=1_000, le=86_400_000)] = 120_000
    """A session that should be connected and is not for so many ms is told (SESSION_DOWN). Reconnecting takes
    seconds."""

    proxy_check_url: Annotated[str, Field(max_length=2_048)] = "https://web.whatsapp.com/"
    """What is asked for through each proxy to see whether it works; any answer will do. Empty: proxies are not checked,
    only operators mark them."""

    proxy_check_interval_ms: Annotated[int, Field(ge=1_000, le=86_400_000)] = 300_000
    """How often each proxy is checked, in ms. Three failures in a row, and it is replaced."""

    # Proxies and profiles

    max_sessions_per_proxy: Annotated[int, Field(ge=1, le=1_000)] = 4
    """How many sessions with a worker share one proxy. More numbers behind one address look like what they are."""

    max_sessions_per_phone: Annotated[int, Field(ge=1, le=4)] = 4
    """How many sessions one number has. WhatsApp links at most four devices to an account."""

    inventory_low: Annotated[int, Field(ge=0, le=100_000)] = 5
    """With fewer proxies that have room, or fewer unused profiles, than this you are told (`INVENTORY_LOW`), once
    until there are enough again; at none you are told in any case. 0: only at none."""

    # Workers and their runner

    runner: Literal["process", "docker", "external"] = "process"
    """Who starts the workers: `process`, on this machine, which outlive the orchestrator; `docker`, a container for
    each session; `external`, somebody else."""

    provisioning_interval_ms: Annotated[int, Field(ge=100, le=600_000)] = 2_000
    """How often what runs is compared with what is wanted, in ms. Changes are acted on at once; this finds what
    died."""

    webhook_url: str | None = None
    """Base address under which workers reach the orchestrator. Unset, it is `ORCHESTRATOR_URL`; in containers
    `localhost` is the worker itself."""

    enable_keep_alive: bool = True
    """Whether idle workers say every 15 s that they live. Without it a quiet number looks like a dead one."""

    worker_grace_ms: Annotated[int, Field(ge=100, le=600_000)] = 10_000
    """How long a worker has to end when asked to, in ms, before it is killed: time for a message in flight to come to
    its end."""

    worker_starts_max: Annotated[int, Field(ge=1, le=1_000)] = 10
    """After so many starts in a row that did not get healthy a session is FAILED until an operator restarts it. The
    pauses between them double from 1 s to 5 min."""

    worker_healthy_ms: Annotated[int, Field(ge=0, le=3_600_000)] = 60_000
    """A worker that was connected, or showed its code, and lived so many ms was healthy: when it ends, the next starts
    at once and the count begins anew. One that dies sooner every time is a crash loop, however often it connected."""

    worker_orphan_ms: Milliseconds = 0
    """After so many ms without an answer of the orchestrator a worker ends by itself; 0 is never. `paceline up` uses
    30 s, so that killing it leaves nothing behind."""

    stop_workers: bool = False
    """Whether the orchestrator ends its workers when it is asked to stop, as `paceline up` wants. Else they go on, and
    the next orchestrator finds them."""

    fleet_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")] = "paceline"
    """Which containers are ours, as a label: two installations on one Docker engine need two names."""

    worker_image: Annotated[str, Field(min_length=1, max_length=255)] = "whatsapp-worker-image:1.0.0"
    """The image of a worker's container."""

    baileys_worker_image: Annotated[str, Field(min_length=1, max_length=255)] = "whatsapp-worker-baileys:1.0.0"
    """The image of the container of a `baileys` worker, which is a program for Node.js."""

    baileys_path: Path | None = None
    """Where the built `worker-baileys` lies, for `RUNNER=process`. Unset, it is that of the repository this runs from.
    Built by `tools/ensure-node`."""

    whatsapp_url: str | None = None
    """For tests: the server that `baileys` workers speak to instead of WhatsApp's, `wss://`, or `ws://` on loopback.
    `{session}` and `{phone}` in it are filled in. `paceline up --fake-whatsapp` sets it."""

    whatsapp_version: Annotated[str | None, Field(pattern=r"^\d{1,6}\.\d{1,6}\.\d{1,12}$")] = None
    """The version of WhatsApp's web client that `baileys` workers say they are, such as `2.3000.1`, for when the
    built-in one is answered with 405."""

    worker_network: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")] = "paceline-workers"
    """The Docker network that workers are on, and nobody else but the orchestrator. Made if it is not there."""

    worker_user: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,9}(:[0-9]{1,10})?$")] = "10001:10001"
    """User and group of the processes in a worker's container, as numbers; never root. The worker's volume must be
    theirs."""

    worker_memory_mb: Annotated[int, Field(ge=32, le=65_536)] = 512
    """Memory a worker's container may use, in MB, without swap. A worker needs about 60, one with a WhatsApp client of
    its own about 200."""

    worker_pids: Annotated[int, Field(ge=8, le=10_000)] = 128
    """Processes and threads a worker's container may have."""

    worker_data_path: Path | None = None
    """`PACELINE_DATA` as the Docker engine sees it. Unset, the same path: an orchestrator in a container has to say
    where its data lies on the host."""

    docker_host: Annotated[str, Field(min_length=1, max_length=1_024)] = "unix:///var/run/docker.sock"
    """Where the Docker engine answers: `unix://`, `tcp://` or `http(s)://`. Whoever may use it is root on its host."""

    # Media

    media_max_bytes: Annotated[int, Field(ge=1_024, le=104_857_600)] = 16_777_216
    """The largest file that is taken, in bytes, uploaded or fetched. 16 MB is what WhatsApp takes as a picture."""

    media_kept_days: Annotated[int, Field(ge=1, le=3_650)] = 30
    """How long a file is kept that no open job needs, in days from its last use. Then it is removed from
    `$PACELINE_DATA/media`. Messages are kept as long."""

    media_max_total_mb: Annotated[int, Field(ge=1, le=104_857_600)] = 10_240
    """How many megabytes the files in `$PACELINE_DATA/media` may take together; an upload beyond that is a 429
    `MEDIA_FULL` until others are removed. 10 GB are 640 of the largest, and leave a small disk room for Redis, which
    stops everything when it cannot write."""

    # Events and webhooks

    events_kept: Annotated[int, Field(ge=1_000, le=10_000_000)] = 100_000
    """How many events are kept for webhooks that are behind and for `Last-Event-ID`, the newest first; about 100
    bytes each. A webhook that falls further behind than this loses events, with an incident."""

    event_inbound_text: bool = False
    """Whether `message.received` carries what the person wrote. It is not kept anywhere else, but it lies in the
    stream of events until that many newer ones have come."""

    event_streams: Annotated[int, Field(ge=1, le=10_000)] = 100
    """How many `GET /v1/events` one gateway process serves at once."""

    webhook_allow_private: bool = False
    """Whether webhooks may be on a private network or on this machine. Only for those who hold all admin keys
    themselves: whoever may add a webhook can then make the gateway call what only it can reach."""

    # Alerts

    telegram_bot_token: SecretStr | None = None
    """The token BotFather gave you for the bot that alerts you. With `TELEGRAM_CHAT_ID` this switches Telegram on."""

    telegram_chat_id: Annotated[str | None, Field(max_length=64)] = None
    """The chat the bot writes to: a number (groups begin with `-`), or `@name` of a public channel."""

    telegram_api_url: str = "https://api.telegram.org"
    """Base address of the Bot API. Another one only for a Bot API server of your own, or a stand-in in tests."""

    alert_urls: SecretStr | None = None
    """Other channels as apprise URLs (Slack, mail and some hundred others), separated by spaces, new lines or commas.
    They hold credentials and are treated as secrets."""

    alert_name: Annotated[str, Field(min_length=1, max_length=64)] = "Paceline"
    """What every alert begins with, so that you can tell several installations apart."""

    alert_level: Literal["info", "warning", "critical"] = "info"
    """The least severe alert that is sent. `info` are notes that something is well again."""

    alert_window_minutes: Annotated[int, Field(ge=1, le=1_440)] = 10
    """What happens again within so many minutes is counted and told in one digest. A person reads a digest every ten
    minutes; a flood nobody reads."""

    alert_per_minute: Annotated[int, Field(ge=1, le=60)] = 10
    """Alerts that go out a minute at most, over all kinds; the rest is told in digests. A third of them are kept for
    critical ones. Telegram lets a bot write 20 a minute to a group."""

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

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe line that is logged."""

    failpoints: Annotated[Path | None, Field(validation_alias="PACELINE_FAILPOINTS")] = None
    """For crash tests only: a directory in which a file named like a failpoint kills the process that passes
    it."""

    @property
    def audit_path(self) -> Path:
        return self.db_path or self.data / "orchestrator.sqlite"

    @property
    def baileys_folder(self) -> Path:
        beside_us = Path(__file__).resolve().parents[2] / "worker-baileys"
        return self.baileys_path.expanduser().absolute() if self.baileys_path else beside_us

    @field_validator("log_level", "send_mode", "routing_strategy", "alert_level", "runner", mode="before")
    @classmethod
    def _ignore_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @field_validator("redis_url")
    @classmethod
    def _redis_scheme(cls, value: str) -> str:
        if not value.startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("must start with redis://, rediss:// or unix://")
        return value

    @field_validator("whatsapp_url")
    @classmethod
    def _websocket_scheme(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("wss://", "ws://127.0.0.1", "ws://localhost", "ws://[::1]")):
            raise ValueError("must start with wss://, or with ws:// on loopback")
        return value

    @field_validator("orchestrator_url", "session_brain_url", "telegram_api_url", "webhook_url")
    @classmethod
    def _http_scheme(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("must start with http:// or https://")
        return value and value.rstrip("/")

    @field_validator("stop_confirmation")
    @classmethod
    def _has_no_variables(cls, value: str) -> str:
        if variables(value):
            raise ValueError("has {{…}} in it, and there is nothing to fill it from")
        return "" if value.strip().lower() in ("", "none") else value.strip()

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

    @field_validator("default_max_delay_ms")
    @classmethod
    def _window_is_not_inverted(cls, value: int, info: ValidationInfo) -> int:
        # A field that is itself bad is absent from info.data and already reported.
        if value < info.data.get("default_min_delay_ms", value):
            raise ValueError("must not be below DEFAULT_MIN_DELAY_MS")
        return value

    @field_validator("api_key")
    @classmethod
    def _key_fits_the_address(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if "host" not in info.data or is_loopback(info.data["host"]):
            return value
        if value is None:
            raise ValueError(f"is required when HOST is not a loopback address ({info.data['host']})")
        return _not_trivial(value)

    @field_validator("webhook_secret", "auth_secret")
    @classmethod
    def _secret_fits_the_address(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is None or "host" not in info.data or is_loopback(info.data["host"]):
            return value
        return _not_trivial(value)


class OrchestratorSettings(Settings):
    """What the orchestrator cannot do without."""

    @field_validator("webhook_secret")
    @classmethod
    def _secret_is_there(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            raise ValueError("is required; the secret of each worker is derived from it")
        return value


class DispatcherSettings(Settings):
    """What a dispatcher cannot do without."""

    @field_validator("orchestrator_api_key")
    @classmethod
    def _has_a_key_to_show(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        # Fields that are themselves bad are absent, and already reported.
        if value is None and info.data.get("send_mode") == "api" and info.data.get("api_key", "bad") is None:
            raise ValueError("is required with SEND_MODE=api (or API_KEY)")
        return value


class UpSettings(Settings):
    """What `paceline up` reads on top: where its services listen. `PORT` itself is ignored there."""

    gateway_port: Port = 4000
    """Port of the public API."""

    dispatcher_port: Port = 4001
    """Port of the first dispatcher; with `--dispatchers N` the others take the next ones."""

    orchestrator_port: Port = 3000
    """Port of the orchestrator, which workers call."""

    fake_whatsapp_port: Annotated[int, Field(ge=1, le=65_533)] = 8090
    """First of three ports of the fake WhatsApp (`--fake-whatsapp`): its socket, its admin API, its media. On loopback
    always."""

    dashboard_port: Port = 8080
    """Port kept for the dashboard. There is no dashboard yet, so nothing listens there."""


AnySettings = TypeVar("AnySettings", bound=Settings)


def load_settings() -> Settings:
    """Read the environment; raise `SettingsError` with every problem in it."""
    return load(Settings)


def load(kind: type[AnySettings], **overrides: object) -> AnySettings:
    """The same for a given class; `overrides` are fields that win over the environment."""
    try:
        return kind(**overrides)  # type: ignore[arg-type]  # pydantic checks and reports them like the rest
    except ValidationError as error:
        # Without `from`: the library's error shows the values, and a value may be a secret.
        faults = [_describe(kind, entry["loc"], entry["msg"]) for entry in error.errors(include_input=False)]
        raise SettingsError(faults) from None


def read_policy(name: str) -> dict[str, Any]:
    """The policy of that name or path as TOML's dictionary, for `policy.trust.parse`.

    A word is one of our presets; what has a slash or ends in `.toml` is a file.
    """
    presets = resources.files("paceline") / "policy" / "presets"
    is_file = "/" in name or name.endswith(".toml")
    source = Path(name).expanduser() if is_file else presets / f"{name}.toml"
    if not source.is_file():
        known = ", ".join(sorted(entry.name.removesuffix(".toml") for entry in presets.iterdir()))
        raise SettingsError([f"PACELINE_POLICY: no policy {name!r}; use one of {known}, or the path of a .toml file"])
    try:
        return tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError([f"PACELINE_POLICY: {name}: {error}"]) from error


def env_name(field: str, kind: type[Settings] = Settings) -> str:
    """The environment variable of a field."""
    alias = kind.model_fields[field].validation_alias
    return alias if isinstance(alias, str) else field.upper()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address. A name we cannot judge counts as reachable."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _not_trivial(key: SecretStr) -> SecretStr:
    if len(key) < MIN_KEY_LENGTH or _is_trivial(key.get_secret_value()):
        raise ValueError(
            f"is too easy to guess for a service that listens beyond loopback; "
            f"use at least {MIN_KEY_LENGTH} random characters"
        )
    return key


def _is_trivial(key: str) -> bool:
    return key.lower() in TRIVIAL_KEYS or len(set(key)) < 4


def _describe(kind: type[Settings], location: tuple[int | str, ...], message: str) -> str:
    field = str(location[0])
    name = env_name(field, kind) if field in kind.model_fields else field.upper()
    return f"{name}: {message.removeprefix('Value error, ')}"
