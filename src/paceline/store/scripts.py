"""Loads the Lua verbs and puts before each what Python and Lua share: keys, states and configuration.

`lua/<verb>.lua` is one verb; `lua/lib/*.lua` are steps that several verbs share, in the order of their numbers. The
generated head is what keeps one source of truth: key names come from `keys`, allowed moves from `domain.states`.
A verb carries only the steps and keys it uses: Redis makes every function of a script anew at each call, and making
them all costs more than most verbs do.
"""

import hashlib
import re
from functools import lru_cache
from importlib.resources import files

import msgspec

from paceline.domain import sessions, states
from paceline.domain.events import BYTE_EVENT
from paceline.policy.restriction import BREAKER_PHONES, BREAKER_WINDOW_MS, CHATS_KEPT
from paceline.policy.routing import STICKY_MS, WARM_MS
from paceline.policy.trust import BURST_MAX
from paceline.store import keys

CHUNK = 1_000
"""Contacts in one list: small enough that no command over it stalls Redis, large enough that 100,000 are a hundred
keys."""
PERSON_KEPT = 1_000
"""Messages remembered per person: years of them, for anybody who agreed to be written to."""

AUDIT_KEPT = 200_000
"""Audit facts that wait for a database that takes none: weeks of an operator's work, some 50 MB at most."""
INCIDENTS_KEPT = 10_000
"""Incidents for those who follow them: an hour of a fleet in which everything fails."""

CHATS_LOOKED = 50
"""Messages of a person that are looked at for who wrote to them; their last fifty tell."""

INBOUND_KEPT = 1_000
"""Ids of received messages remembered per number, to tell each once: far more than a worker repeats at a time."""


class ScriptConfig(msgspec.Struct, frozen=True):
    """What the scripts need to know that is the same for every call."""

    lead_ms: int = 4_000
    stats_ttl: int = 86_400
    job_ttl: int = 90 * 86_400
    message_ttl: int = 30 * 86_400
    session_days_ttl: int = 30 * 86_400
    """Of what a session did on a day."""
    staging_ttl: int = 3_600
    dead_letters: int = 100_000
    global_rpm: int = 0
    """0 is no ceiling for the whole fleet."""
    frequency_cap: int = 0
    """0 is no cap on how many messages a person gets within `frequency_window` ms."""
    frequency_window: int = 86_400_000
    events_kept: int = 100_000
    """Events in the stream; the oldest make room (in whole blocks of Redis, so some more are kept)."""
    chats_kept: int = CHATS_KEPT
    """People a number remembers to have heard from; who has not written for longest is forgotten."""


class Script(msgspec.Struct, frozen=True):
    name: str
    source: str
    sha: str


def load(config: ScriptConfig, mutate: dict[str, tuple[str, str]] | None = None) -> dict[str, Script]:
    """Every verb, ready to run. `mutate` replaces one text in one file: how the World plants a bug."""
    return _load(config, tuple(sorted((mutate or {}).items())))


@lru_cache(maxsize=8)
def _load(config: ScriptConfig, changes: tuple[tuple[str, tuple[str, str]], ...]) -> dict[str, Script]:
    mutate = dict(changes)
    root = files("paceline.store") / "lua"
    library = "\n".join(
        _read(path.name, path.read_text(), mutate)
        for path in sorted((root / "lib").iterdir(), key=lambda path: path.name)
        if path.name.endswith(".lua")
    )
    steps = _steps(_generated(config) + library)
    verbs = {}
    for path in sorted(root.iterdir(), key=lambda path: path.name):
        if path.name.endswith(".lua"):
            source = _with_what_it_uses(_read(path.name, path.read_text(), mutate), steps)
            name = path.name.removesuffix(".lua")
            verbs[name] = Script(name, source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())
    return verbs


def _read(name: str, text: str, mutate: dict[str, tuple[str, str]]) -> str:
    if name not in mutate:
        return text
    old, new = mutate[name]
    if text.count(old) != 1:
        raise ValueError(f"{name} has {text.count(old)} places to change, not one: {old!r}")
    return text.replace(old, new)


_STEP = re.compile(r"^local (?:function )?([\w, ]+)", re.MULTILINE)
_WORD = re.compile(r"\w+")
_COMMENT = re.compile(r"--.*")
_KEY = re.compile(r"\bK\.(\w+)")


def _steps(library: str) -> list[tuple[set[str], str]]:
    """The library cut at its definitions: the names each defines, and its text."""
    cuts = [*_STEP.finditer(library)]
    ends = [cut.start() for cut in cuts[1:]] + [len(library)]
    return [(set(_WORD.findall(cut[1])), library[cut.start() : end]) for cut, end in zip(cuts, ends, strict=True)]


def _with_what_it_uses(verb: str, steps: list[tuple[set[str], str]]) -> str:
    """The verb behind the steps it needs, directly or through others. A step uses only what stands before it."""
    wanted, kept = {"a", *_words(verb)}, [verb]
    for names, text in reversed(steps):
        if names & wanted:
            kept.append(text)
            wanted.update(_words(text))
    used = sorted(frozenset().union(*map(_keys_of, kept)))
    builders = ",\n".join(f"  {name} = {_builder(name)}" for name in used)
    return f"local K = {{\n{builders}\n}}\n{''.join(reversed(kept))}"


# Of all that is put together nearly nothing differs from one configuration, or one planted bug, to the next.
_remembered = lru_cache(maxsize=2_000)


@_remembered
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(_COMMENT.sub("", text)))


@_remembered
def _keys_of(text: str) -> frozenset[str]:
    return frozenset(_KEY.findall(text))


def _generated(config: ScriptConfig) -> str:
    moves = ", ".join(f"{state} = '{moves}'" for state, moves in states.NEXT.items())
    shared = {
        **msgspec.to_builtins(config),
        "chunk": CHUNK,
        "sends_kept": BURST_MAX,
        "sticky_ttl": STICKY_MS // 1000 + 3_600,
        "breaker_phones": BREAKER_PHONES,
        "breaker_window": BREAKER_WINDOW_MS,
        "person_kept": PERSON_KEPT,
        "warm_ms": WARM_MS,
        "inbound_kept": INBOUND_KEPT,
        "chats_looked": CHATS_LOOKED,
        "audit_kept": AUDIT_KEPT,
        "incidents_kept": INCIDENTS_KEPT,
    }
    steps = ", ".join(f"{byte} = {number}" for number, byte in enumerate(states.WENT_OUT, 1))
    told = ", ".join(f"{byte} = '{event}'" for byte, event in BYTE_EVENT.items())
    # What goes into commands and nothing else is text already: Redis writes a number out anew each time.
    constants = ", ".join(
        f"{name} = '{value}'" if name.endswith("_ttl") else f"{name} = {value}" for name, value in shared.items()
    )
    return (
        f"local NEXT = {{{moves}}}\n"
        f"local EVENT = {{{told}}}\n"
        f"local WENT_OUT, TERMINAL = '{states.WENT_OUT}', '{states.TERMINAL}'\n"
        f"local STEP = {{{steps}}}\n"
        f"local WISH = {{{_wishes()}}}\n"
        f"local C = {{wake_channel = '{keys.WAKE_CHANNEL}', {constants}}}\n"
    )


def _wishes() -> str:
    """The part of the table of sessions that scripts walk."""
    rows = []
    for wish in (*sessions.WISHES, sessions.LOGOUT_DONE):
        change = sessions.TABLE[wish]
        fields = [f"newWorker = {str(change.new_worker).lower()}"]
        fields += [f"authorisation = '{change.authorisation}'"] if change.authorisation else []
        fields += [f"connection = '{change.connection}'"] if change.connection else []
        fields += [f"desired = '{change.desired}'"] if change.desired else []
        rows.append(f"{wish} = {{{', '.join(fields)}}}")
    return ", ".join(rows)


@_remembered
def _builder(name: str) -> str:
    parts = keys.ALL[name].template.split("{}")
    names = [f"p{number}" for number in range(1, len(parts))]
    text = f"'{parts[0]}'"
    for part, rest in zip(names, parts[1:], strict=True):
        text += f" .. {part}" + (f" .. '{rest}'" if rest else "")
    return f"function({', '.join(names)}) return {text} end"
