"""Writes the generated parts of the documentation; a test holds that they are up to date.

    python docs/generate.py

A generated part stands between `<!-- generated: NAME -->` and `<!-- end -->`; `PARTS` says what makes each. What the
code already says (settings, codes, states, planted bugs) is taken from there, so that no page can fall behind it.
"""

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path

import yaml

from paceline.cli import reference
from paceline.domain import sessions, states
from paceline.domain.codes import CODES
from paceline.domain.events import EVENT_TYPES
from paceline.settings import Settings, UpSettings, env_name
from paceline.store.keys import ALL
from paceline.telemetry import catalogue
from paceline.testing.planted import BUGS
from paceline.worker.drivers.config import Behaviour

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]

_PART = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def settings(kind: type[Settings], leave_out: frozenset[str] = frozenset()) -> str:
    rows = [
        (f"`{env_name(name, kind)}`", _default(field.default), _line(field.description or ""))
        for name, field in kind.model_fields.items()
        if name not in leave_out
    ]
    return _table(("variable", "default", "meaning"), rows)


def behaviour() -> str:
    docs = _field_docs(Behaviour)
    rows = [(f"`{name}`", _default(getattr(Behaviour(), name)), _line(docs[name])) for name in docs]
    return _table(("key", "default", "meaning"), rows)


def codes() -> str:
    return _table(("code", "meaning"), [(f"`{code}`", meaning) for code, meaning in sorted(CODES.items())])


def events() -> str:
    return _table(("type", "what it says"), [(f"`{name}`", f"{meaning}.") for name, meaning in EVENT_TYPES.items()])


def planted() -> str:
    return _table(("promise", "planted bug"), [(bug.promise, bug.name) for bug in BUGS])


def keys() -> str:
    rows = [(f"`{key.template.replace('{}', '<…>')}`", key.type, key.about) for key in ALL.values()]
    return _table(("key", "type", "what, who writes it"), rows)


def state_table() -> str:
    rows = [
        (f"`{byte}`", states.Byte(byte).name, states.MESSAGE_STATE[byte], " ".join(moves) or "—")
        for byte, moves in states.NEXT.items()
    ]
    return _table(("byte", "name", "in the API", "may become"), rows)


def state_drawing() -> str:
    """The moves of an undisturbed life, and those a worker's word makes; the table beside it has all of them."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> queued"]
    for byte, moves in states.NEXT.items():
        drawn = [to for to in moves if to not in states.TERMINAL]
        drawn += {"c": ["S", "F"], "u": ["S", "F"], "S": ["D"], "D": ["R"]}.get(byte, [])
        lines += [f"    {_word(byte)} --> {_word(to)}" for to in drawn if to in moves]
    return "\n".join([*lines, "```"])


def session_table() -> str:
    def kept(value: object) -> str:
        return f"`{value}`" if value else ""

    rows = [
        (f"`{name}`", kept(change.connection), kept(change.authorisation), kept(change.desired),
         kept(change.quarantine), "yes" if change.new_worker else "", f"{change.why}.")
        for name, change in sessions.TABLE.items()
    ]  # fmt: skip
    head = ("event or wish", "connection", "authorisation", "desired", "quarantine", "new worker", "what and why")
    return _table(head, rows)


def session_status() -> str:
    return _table(("status", "in WAHA"), [(f"`{word}`", f"`{waha}`") for word, waha in sessions.WAHA.items()])


def session_drawing() -> str:
    """What the table leads to, from a session that was just registered; any state may be stopped."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> STARTING"]
    lines += [f"    {start} --> {end}: {name}" for start, name, end in sessions.DRAWN if sessions.leads_to(name, end)]
    return "\n".join([*lines, "```"])


def metrics() -> str:
    rows = [
        (f"`{metric.name}`", metric.kind, ", ".join(f"`{label}`" for label in metric.labels), metric.help)
        for metric in catalogue.ALL
    ]
    return _table(("metric", "kind", "labels", "meaning"), rows)


def alert_rules() -> str:
    groups = yaml.safe_load((ROOT / "deploy" / "prometheus" / "rules.yml").read_text())["groups"]
    alerts = [rule for group in groups for rule in group["rules"] if "alert" in rule]
    rows = [
        (f"`{rule['alert']}`", rule["labels"]["severity"], f"`{_line(rule['expr'])}`", rule.get("for", "at once"),
         rule["annotations"]["description"])
        for rule in alerts
    ]  # fmt: skip
    return _table(("alert", "severity", "fires when", "for", "what it means"), rows)


PARTS: dict[str, Callable[[], str]] = {
    "settings": lambda: settings(Settings),
    "up-settings": lambda: settings(UpSettings, frozenset(Settings.model_fields)),
    "behaviour": behaviour,
    "codes": codes,
    "events": events,
    "planted": planted,
    "keys": keys,
    "state-table": state_table,
    "state-drawing": state_drawing,
    "session-table": session_table,
    "session-status": session_status,
    "session-drawing": session_drawing,
    "commands": reference.commands,
    "exit-codes": lambda: _table(("code", "meaning"), reference.exit_codes()),
    "metrics": metrics,
    "alert-rules": alert_rules,
}


def rendered(text: str) -> str:
    """The page with every generated part made anew."""
    return _PART.sub(lambda part: f"{part[1]}{PARTS[part[2]]()}\n{part[3]}", text)


def _word(byte: str) -> str:
    return states.Byte(byte).name.lower()


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _default(value: object) -> str:
    if value is None:
        return "unset"
    if isinstance(value, frozenset):
        return "`[]`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{list(value)}`" if isinstance(value, tuple) else f"`{value}`"


def _line(text: str) -> str:
    return " ".join(text.split())


def _field_docs(kind: type) -> dict[str, str]:
    """The text under each field of a class."""
    body = ast.parse(inspect.getsource(kind)).body[0]
    docs: dict[str, str] = {}
    name = ""
    for node in body.body if isinstance(body, ast.ClassDef) else ():
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
            docs[name] = ""
        elif name and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docs[name] = str(node.value.value)
    return docs


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(rendered(page.read_text()))
