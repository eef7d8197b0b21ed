"""Every answer that any contract test gets is held against the OpenAPI document of its service: the status is one that
the operation declares, an error's code is in its closed list, and what comes back has the shape that is promised.

`platform` hangs this into its clients, so no test has to ask for it and none can forget it.
"""

import re
from functools import cache
from typing import Any

import httpx
import jsonschema_rs

from paceline.kits.service import Service

EVERYWHERE = {(404, "NOT_FOUND"), (405, "METHOD_NOT_ALLOWED"), (431, "HEADERS_TOO_LARGE")}
"""What is answered before it is known which operation is meant."""
OURS = {"/docs", "/openapi.json"}

_documents: dict[str, dict[str, Any]] = {}


class NotDocumented(AssertionError):
    pass


async def document_of(name: str, service: Service) -> dict[str, Any]:
    if name not in _documents:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(service), base_url="http://paceline") as client:
            _documents[name] = (await client.get("/openapi.json")).json()
    return _documents[name]


async def check(name: str, service: Service, answer: httpx.Response) -> None:
    document = await document_of(name, service)
    path = answer.request.url.path.rstrip("/")
    if path in OURS or answer.request.method == "OPTIONS":
        return
    asked = f"{answer.request.method} {path}"
    is_json = answer.headers.get("content-type", "").split(";")[0] == "application/json"
    body = (await answer.aread(), answer.json())[1] if is_json else None
    found = operation_of(document, answer.request.method.lower(), path)
    if answer.status_code >= 400:
        code = body["error"]["code"] if body else None
        if (answer.status_code, code) in EVERYWHERE:
            return
        if found is None:
            raise NotDocumented(f"{name}: {asked} is no operation, and answered {answer.status_code} {code}")
        if code not in declared(found[1], answer.status_code):
            raise NotDocumented(f"{name}: {found[0]} answered {answer.status_code} {code}, which it does not declare")
    if found is None:
        raise NotDocumented(f"{name}: {asked} is no operation, and answered {answer.status_code}")
    promised = found[1]["responses"].get(str(answer.status_code))
    if promised is None:
        raise NotDocumented(f"{name}: {found[0]} answered {answer.status_code}, which it does not declare")
    kind = answer.headers.get("content-type", "").split(";")[0]
    if "content" not in promised:
        if await answer.aread():
            raise NotDocumented(f"{name}: {found[0]} answered {answer.status_code} with a body, and declares none")
        return
    if kind not in promised["content"]:
        raise NotDocumented(f"{name}: {found[0]} answered {kind!r}, which it does not declare")
    if body is not None:
        where = f"{found[0]} {answer.status_code}"
        for error in _validator(name, where).iter_errors(body):
            raise NotDocumented(f"{name}: {where} is not as promised at {error.instance_path}: {error.message}")


def operation_of(document: dict[str, Any], method: str, path: str) -> tuple[str, dict[str, Any]] | None:
    """Its name and itself; a path without parameters goes before one with."""
    for template in sorted(document["paths"], key=lambda known: known.count("{")):
        pattern = re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(template))
        if method in document["paths"][template] and re.fullmatch(pattern, path):
            return f"{method.upper()} {template}", document["paths"][template][method]
    return None


def declared(operation: dict[str, Any], status: int) -> list[str]:
    answer = operation["responses"].get(str(status), {})
    return list(answer.get("content", {}).get("application/json", {}).get("examples", {}))


@cache
def _validator(name: str, where: str) -> Any:
    document = _documents[name]
    method, path, status = where.split(" ")
    answer = document["paths"][path][method.lower()]["responses"][status]
    schema = answer["content"]["application/json"]["schema"]
    return jsonschema_rs.Draft202012Validator({"allOf": [schema], "components": document["components"]})
