"""What a JSON schema says, in words for people: the fields of a body line by line. Neighbour: `docs_page` draws it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

DEEP = 3
"""Levels of fields inside fields that are shown."""
_LIMITS = {
    "minLength": "min. length", "maxLength": "max. length", "minItems": "at least", "maxItems": "at most",
    "minimum": "at least", "maximum": "at most",
}  # fmt: skip

Schema = Mapping[str, Any]


def content_rows(document: Schema, schema: Schema, *, tell_required: bool) -> list[tuple[str, str, str]]:
    """Name, kind and words of each field. What must be there is of interest to those who write, not who read."""
    found = _resolve(document, schema)
    rows: dict[str, tuple[str, str, str]] = {}
    # Of several shapes the fields of all of them, each once.
    for option in _options(found):
        for row in _rows(document, option, "", 0, tell_required):
            rows.setdefault(row[0], row)
    return list(rows.values())


def kind_of(document: Schema, schema: Schema) -> str:
    found = _resolve(document, schema)
    if "enum" in found or "const" in found:
        return " | ".join(_said(value) for value in found.get("enum", [found.get("const")]))
    options = _options(found)
    if options != [found]:
        return " | ".join(dict.fromkeys(kind_of(document, option) for option in options))
    kind = found.get("type", "any")
    if isinstance(kind, list):
        return " | ".join(kind)
    if kind == "string" and found.get("format") == "binary":
        return "file"
    if kind != "array" or "items" not in found:
        return str(kind)
    item = kind_of(document, found["items"])
    return f"({item})[]" if " | " in item else f"{item}[]"


def _said(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _rows(document: Schema, schema: Schema, prefix: str, depth: int, tell_required: bool) -> list[tuple[str, str, str]]:
    """One line a field; what lies inside a field follows it."""
    resolved = _resolve(document, schema)
    required = resolved.get("required", ())
    rows = []
    for name, field in resolved.get("properties", {}).items():
        need = "required" if tell_required and name in required else ""
        rows.append((f"{prefix}{name}", kind_of(document, field), _about(document, field, need)))
        if depth < DEEP:
            for inner, mark in _inside(document, field):
                rows += _rows(document, inner, f"{prefix}{name}{mark}.", depth + 1, tell_required)
    return rows


def _inside(document: Schema, field: Schema) -> Iterator[tuple[Schema, str]]:
    for option in _options(_resolve(document, field)):
        found = _resolve(document, option)
        if "properties" in found:
            yield found, ""
        for item in _options(found.get("items", {})) if found.get("type") == "array" else ():
            if "properties" in _resolve(document, item):
                yield _resolve(document, item), "[]"


def _about(document: Schema, field: Schema, need: str) -> str:
    found = _resolve(document, field)
    notes = [need, field.get("description") or found.get("description") or ""]
    for option in (found, *_options(found)):
        if "minimum" in option and "maximum" in option:
            notes.append(f"{option['minimum']:,} to {option['maximum']:,}")
            continue
        notes += [f"{label} {option[key]:,}" for key, label in _LIMITS.items() if key in option]
    return "; ".join(dict.fromkeys(note.rstrip(".") for note in notes if note))


def _options(schema: Schema) -> list[Schema]:
    return list(schema.get("anyOf") or schema.get("oneOf") or [schema])


def _resolve(document: Schema, schema: Schema) -> Schema:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    found: Schema = document["components"]["schemas"][reference.rpartition("/")[2]]
    return found
