"""What an alert says: one incident in plain words with what to do about it, or many of a kind in one digest.

Pure text over the table in `policy.alert_kinds`; `policy.alerts` decides when which of them is made.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from paceline.policy.alert_kinds import VALUE_MAX, Fields, Kind, Severity, host, last_four, shown

NAMED_MAX = 5
"""Numbers, or sessions, that a digest names; the rest is counted."""

TEST = "This is a test. If you can read it, alerts reach you here."


def severity_of(kind: Kind, fields: Fields) -> Severity:
    return Severity.CRITICAL if kind.is_grave(fields) else kind.severity


def subject_of(kind: Kind, fields: Fields) -> str:
    return str(fields.get(kind.subject, ""))[:VALUE_MAX] if kind.subject else ""


def named_of(kind: Kind, fields: Fields) -> str:
    return str(fields.get(kind.names, ""))[:VALUE_MAX] if kind.names else ""


def single(kind: Kind, fields: Fields, at_ms: int) -> str:
    """What one incident says."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%H:%M UTC")
    said = kind.says(fields)
    return _sentence(f"{at}: {said[:1].upper()}{said[1:]}", kind.do)


def digest(kind: Kind, count: int, named: Mapping[str, int], *, more: bool, ms: int) -> str:
    """What many incidents say together: how many, in what time, on whom. `more`: there are others beside the named."""
    minutes = max(1, round(ms / 60_000))
    text = f"{count} more {kind.many} in the last {'minute' if minutes == 1 else f'{minutes} minutes'}"
    subjects = {name: times for name, times in named.items() if name}
    if subjects:
        most = sorted(subjects.items(), key=lambda item: (-item[1], item[0]))[:NAMED_MAX]
        listed = ", ".join(f"{_name(kind, name)} ({times})" for name, times in most)
        noun = kind.noun if len(subjects) == 1 else _plural(kind.noun)
        rest = ", …" if len(subjects) > NAMED_MAX else ""
        text += f", on {'more than ' if more else ''}{len(subjects)} {noun}: {listed}{rest}"
    return _sentence(text, kind.do)


def headed(name: str, severity: Severity, text: str) -> str:
    """With whose alert it is and how grave it is."""
    return f"{name} · {severity.upper()}\n{text}"


def _name(kind: Kind, name: str) -> str:
    if kind.noun == "number":
        return last_four(name)
    return host(name) if kind.noun == "proxy" else shown(name)


def _plural(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def _sentence(text: str, do: str) -> str:
    return f"{text}. {do}" if do else f"{text}."
