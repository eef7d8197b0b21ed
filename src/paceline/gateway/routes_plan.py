"""The route of the dry run."""

import msgspec
from litestar import MediaType, Response, post
from litestar.openapi.datastructures import ResponseSpec

from paceline.edge import Keys
from paceline.gateway.intake import Intake
from paceline.gateway.plan import JobPlan, Planner
from paceline.gateway.routes_common import CSV_BODY, KEY, read_job
from paceline.gateway.routes_sending import JOB_BODY_LIMIT
from paceline.gateway.schemas import JobRequest
from paceline.kits.clock import Clock
from paceline.kits.web import AnyRequest, Handler, json_answer
from paceline.store.store import Store

_encode = msgspec.json.Encoder().encode


def plan_routes(store: Store, intake: Intake, keys: Keys, clock: Clock) -> list[Handler]:
    planner = Planner(store, breathe=intake.breathe)

    @post(
        "/v1/jobs/plan",
        status_code=200,
        summary="When would this job be done?",
        tags=["Jobs"],
        # Who may send may know when; who may only look, too.
        guards=[keys.requires("read", "send")],
        security=KEY,
        opt={"body": JobRequest, **CSV_BODY},
        responses={200: ResponseSpec(JobPlan, media_type=MediaType.JSON, description="The plan")},
        request_max_body_size=JOB_BODY_LIMIT,
    )
    async def plan_job(request: AnyRequest) -> Response[bytes]:
        """A dry run of `POST /v1/jobs` with the same body: nothing is stored, nothing is sent, no file is fetched."""
        asked = await read_job(request, intake.breathe)
        now_ms = clock.now_ms()
        phone = await intake.phone_of(asked.session_id, asked.phone)
        picture = await intake.watcher.look(now_ms)
        found = await planner.plan(asked, phone, picture, now_ms=now_ms)
        await intake.check_file(asked)
        return json_answer(_encode(found), 200)

    return [plan_job]
