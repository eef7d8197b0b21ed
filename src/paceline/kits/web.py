"""An HTTP service as every one of ours is: one error shape, strict JSON, limits, request ids, its own documentation.

Knows Litestar and nothing of the product. Neighbours: `web_errors` makes answers of errors, `openapi` the document,
`docs_page` draws it as `/docs`, `bodies`, `strict_json` and `queries` mind what comes in, `direct` has the way of hot
routes, `http` serves the application.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from litestar import Litestar, MediaType, Request, Response, Router, get
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme

from paceline.kits import docs_page, openapi, queries, strict_json
from paceline.kits.direct import Direct
from paceline.kits.headers import header
from paceline.kits.openapi_errors import Catalogue
from paceline.kits.problem import Problem as Problem  # noqa: PLC0414 - those who import `web` need it too
from paceline.kits.service import Service
from paceline.kits.web_errors import Translate, error_handler

MEGABYTE = 1_048_576
BODY_LIMIT = MEGABYTE
"""Far more than any request needs that is not a list of contacts."""

JSON = "application/json"
UTF8 = ("utf-8", "utf8", "us-ascii")

AnyRequest = Request[Any, Any, Any]
Handler = HTTPRouteHandler
T = TypeVar("T")

_WHERE = re.compile(r"^(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_NAMED_FIELD = re.compile(r"Object (?:contains unknown|missing required) field `(?P<name>[^`]*)`")


async def read_body(
    request: AnyRequest,
    kind: type[T],
    *,
    any_text: bool = False,
    part_of: Callable[[bytes, T], strict_json.Part] | None = None,
) -> T:
    """The JSON body as that type. Strict: wrong types, unknown, missing and doubled fields are refused by name, and NUL
    characters unless `any_text`. `part_of` counts the large part of a large body (`strict_json.check`)."""
    if header(request.scope, b"content-type") != JSON:
        _check_type(request)
    body = await request.body()
    decoded = decode(body, kind)
    if strict_json.is_plain(body, kind):
        return decoded
    part = part_of(body, decoded) if part_of and len(body) > strict_json.AT_ONCE_BYTES else None
    await strict_json.check(body, any_text=any_text, part=part)
    return decoded


def _check_type(request: AnyRequest) -> None:
    content_type, parameters = Request[Any, Any, Any](request.scope).content_type
    if content_type != JSON:
        raise Problem(415, "UNSUPPORTED_MEDIA_TYPE", "send JSON with Content-Type: application/json")
    if parameters.get("charset", "utf-8").lower() not in UTF8:
        raise Problem(415, "UNSUPPORTED_MEDIA_TYPE", "send JSON as UTF-8", field="Content-Type")


def decode(body: bytes, kind: type[T], *, inside: str = "") -> T:
    """`inside` names the field that holds this JSON as a string."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        field, message = _field_of(str(error), inside)
        raise Problem(400, "INVALID_REQUEST", message, field=field) from error
    except msgspec.DecodeError as error:
        # Where, and what kind of thing was expected; never what stood there.
        raise Problem(400, "INVALID_JSON", f"the body is not valid JSON: {error}", field=inside or None) from error
    except UnicodeDecodeError as error:
        raise Problem(400, "INVALID_JSON", "the JSON is not UTF-8", field=inside or None) from error
    except RecursionError as error:
        raise Problem(400, "INVALID_JSON", "the JSON is nested too deeply", field=inside or None) from error


def json_answer(content: bytes, status: int) -> Response[bytes]:
    """An answer that is encoded already."""
    return Response(content, status_code=status, media_type=MediaType.JSON)


def create_service(
    *,
    title: str,
    version: str,
    description: str,
    routes: Sequence[Handler],
    translate: Translate,
    reference: openapi.Reference,
    catalogue: Catalogue,
    security_schemes: Mapping[str, SecurityScheme],
) -> "Service":
    """The application with everything around its routes. A route names its body as `opt={"body": SomeStruct}`, and what
    it takes beside JSON as `opt={"text_bodies": {"text/csv": "an example"}}`; one that is no JSON at all as
    `opt={"content": {"multipart/form-data": {"schema": …}}}`. With `"body_optional": True` it may be left out."""

    documents: list[dict[str, Any]] = []
    pages: list[str] = []

    def document(app: Litestar) -> dict[str, Any]:
        """Made when somebody first asks: most processes are never asked."""
        if not documents:
            documents.append(openapi.document(app, reference, catalogue))
        return documents[0]

    @get("/docs", include_in_schema=False, media_type=MediaType.HTML)
    async def docs(request: AnyRequest) -> Response[str]:
        if not pages:
            pages.append(docs_page.render(document(request.app), catalogue.codes))
        return Response(pages[0], headers={"Content-Security-Policy": docs_page.CONTENT_SECURITY_POLICY})

    @get("/openapi.json", include_in_schema=False)
    async def openapi_json(request: AnyRequest) -> dict[str, Any]:
        return document(request.app)

    app = Litestar(
        route_handlers=[*routes, docs, openapi_json],
        before_request=queries.check,
        exception_handlers={Exception: error_handler(translate)},
        openapi_config=OpenAPIConfig(
            title=title,
            version=version,
            description=description,
            use_handler_docstrings=True,
            # Litestar's own pages would answer in shapes of their own; ours are `/openapi.json` and `/docs`.
            render_plugins=[JsonRenderPlugin()],
            openapi_router=Router("/.openapi", route_handlers=[], include_in_schema=False, before_request=_hidden),
            components=Components(security_schemes=dict(security_schemes)),
        ),
        request_max_body_size=BODY_LIMIT,
        logging_config=None,
    )
    return Service(app, Direct(app, error_handler(translate)))


def _field_of(error: str, inside: str) -> tuple[str | None, str]:
    """The field a msgspec message is about, as a caller would write it: `contacts[3].to`."""
    match = _WHERE.match(error)
    what, path = (match["what"], match["path"] or "") if match else (error, "")
    named = _NAMED_FIELD.match(what)
    parts = [inside, path.removeprefix("."), named["name"] if named else ""]
    return ".".join(part for part in parts if part) or None, what


async def _hidden(_request: AnyRequest) -> None:
    raise NotFoundException
