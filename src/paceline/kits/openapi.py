"""A service's OpenAPI document, complete: bodies, examples, and of each operation the closed list of its error codes.

What a route is, Litestar knows; the rest is a `Reference`: a table with an `Entry` for each operation. What follows
from the route itself (it has a body, so the body can be bad JSON) nobody has to repeat there. A test holds the lists
against every answer of the contract suite. Neighbours: `openapi_errors` has what concerns errors, `web` serves the
document, `docs_page` draws it, `field_docs` finds the words under the fields.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler

from paceline.kits.field_docs import descriptions_of
from paceline.kits.openapi_errors import SCHEMA_OF_ERRORS, Catalogue, error_answers, error_example

JSON = "application/json"
_ALWAYS = ("INVALID_HTTP", "HEADERS_TOO_LARGE", "INTERNAL")
_NOISE = ("deprecated", "allowEmptyValue", "allowReserved")


@dataclass(frozen=True)
class Entry:
    """What the code of a route does not say about it."""

    errors: str = ""
    """Its own codes, beside those that follow from what it is."""
    never: str = ""
    """Codes that would follow from what it is, and do not."""
    body: Any = None
    """A body that could be sent as it stands here; of several media types a dict by type."""
    answer: Any = None
    """What such a request is answered with; as above."""
    parameters: tuple[Mapping[str, Any], ...] = ()
    """Those that the route reads by itself."""
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By media type the schema of an answer that the framework cannot know."""


Reference = Mapping[str, Entry]
"""By operation, as in `GET /v1/jobs`."""


def document(app: Litestar, reference: Reference, catalogue: Catalogue) -> dict[str, Any]:
    made: dict[str, Any] = _without_examples(msgspec.to_builtins(app.openapi_schema.to_schema()))
    routes = dict(_routes(app))
    unknown = reference.keys() - routes.keys()
    if unknown:
        raise LookupError(f"the reference describes operations that do not exist: {sorted(unknown)}")
    components = made.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    bodies = list(dict.fromkeys(handler.opt["body"] for handler in routes.values() if "body" in handler.opt))
    body_schemas, named = msgspec.json.schema_components(bodies, ref_template="#/components/schemas/{name}")
    schemas.update(named, Error=SCHEMA_OF_ERRORS)
    used: set[str] = set()
    for name, handler in routes.items():
        method, _, path = name.partition(" ")
        operation, entry = made["paths"][path][method.lower()], reference.get(name, Entry())
        if needs := catalogue.needs(handler):
            operation["description"] = f"{operation.get('description') or ''}\n\n{needs}".strip()
        _add_parameters(operation, entry, catalogue)
        if content := _body(handler, entry, lambda kind: body_schemas[bodies.index(kind)]):
            operation["requestBody"] = {"required": not handler.opt.get("body_optional", False), "content": content}
        _add_answers(operation, entry)
        codes = _codes(operation, handler, entry, catalogue)
        used |= set(codes)
        operation["responses"] |= error_answers(codes, catalogue)
    components["examples"] = {code: error_example(code, catalogue) for code in sorted(used)}
    _describe_fields(schemas, [*bodies, *_answer_types(app)])
    return made


def _without_examples(part: Any) -> Any:
    """Litestar makes some up, of random letters."""
    if isinstance(part, list):
        return [_without_examples(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {name: _without_examples(value) for name, value in part.items() if name != "examples"}


def _routes(app: Litestar) -> Iterator[tuple[str, HTTPRouteHandler]]:
    for route in app.routes:
        for handler in getattr(route, "route_handlers", ()):
            for method in sorted(getattr(handler, "http_methods", ())):
                if handler.include_in_schema is not False and method != "OPTIONS" and _is_ours(route.path_format):
                    yield f"{method} {route.path_format}", handler


def _is_ours(path: str) -> bool:
    return not path.startswith("/.")


def _add_parameters(operation: dict[str, Any], entry: Entry, catalogue: Catalogue) -> None:
    parameters = [
        {name: value for name, value in parameter.items() if name not in _NOISE}
        for parameter in operation.get("parameters", ())
    ]
    for parameter in parameters:
        if parameter["in"] == "path":
            parameter.setdefault("description", catalogue.parameters[parameter["name"]])
        _tidy(parameter["schema"])
    parameters += [dict(parameter) for parameter in entry.parameters]
    if parameters:
        operation["parameters"] = parameters


def _tidy(schema: dict[str, Any]) -> None:
    """Bounds of whole numbers as whole numbers; a description stands at the parameter already."""
    schema.pop("description", None)
    for name in ("minimum", "maximum"):
        if isinstance(schema.get(name), float) and schema[name].is_integer():
            schema[name] = int(schema[name])


def _body(handler: HTTPRouteHandler, entry: Entry, schema_of: Callable[[type], Any]) -> dict[str, Any]:
    content: dict[str, Any] = {name: dict(part) for name, part in handler.opt.get("content", {}).items()}
    if "body" in handler.opt:
        content[JSON] = {"schema": schema_of(handler.opt["body"])}
    for media_type, example in handler.opt.get("text_bodies", {}).items():
        content[media_type] = {"schema": {"type": "string"}, "example": example}
    _add_examples(content, entry.body)
    return content


def _add_answers(operation: dict[str, Any], entry: Entry) -> None:
    """Keeps the good answers of the framework's document; the bad ones there are of a shape that is not ours."""
    kept = {status: answer for status, answer in operation["responses"].items() if status.startswith("2")}
    for status, answer in kept.items():
        content = answer.setdefault("content", {})
        if entry.answers and status == min(kept):
            content.clear()
            content.update({media_type: {"schema": schema} for media_type, schema in entry.answers.items()})
        _add_examples(content, entry.answer)
        if status == str(HTTPStatus.NO_CONTENT.value):
            answer.pop("content")
        answer.pop("headers", None)
        if answer.get("description", "").startswith(("Request fulfilled", "Document created", "Request accepted")):
            answer["description"] = HTTPStatus(int(status)).phrase
    operation["responses"] = kept


def _add_examples(content: dict[str, Any], given: Any) -> None:
    by_type = given if isinstance(given, Mapping) and given and all("/" in name for name in given) else {JSON: given}
    for media_type, example in by_type.items():
        if example is not None and media_type in content:
            content[media_type]["example"] = example


def _codes(
    operation: Mapping[str, Any], handler: HTTPRouteHandler, entry: Entry, catalogue: Catalogue
) -> dict[str, None]:
    """In a steady order: its own first."""
    found = [*entry.errors.split(), *catalogue.common(handler)]
    content = operation.get("requestBody", {}).get("content", {})
    kinds = {parameter["in"] for parameter in operation.get("parameters", ())}
    if content or "query" in kinds or "header" in kinds or not handler.opt.get("any_query"):
        found.append("INVALID_REQUEST")
    if JSON in content:
        found.append("INVALID_JSON")
    if content:
        found += ["BODY_TOO_LARGE", "BODY_TIMEOUT", "BODIES_FULL", "UNSUPPORTED_MEDIA_TYPE", "UNSUPPORTED_ENCODING"]
    if "path" in kinds:
        # A slash in a parameter makes it another path.
        found += ["NOT_FOUND", "METHOD_NOT_ALLOWED"]
    return dict.fromkeys(code for code in [*found, *_ALWAYS] if code not in entry.never.split())


def _answer_types(app: Litestar) -> list[Any]:
    found = []
    for _, handler in _routes(app):
        found.append(handler.parsed_fn_signature.return_type.annotation)
        found += [spec.data_container for spec in (handler.responses or {}).values()]
    return found


def _describe_fields(schemas: dict[str, Any], kinds: Iterable[Any]) -> None:
    for name, fields in descriptions_of(kinds).items():
        properties = schemas.get(name, {}).get("properties", {})
        for field_name, words in fields.items():
            if field_name in properties and "$ref" not in properties[field_name]:
                properties[field_name].setdefault("description", words)
            elif field_name in properties:
                properties[field_name] = {**properties[field_name], "description": words}
