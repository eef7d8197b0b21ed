"""The OpenAPI documents are complete and true: every operation says what it takes, what it answers and which errors it
can answer, with examples that fit. That no answer goes beyond its document, `documented` holds in every contract test.
"""

import html
import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from litestar import Response, get
from litestar.openapi.spec import SecurityScheme
from litestar.params import FromQuery
from openapi_spec_validator import OpenAPIV31SpecValidator

from paceline import apidoc
from paceline.domain.codes import CODES
from paceline.domain.errors import NotFound
from paceline.edge import translate
from paceline.kits import openapi
from paceline.kits.field_docs import descriptions_of
from paceline.kits.openapi import Entry, Reference
from paceline.kits.service import Service
from paceline.kits.web import create_service

from . import documented
from .platform import FRIEND, READ_KEY, Platform, client_of, refused
from .uploads import uploaded

SERVICES = ["gateway", "dispatcher", "orchestrator"]
JSON = "application/json"
NO_JSON = {"GET /metrics", "GET /v1/events", "GET /api/worker/media/{ref}"}
"""What they answer is a stream or a file."""


@pytest.fixture(params=SERVICES)
async def document(request: pytest.FixtureRequest, platform: Platform) -> dict[str, Any]:
    return await documented.document_of(request.param, platform.services[request.param])


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield f"{method.upper()} {path}", operation


def faults(document: dict[str, Any], schema: dict[str, Any], example: Any) -> list[str]:
    validator = jsonschema_rs.Draft202012Validator({"allOf": [schema], "components": document["components"]})
    return [error.message for error in validator.iter_errors(example)]


def test_it_is_valid_openapi_3_1(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []


def test_every_operation_says_what_it_is_for(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        assert operation["summary"], name
        assert len(operation["description"]) > 15, name
        assert operation["tags"], name
    ids = [operation["operationId"] for _, operation in operations(document)]
    assert len(ids) == len(set(ids))


def test_every_parameter_is_described(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        for parameter in operation.get("parameters", ()):
            assert parameter.get("description"), f"{name}: {parameter['name']}"
        path = {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "path"}
        assert path == set(re.findall(r"\{(\w+)\}", name)), name


def test_every_body_has_a_schema_and_an_example_that_fits(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        content = operation.get("requestBody", {}).get("content", {})
        assert all(part["schema"] for part in content.values()), name
        examples = {kind: part["example"] for kind, part in content.items() if "example" in part}
        assert bool(examples) == bool(content), name
        for kind, example in examples.items():
            assert faults(document, content[kind]["schema"], example) == [], f"{name}: {kind}"


def test_every_good_answer_has_an_example_that_fits(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        good = {status: answer for status, answer in operation["responses"].items() if status.startswith("2")}
        assert good, name
        for status, answer in good.items():
            assert ("content" in answer) == (status != "204"), name
            for kind, part in answer.get("content", {}).items():
                if kind == JSON or "example" in part:
                    assert faults(document, part["schema"], part["example"]) == [], f"{name}: {kind}"
            assert status == "204" or JSON in answer["content"] or name in NO_JSON, name


def test_every_error_has_the_one_shape_a_closed_list_of_codes_and_an_example_of_each(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        bad = {status: answer for status, answer in operation["responses"].items() if not status.startswith("2")}
        assert {"500", "503"} <= bad.keys(), name
        for status, answer in bad.items():
            part = answer["content"][JSON]
            closed = part["schema"]["allOf"][1]["properties"]["error"]["properties"]["code"]["enum"]
            assert list(part["examples"]) == closed, name
            for code in closed:
                example = document["components"]["examples"][code]["value"]
                assert CODES[code].startswith(status), f"{name}: {code}"
                assert faults(document, part["schema"], example) == [], f"{name}: {code}"


async def test_every_code_can_be_answered_by_some_operation(platform: Platform) -> None:
    declared = set()
    for service in SERVICES:
        document = await documented.document_of(service, platform.services[service])
        declared |= set(document["components"]["examples"])
    of_answers = {code for code, meaning in CODES.items() if meaning[:3].isdigit()}
    assert of_answers - declared == set()


async def test_what_the_routes_read_by_themselves_is_described(platform: Platform) -> None:
    document = await documented.document_of("gateway", platform.services["gateway"])
    named = {
        name: {part["name"] for part in operation.get("parameters", ())} for name, operation in operations(document)
    }
    fields = document["components"]["schemas"]["JobRequest"]["properties"]
    for name in ("POST /v1/jobs", "POST /v1/jobs/plan"):
        assert fields.keys() - {"contacts"} <= named[name], name
    for name, operation in operations(document):
        answers_repeats = "IDEMPOTENCY_KEY_REUSED" in documented.declared(operation, 422)
        assert answers_repeats == ("Idempotency-Key" in named[name]), name
    assert "Last-Event-ID" in named["GET /v1/events"]
    contents = {name: operation.get("requestBody", {}).get("content", {}) for name, operation in operations(document)}
    assert {JSON, "text/csv"} == contents["POST /v1/jobs"].keys() == contents["POST /v1/suppressions"].keys()
    assert contents["POST /api/messages"].keys() == {"multipart/form-data"}
    listed = document["paths"]["/v1/suppressions"]["get"]["responses"]["200"]["content"]
    assert listed.keys() == {JSON, "text/csv"}
    assert "text/event-stream" in document["paths"]["/v1/events"]["get"]["responses"]["200"]["content"]


async def test_a_qr_code_is_json_or_a_picture_and_what_is_dropped_answers_nothing(platform: Platform) -> None:
    document = await documented.document_of("orchestrator", platform.services["orchestrator"])
    shown = document["paths"]["/api/sessions/{session_id}/qr"]["get"]["responses"]["200"]["content"]
    assert shown.keys() == {JSON, "image/png", "image/svg+xml"}
    for path in ("/api/proxies/{proxy_id}", "/api/profiles/{profile_id}"):
        good = [status for status in document["paths"][path]["delete"]["responses"] if status.startswith("2")]
        assert good == ["204"]
    for verb in ("bad", "ok"):
        assert document["paths"][f"/api/proxies/{{proxy_id}}/{verb}"]["post"]["requestBody"]["required"] is False


async def test_a_worker_shows_its_secret_and_everybody_else_a_key(platform: Platform) -> None:
    document = await documented.document_of("orchestrator", platform.services["orchestrator"])
    for name, operation in operations(document):
        needs = [next(iter(kind)) for kind in operation.get("security", ())]
        if "/worker/" in name or name.endswith("/api/webhook"):
            assert needs == ["workerSecret"], name
        else:
            assert needs == ([] if name == "GET /health" else ["apiKey", "bearer"]), name
        assert set(needs) <= document["components"]["securitySchemes"].keys()


def test_the_words_under_a_field_stand_in_the_document() -> None:
    class Inner(msgspec.Struct, rename="camel"):
        at_ms: int
        """When."""
        other: int

    class Outer(msgspec.Struct):
        inner: list[Inner] | None

    Inner.__module__ = Outer.__module__ = __name__
    globals().update(Inner=Inner, Outer=Outer)
    assert descriptions_of([Response[Outer]]) == {"Inner": {"atMs": "When."}}


@pytest.mark.parametrize("name", SERVICES)
async def test_the_page_shows_every_example_and_every_code_of_every_operation(platform: Platform, name: str) -> None:
    document = await documented.document_of(name, platform.services[name])
    page = html.unescape((await platform.client(name).get("/docs")).text)
    blocks = re.split(r"<details><summary><code class='method \w+'>", page)[1:]
    assert len(blocks) == len(list(operations(document)))
    for asked, operation in operations(document):
        method, path = asked.split(" ")
        (block,) = [found for found in blocks if found.startswith(f"{method}</code><code>{path}</code>")]
        parts = [*operation.get("requestBody", {}).get("content", {}).values()]
        assert all(f"Answer {status}" in block for status in operation["responses"] if status.startswith("2")), asked
        parts += [part for answer in operation["responses"].values() for part in answer.get("content", {}).values()]
        for part in parts:
            if "example" in part:
                example = part["example"]
                text = example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)
                assert text.strip() in block, asked
            for code in part.get("examples", {}):
                assert f"<code>{code}</code>" in block, f"{asked}: {code}"
                value = document["components"]["examples"][code]["value"]
                assert json.dumps(value, ensure_ascii=False) in block, f"{asked}: {code}"


# The guard itself


def small_service(reference: Reference) -> Service:
    @get("/things", summary="Things", security=[])
    async def things(bad: FromQuery[bool] = False) -> dict[str, int]:
        """What is answered when nobody looks."""
        if bad:
            raise NotFound("UNKNOWN_JOB", "there is no such job")
        return {"count": 1}

    return create_service(
        title="t",
        version="1",
        description="d",
        routes=[things],
        translate=translate,
        reference=reference,
        catalogue=apidoc.CATALOGUE,
        security_schemes=dict[str, SecurityScheme](),
    )


async def ask(name: str, reference: Reference, path: str) -> None:
    service = small_service(reference)
    client = client_of(name, service)
    async with client:
        await client.get(path)


async def test_a_code_that_is_not_declared_is_noticed() -> None:
    with pytest.raises(documented.NotDocumented, match="GET /things answered 404 UNKNOWN_JOB"):
        await ask("small 1", {}, "/things?bad=true")
    await ask("small 2", {"GET /things": Entry(errors="UNKNOWN_JOB")}, "/things?bad=true")


async def test_an_answer_of_another_shape_is_noticed() -> None:
    other = Entry(answers={JSON: {"type": "object", "required": ["total"]}})
    with pytest.raises(documented.NotDocumented, match="not as promised"):
        await ask("small 3", {"GET /things": other}, "/things")


async def test_a_body_where_none_is_declared_is_noticed() -> None:
    document = await documented.document_of("small 4", small_service({}))
    del document["paths"]["/things"]["get"]["responses"]["200"]["content"]
    with pytest.raises(documented.NotDocumented, match="with a body, and declares none"):
        await ask("small 4", {}, "/things")


def test_a_reference_to_a_route_that_does_not_exist_is_noticed() -> None:
    with pytest.raises(LookupError, match="GET /nothing"):
        openapi.document(small_service({}).litestar, {"GET /nothing": Entry()}, apidoc.CATALOGUE)


# What the work on the document changed


async def test_a_json_job_with_options_in_the_query_is_refused_not_half_heard(platform: Platform) -> None:
    for path in ("/v1/jobs", "/v1/jobs/plan"):
        async with platform.nothing_stored():
            answer = await platform.gateway.post(f"{path}?strict=true", json={"contacts": [FRIEND], "text": "hello"})
        refused(answer, 400, "INVALID_REQUEST", "strict")


async def test_a_job_shows_the_file_it_sends(platform: Platform) -> None:
    ref = await uploaded(platform)
    job = await platform.post_job(mode="image", mediaRef=ref, text="")
    assert (await platform.gateway.get(job["statusUrl"])).json()["mediaRef"] == ref
    plain = await platform.post_job()
    assert (await platform.gateway.get(plain["statusUrl"])).json()["mediaRef"] is None


async def test_jobs_can_be_listed_without_single_sends_or_only_those(platform: Platform) -> None:
    job = await platform.post_job()
    sent = (await platform.gateway.post("/api/v1/send", json={"to": FRIEND, "message": "hello"})).json()
    single = sent["messageId"].partition(":")[0]
    headers = {"X-API-KEY": READ_KEY}
    expected = {"": {job["jobId"], single}, "true": {single}, "false": {job["jobId"]}}
    for asked, ids in expected.items():
        params = {"single": asked} if asked else {}
        found = (await platform.gateway.get("/v1/jobs", params=params, headers=headers)).json()["items"]
        assert {item["jobId"] for item in found} == ids, asked
    refused(await platform.gateway.get("/v1/jobs?single=maybe"), 400, "INVALID_REQUEST", "single")


@pytest.mark.parametrize("name", SERVICES)
async def test_options_and_405_name_all_methods_of_a_path(platform: Platform, name: str) -> None:
    """`OPTIONS /v1/jobs` once named GET or POST, whichever had been registered first."""
    document = await documented.document_of(name, platform.services[name])
    for path, item in document["paths"].items():
        filled = re.sub(r"\{\w+\}", "x", path)
        for method, status in (("OPTIONS", 204), ("PUT", 405)):
            answer = await platform.client(name).request(method, filled)
            assert answer.status_code == status
            allowed = {word.strip() for word in answer.headers["Allow"].split(",")}
            assert {known.upper() for known in item} <= allowed, f"{method} {path}"
