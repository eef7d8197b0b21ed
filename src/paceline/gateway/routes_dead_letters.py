"""Routes of the dead letters: looking at what was given up, sending it again on purpose."""

from typing import Annotated, get_args

from litestar import MediaType, Response, get, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromPath, QueryParameter

from paceline.domain.errors import BadRequest
from paceline.edge import Keys, holder
from paceline.gateway.dead_letters import DeadLetters, wanted_of
from paceline.gateway.intake import Intake
from paceline.gateway.letter_schemas import (
    DeadLetterPage,
    ErrorClass,
    Replayed,
    ReplayedMany,
    ReplayFilter,
    ReplayRequest,
)
from paceline.gateway.once import Once
from paceline.gateway.replaying import Ask, Replaying
from paceline.gateway.routes_common import KEY, Cursor, Limit
from paceline.kits.web import AnyRequest, Handler, json_answer, read_body
from paceline.store.store import Store

# Fields whose name here is not the caller's are checked by hand: the framework would name ours.
Code = Annotated[str | None, QueryParameter(max_length=256, description="of the error")]
Class = Annotated[
    str | None,
    QueryParameter(name="class", description="of the error", schema_extra={"enum": list(get_args(ErrorClass))}),
]
Phone = Annotated[str | None, QueryParameter(max_length=64, description="the number it was to go from")]
JobId = Annotated[str | None, QueryParameter(name="jobId", description="only those of this job")]
From = Annotated[str | None, QueryParameter(name="from", description="given up at or after")]
Until = Annotated[str | None, QueryParameter(max_length=64, description="given up before")]


def dead_letter_routes(store: Store, once: Once, intake: Intake, keys: Keys) -> list[Handler]:
    letters = DeadLetters(store)
    replaying = Replaying(store, letters, intake.watcher, intake.measures)

    @get(
        "/v1/dead-letters",
        summary="What was given up",
        tags=["Dead letters"],
        guards=[keys.requires("read")],
        security=KEY,
    )
    async def list_dead_letters(  # noqa: PLR0917 - one for each field of the query
        cursor: Cursor = "",
        limit: Limit = 100,
        code: Code = None,
        class_: Class = None,
        phone: Phone = None,
        job_id: JobId = None,
        from_: From = None,
        until: Until = None,
    ) -> DeadLetterPage:
        """Newest first, with everything that happened to each; never its text."""
        asked = ReplayFilter(
            code=code, class_=_error_class(class_), phone=phone, job_id=job_id, from_=from_, until=until
        )
        return await letters.page(wanted_of(asked), cursor, limit)

    @post(
        "/v1/dead-letters/{letter_id:str}/replay",
        status_code=202,
        summary="Send one again",
        tags=["Dead letters"],
        guards=[keys.requires("send")],
        security=KEY,
        opt={"body": ReplayRequest, "body_optional": True},
        responses={202: ResponseSpec(Replayed, media_type=MediaType.JSON, description="Accepted")},
    )
    async def replay_one(request: AnyRequest, letter_id: FromPath[str]) -> Response[bytes]:
        """As a new job with `replayOf`. What the platform refused (463) is not sent again; what was sent again before,
        only with `again`. If its end was unknown, the person may get it twice. Takes an Idempotency-Key."""
        # The path says it all; a body is for those who insist.
        asked = await read_body(request, ReplayRequest) if await request.body() else ReplayRequest()

        async def work(job_id: str, key: str | None, now_ms: int) -> Replayed:
            return await replaying.one(letter_id, Ask(holder(request), job_id, key, asked.again, now_ms))

        return json_answer(await once.answer(request, work), 202)

    @post(
        "/v1/dead-letters/replay",
        status_code=202,
        summary="Send all that match again",
        tags=["Dead letters"],
        guards=[keys.requires("send")],
        security=KEY,
        opt={"body": ReplayFilter},
        responses={202: ResponseSpec(ReplayedMany, media_type=MediaType.JSON, description="Accepted")},
    )
    async def replay_many(request: AnyRequest) -> Response[bytes]:
        """Up to `limit`, newest first, one new job for each job they come from. What may not be sent again is skipped
        and counted. Takes an Idempotency-Key."""
        asked = await read_body(request, ReplayFilter)
        wanted = wanted_of(asked)

        async def work(job_id: str, key: str | None, now_ms: int) -> ReplayedMany:
            return await replaying.many(wanted, asked.limit, Ask(holder(request), job_id, key, asked.again, now_ms))

        return json_answer(await once.answer(request, work), 202)

    return [list_dead_letters, replay_one, replay_many]


def _error_class(name: str | None) -> ErrorClass | None:
    for known in get_args(ErrorClass):
        if name == known:
            return known  # type: ignore[no-any-return]
    if name is None:
        return None
    raise BadRequest("INVALID_REQUEST", f"one of {', '.join(get_args(ErrorClass))}", field="class")
