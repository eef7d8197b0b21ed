"""`/docs`: a reference page drawn from the OpenAPI document. Nothing is loaded from outside; light and dark."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"

_METHODS = ("get", "post", "put", "patch", "delete")
_STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5b6675; --line: #dfe4ea; --page: #fbfcfd; --card: #fff;
  --accent: #0b6e5f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e8ee; --soft: #9aa6b4; --line: #2b333d; --page: #12161b;
  --card: #191f26; --accent: #5cc7b2; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2.5rem 1.25rem 5rem; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2.5rem 0 .75rem; }
p { margin: .4rem 0; } .soft { color: var(--soft); }
a { color: var(--accent); } code { font: .875em ui-monospace, monospace; overflow-wrap: anywhere; }
details { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; margin: .5rem 0; }
summary { cursor: pointer; padding: .6rem .9rem; display: flex; gap: .75rem; flex-wrap: wrap; align-items: baseline; }
summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: .5rem; }
.inside { border-top: 1px solid var(--line); padding: .75rem .9rem 1rem; }
.method { color: var(--accent); font-weight: 650; min-width: 3.6rem; }
.wide { overflow-x: auto; }
h3 { font-size: .8rem; letter-spacing: .06em; text-transform: uppercase; color: var(--soft); margin: 1rem 0 .3rem; }
table { border-collapse: collapse; width: 100%; font-size: .925rem; }
td { border-top: 1px solid var(--line); padding: .35rem .75rem .35rem 0; vertical-align: top; }
"""


def render(document: Mapping[str, Any], error_codes: Mapping[str, str]) -> str:
    info = document["info"]
    title = escape(info["title"])
    groups: dict[str, list[str]] = {}
    for path, method, operation in _operations(document):
        tag = (operation.get("tags") or ["Service"])[0]
        groups.setdefault(tag, []).append(_operation(document, path, method, operation))
    sections = "".join(f"<h2>{escape(tag)}</h2>{''.join(items)}" for tag, items in groups.items())
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style><main><h1>{title}</h1>"
        f"<p class=soft>Version {escape(info['version'])} · <a href=/openapi.json>openapi.json</a></p>"
        f"<p>{escape(info.get('description') or '')}</p>{sections}{_errors(error_codes)}</main></html>"
    )


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for path, item in sorted(document["paths"].items()):
        for method in _METHODS:
            if method in item:
                yield path, method, item[method]


def _operation(document: Mapping[str, Any], path: str, method: str, operation: Mapping[str, Any]) -> str:
    parts = [f"<p>{escape(operation.get('description') or '')}</p>"]
    if parameters := operation.get("parameters"):
        parts.append(_table("Parameters", [_parameter(document, parameter) for parameter in parameters]))
    if body := operation.get("requestBody"):
        parts.append(_table("Body", _content_rows(document, body)))
    for status, answer in operation.get("responses", {}).items():
        if status.startswith("2"):
            parts.append(_table(f"Answer {status}", _content_rows(document, answer)))
    return (
        f"<details><summary><code class=method>{method.upper()}</code><code>{escape(path)}</code>"
        f"<span class=soft>{escape(operation.get('summary') or '')}</span></summary>"
        f"<div class=inside>{''.join(parts)}</div></details>"
    )


def _parameter(document: Mapping[str, Any], parameter: Mapping[str, Any]) -> tuple[str, str, str]:
    kind = _kind(document, parameter.get("schema", {}))
    return parameter["name"], f"{parameter['in']}, {kind}", parameter.get("description") or ""


def _content_rows(document: Mapping[str, Any], part: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    content: list[Mapping[str, Any]] = list(part.get("content", {}).values())
    schema = content[0].get("schema", {}) if content else {}
    return _rows(document, schema, "", 0)


def _rows(
    document: Mapping[str, Any], schema: Mapping[str, Any], prefix: str, depth: int
) -> list[tuple[str, str, str]]:
    """One line a field; what lies inside a field follows it, three levels down."""
    resolved = _resolve(document, schema)
    required = resolved.get("required", ())
    rows = []
    for name, field in resolved.get("properties", {}).items():
        need = "required" if name in required else ""
        rows.append((f"{prefix}{name}", _kind(document, field), _about(document, field, need)))
        if depth < 3:
            for inner, mark in _inside(document, field):
                rows += _rows(document, inner, f"{prefix}{name}{mark}.", depth + 1)
    return rows


def _inside(document: Mapping[str, Any], field: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    for option in _options(_resolve(document, field)):
        found = _resolve(document, option)
        if "properties" in found:
            yield found, ""
        for item in _options(found.get("items", {})) if found.get("type") == "array" else ():
            if "properties" in _resolve(document, item):
                yield _resolve(document, item), "[]"


def _about(document: Mapping[str, Any], field: Mapping[str, Any], need: str) -> str:
    found = _resolve(document, field)
    notes = [need, found.get("description") or ""]
    names = {"minLength": "min. length", "maxLength": "max. length", "minItems": "at least", "maxItems": "at most",
             "minimum": "from", "maximum": "to"}  # fmt: skip
    for option in (found, *_options(found)):
        notes += [f"{label} {option[key]:,}" for key, label in names.items() if key in option]
    return ", ".join(dict.fromkeys(note for note in notes if note))


def _kind(document: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    found = _resolve(document, schema)
    if "enum" in found or "const" in found:
        return " | ".join(repr(value) for value in found.get("enum", [found.get("const")]))
    options = _options(found)
    if options != [found]:
        return " | ".join(dict.fromkeys(_kind(document, option) for option in options))
    kind = found.get("type", "any")
    if isinstance(kind, list):
        return " | ".join(kind)
    if kind != "array" or "items" not in found:
        return str(kind)
    item = _kind(document, found["items"])
    return f"({item})[]" if " | " in item else f"{item}[]"


def _options(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(schema.get("anyOf") or schema.get("oneOf") or [schema])


def _resolve(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    found: Mapping[str, Any] = document["components"]["schemas"][reference.rpartition("/")[2]]
    return found


def _errors(codes: Mapping[str, str]) -> str:
    rows = [(code, "", meaning) for code, meaning in sorted(codes.items())]
    shape = '{"error": {"code", "message", "details", "retryAfterSeconds"?}}'
    return f"<h2>Errors</h2><p>Every error is <code>{escape(shape)}</code>. The codes:</p>{_table('', rows)}"


def _table(title: str, rows: list[tuple[str, str, str]]) -> str:
    if not rows:
        return ""
    lines = "".join(
        f"<tr><td><code>{escape(name)}</code><td class=soft>{escape(kind)}<td>{escape(about)}"
        for name, kind, about in rows
    )
    heading = f"<h3>{escape(title)}</h3>" if title else ""
    return f"{heading}<div class=wide><table>{lines}</table></div>"
