"""`/docs`: a reference page drawn from the OpenAPI document. Nothing is loaded from outside; light and dark.

Neighbours: `openapi` makes the document, `docs_schema` says what a schema is in words, `docs_style` how it looks.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from paceline.kits.docs_schema import content_rows, kind_of
from paceline.kits.docs_style import STYLE

CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"

Row = Sequence[str]
"""Its cells, as HTML."""

_METHODS = ("get", "post", "put", "patch", "delete")
_JSON = "application/json"
_CODE = re.compile(r"`([^`]+)`")


def render(document: Mapping[str, Any], error_codes: Mapping[str, str]) -> str:
    info = document["info"]
    title = escape(info["title"])
    groups: dict[str, list[str]] = {}
    for path, method, operation in _operations(document):
        tag = (operation.get("tags") or ["Service"])[0]
        groups.setdefault(tag, []).append(_operation(document, path, method, operation))
    links = "".join(f"<a href=#{_anchor(tag)}>{escape(tag)}</a>" for tag in [*groups, "Errors"])
    sections = "".join(
        f"<section><h2 id={_anchor(tag)}>{escape(tag)}</h2>{''.join(items)}</section>" for tag, items in groups.items()
    )
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style><main><header><h1>{title}</h1>"
        f"<p class=soft>Version {escape(info['version'])} · <a href=/openapi.json>openapi.json</a></p>"
        f"<p>{_prose(info.get('description') or '')}</p><nav>{links}</nav></header>"
        f"{_keys(document)}{sections}{_errors(error_codes)}</main></html>"
    )


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """In the order of the routes: what is used most comes first."""
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                yield path, method, item[method]


def _operation(document: Mapping[str, Any], path: str, method: str, operation: Mapping[str, Any]) -> str:
    parts = [f"<p>{_prose(text)}</p>" for text in (operation.get("description") or "").split("\n\n")]
    if parameters := operation.get("parameters"):
        parts.append(_table("Parameters", [_parameter(document, parameter) for parameter in parameters]))
    if body := operation.get("requestBody"):
        title = "Body" if body.get("required") else "Body, which may be left out"
        parts.append(_content(document, title, body["content"], is_body=True))
    good = {status: answer for status, answer in operation["responses"].items() if status.startswith("2")}
    for status, answer in good.items():
        content = _content(document, f"Answer {status}", answer.get("content", {}))
        parts.append(content or f"<h3>Answer {status}</h3><p>No body.</p>")
    bad = {status: answer for status, answer in operation["responses"].items() if status not in good}
    parts.append(_operation_errors(document, bad))
    return (
        f"<details><summary><code class='method {method}'>{method.upper()}</code><code>{escape(path)}</code>"
        f"<span class=soft>{escape(operation.get('summary') or '')}</span></summary>"
        f"<div class=inside>{''.join(parts)}</div></details>"
    )


def _parameter(document: Mapping[str, Any], parameter: Mapping[str, Any]) -> Row:
    schema = parameter["schema"] if "schema" in parameter else parameter["content"][_JSON]["schema"]
    kind = f"{parameter['in']}, {kind_of(document, schema)}"
    words = parameter.get("description") or ""
    if parameter.get("required") and parameter["in"] != "path":
        words = f"required, {words}"
    return f"<code>{escape(parameter['name'])}</code>", escape(kind), _prose(words)


def _content(document: Mapping[str, Any], title: str, content: Mapping[str, Any], *, is_body: bool = False) -> str:
    """A table of the fields, then an example of each media type; of many alike, the types in a line."""
    parts = []
    first: Mapping[str, Any] = content.get(_JSON) or next(iter(content.values()), {})
    rows = [
        (f"<code>{escape(name)}</code>", escape(kind), _prose(about))
        for name, kind, about in content_rows(document, first.get("schema", {}), tell_required=is_body)
    ]
    parts.append(_table("", rows))
    if list(content) != [_JSON]:
        parts.insert(0, f"<p class=types>{', '.join(f'<code>{escape(kind)}</code>' for kind in content)}</p>")
    for kind, part in content.items():
        if "example" in part:
            parts.append(_example(kind if list(content) != [_JSON] else "", part["example"]))
    return f"<h3>{escape(title)}</h3>{''.join(parts)}" if any(parts) else ""


def _example(label: str, example: Any) -> str:
    text = example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)
    caption = f"<figcaption class=soft>{escape(label)}</figcaption>" if label else ""
    return f"<figure>{caption}<pre tabindex=0>{escape(text.strip())}</pre></figure>"


def _operation_errors(document: Mapping[str, Any], bad: Mapping[str, Any]) -> str:
    """Each code that this operation can answer, with an example behind it."""
    rows = []
    for status, answer in bad.items():
        for code in answer["content"][_JSON]["examples"]:
            example = document["components"]["examples"][code]
            shown = json.dumps(example["value"], ensure_ascii=False)
            meaning = _meaning(example["summary"])
            rows.append(
                (status, f"<code>{code}</code>", f"{_prose(meaning)}<br><code class=one>{escape(shown)}</code>")
            )
    table = _table("", rows)
    return (
        f"<details class=errors><summary>Errors: {len(rows)} codes</summary><div class=inside>{table}</div></details>"
    )


def _keys(document: Mapping[str, Any]) -> str:
    schemes = document.get("components", {}).get("securitySchemes", {})
    used = {
        name for _, _, operation in _operations(document) for need in operation.get("security", ()) for name in need
    }
    rows = [
        (f"<code>{escape(scheme.get('name') or 'Authorization: Bearer')}</code>", _prose(scheme.get("description", "")))
        for name, scheme in schemes.items()
        if name in used
    ]
    return _table("Who may ask", rows)


def _errors(codes: Mapping[str, str]) -> str:
    rows = [(f"<code>{escape(code)}</code>", _prose(meaning)) for code, meaning in sorted(codes.items())]
    shape = '{"error": {"code", "message", "details", "retryAfterSeconds"?}}'
    words = f"<p>Every error is <code>{escape(shape)}</code>, and every answer has an <code>X-Request-Id</code>.</p>"
    return f"<section><h2 id=errors>Errors</h2>{words}{_table('', rows)}</section>"


def _meaning(summary: str) -> str:
    return summary.partition(": ")[2] or summary


def _prose(text: str) -> str:
    """Our own words, in which code stands in backticks."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _anchor(tag: str) -> str:
    return escape(tag.lower().replace(" ", "-"))


def _table(title: str, rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    lines = "".join("<tr>" + "".join(f"<td>{cell}" for cell in row) for row in rows)
    heading = f"<h3>{escape(title)}</h3>" if title else ""
    return f"{heading}<div class=wide><table class=c{len(rows[0])}>{lines}</table></div>"
