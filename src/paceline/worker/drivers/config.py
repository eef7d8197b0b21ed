"""How the simulated WhatsApp behaves, and the file that says so: `$PACELINE_DATA/simulated.toml`.

    read_ratio = 0.5                      # for every session
    not_on_whatsapp = ["447700900123"]

    [sessions.sim-1]                      # for one session, on top of the above
    lost_ack = 0.2
    dedupe = false

The file is read again whenever it changes, so a failure can be switched on and off under a running worker. A
file with a fault in it changes nothing: the last good behaviour stays, and the log names every bad key.
"""

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
import structlog
from msgspec import Meta

from paceline.domain.errors import ConfigError

log = structlog.stdlib.get_logger(__name__)

Probability = Annotated[float, Meta(ge=0, le=1)]
Milliseconds = Annotated[int, Meta(ge=0, le=24 * 3600 * 1000)]
Window = tuple[Milliseconds, Milliseconds]
Every = Annotated[int, Meta(ge=0)]


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """One session's simulated WhatsApp. The defaults are a healthy network and attentive recipients."""

    dedupe: bool = True
    """An id that was accepted before is acknowledged but not delivered again, as the real server is believed to
    do. Either way the ledger records it with `"repeat": true`."""

    ack_delay_ms: Window = (50, 200)
    """From acceptance to the server's ack, uniform."""
    slow_ack_delay_ms: Window = (20_000, 60_000)
    """The same for a slow ack."""
    delivered_delay_ms: Window = (300, 3_000)
    """From acceptance to the delivery receipt; short times are likelier."""
    read_delay_ms: Window = (2_000, 60_000)
    """From delivery to the read receipt; short times are likelier."""
    delivered_ratio: Probability = 1.0
    """Share of recipients whose phone is on. The rest never gives a receipt."""
    read_ratio: Probability = 0.7
    """Share of delivered messages that are read with receipts switched on."""
    reply_ratio: Probability = 0.0
    """Share of read messages that are answered."""
    reply_text: str = "ok"
    """What is answered; "stop" makes the recipients opt out."""

    rate_limit: Probability = 0.0
    """Probability that a message is refused with RATE_LIMIT."""
    not_registered: Probability = 0.0
    """Probability that a message is refused with NOT_ON_WHATSAPP. See also `not_on_whatsapp`."""
    restricted: Probability = 0.0
    """Probability that a message is refused with RESTRICTED_463, and no limit is stated."""
    time_lock: Probability = 0.0
    """Probability that a message to somebody the account has no chat with is refused with RESTRICTED_463 and locks the
    account: for `time_lock_ms` every such message is refused. The server states the lock and its end, and again at
    every connect while it lasts."""
    lost_ack: Probability = 0.0
    """Probability that a message is accepted and its ack never comes."""
    slow_ack: Probability = 0.0
    """Probability that a message is accepted and its ack takes `slow_ack_delay_ms`."""
    disconnect_before: Probability = 0.0
    """Probability that the connection ends (428) before the message is accepted."""
    disconnect_after: Probability = 0.0
    """Probability that the connection ends (428) after the message was accepted, before its ack."""
    ban: Probability = 0.0
    """Probability that a message gets the account banned (403). The message is not accepted; the ban lasts until
    `<data>/ledger/<sessionId>.banned` is removed."""

    not_on_whatsapp: frozenset[str] = frozenset()
    """Recipients (digits) that are always refused with NOT_ON_WHATSAPP."""
    restricted_463: frozenset[str] = frozenset()
    """Recipients (digits) that are always refused with RESTRICTED_463."""
    rate_limited: frozenset[str] = frozenset()
    """Recipients (digits) that are always refused with RATE_LIMIT."""
    lose_ack_every: Every = 0
    """Every n-th message since the worker's start is accepted and its ack lost; 0 = none."""
    disconnect_every: Every = 0
    """The connection ends before every n-th message since the worker's start is accepted; 0 = none."""
    rate_limit_every: Every = 0
    """Every n-th message since the worker's start is refused with RATE_LIMIT; 0 = none."""

    time_lock_ms: Milliseconds = 3_600_000
    """How long a lock lasts, from the message that caused it."""
    new_chats: Every = 0
    """With how many people the account may start a chat per cycle; one more is refused with RESTRICTED_463, and the
    server states the cap and the end of the cycle. 0 = no limit."""
    new_chats_cycle_ms: Milliseconds = 24 * 3600 * 1000
    """How long a cycle lasts, from its first new chat."""

    poison: frozenset[str] = frozenset()
    """Recipients (digits) whose message takes the worker down: its process dies by SIGKILL when it is about to write
    to one of them, every time. The message is not accepted."""

    linking: Literal["at_once", "qr", "blocked"] = "at_once"
    """How a session that is not linked gets linked: by itself; by somebody who scans its QR code or types its
    pairing code (`POST /api/sessions/<sessionId>/simulated/scan` stands for both); or not at all, because the platform
    refuses."""
    qr_ms: Annotated[int, Meta(ge=1_000, le=24 * 3600 * 1000)] = 20_000
    """How long a QR code is shown before the next one."""
    qr_codes: Every = 6
    """After so many the server gives up (408, QR_ENDED), and the session waits for a start; 0 = it goes on for ever."""

    deaf: bool = False
    """The connection stays open and nothing comes through it any more: no ack, no receipt, no keep-alive. What is sent
    is accepted all the same."""
    offline: bool = False
    """No network: a running connection ends (408) and none can be opened."""
    banned: bool = False
    """The account is banned (403), whatever happened before."""


_PROBABILITIES = (
    "rate_limit",
    "not_registered",
    "restricted",
    "time_lock",
    "lost_ack",
    "slow_ack",
    "disconnect_before",
    "disconnect_after",
    "ban",
)
_TYPES = get_type_hints(Behaviour, include_extras=True)


def behaviour_for(session_id: str, table: Mapping[str, Any]) -> Behaviour:
    """The behaviour of one session. Raises ConfigError with every fault of the whole file, so that a slip in
    another session's table is not found only when that session starts."""
    sessions = table.get("sessions", {})
    common = {key: value for key, value in table.items() if key != "sessions"}
    faults = _faults(common, "") + _faults_of_sessions(sessions)
    if faults:
        raise ConfigError(faults)
    merged = _converted(common) | _converted(sessions.get(session_id, {}))
    behaviour = Behaviour(**merged)
    if excess := _excess(behaviour):
        raise ConfigError([excess])
    return behaviour


class BehaviourFile:
    """The file of one `$PACELINE_DATA`, as it stands now for one session."""

    def __init__(self, path: Path, session_id: str) -> None:
        self._path = path
        self._session_id = session_id
        self._seen: tuple[int, int] | None = None
        self._good = Behaviour()

    def current(self) -> Behaviour:
        """The last good behaviour; looks at the file's time and reads it if that changed."""
        stamp = self._stamp()
        if stamp != self._seen:
            self._seen = stamp
            self._read(exists=stamp is not None)
        return self._good

    def _stamp(self) -> tuple[int, int] | None:
        try:
            stat = self._path.stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size

    def _read(self, *, exists: bool) -> None:
        try:
            table = tomllib.loads(self._path.read_text()) if exists else {}
            self._good = behaviour_for(self._session_id, table)
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ConfigError) as error:
            log.error("bad simulated.toml; the last good one stays", path=str(self._path), faults=str(error))


def _faults_of_sessions(sessions: object) -> list[str]:
    if not isinstance(sessions, dict):
        return ["sessions: must be tables, as in [sessions.sim-1]"]
    return [
        fault
        for name, table in sessions.items()
        for fault in (
            _faults(table, f"sessions.{name}.") if isinstance(table, dict) else [f"sessions.{name}: must be a table"]
        )
    ]


def _faults(table: Mapping[str, Any], prefix: str) -> list[str]:
    return [fault for key, value in table.items() if (fault := _fault(key, value, prefix))]


def _fault(key: str, value: object, prefix: str) -> str | None:
    if key not in _TYPES:
        close = difflib.get_close_matches(key, _TYPES, n=1)
        return f"{prefix}{key}: unknown key" + (f" (did you mean {close[0]}?)" if close else "")
    try:
        converted = msgspec.convert(value, _TYPES[key])
    except msgspec.ValidationError as error:
        return f"{prefix}{key}: {error}"
    if key.endswith("_delay_ms") and converted[0] > converted[1]:
        return f"{prefix}{key}: the first number must not be larger than the second"
    return None


def _converted(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: msgspec.convert(value, _TYPES[key]) for key, value in table.items()}


def _excess(behaviour: Behaviour) -> str | None:
    total = sum(getattr(behaviour, name) for name in _PROBABILITIES)
    if total <= 1 + 1e-9:
        return None
    return f"{' + '.join(_PROBABILITIES)}: together {total:g}, more than 1"
