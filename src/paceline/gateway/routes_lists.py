"""Routes that list: jobs, a job's messages, a person's messages. Each page is bounded and says how to go on."""

from typing import Annotated

from litestar import get
from litestar.params import FromPath, QueryParameter

from paceline.edge import Keys
from paceline.gateway.list_views import JobPage, MessagePage
from paceline.gateway.listing import Listing, job_filter
from paceline.gateway.routes_common import KEY, Cursor, Limit
from paceline.kits.clock import Clock
from paceline.kits.web import Handler
from paceline.store.store import Store

_MOMENT = "Unix milliseconds, or ISO 8601 with an offset"

States = Annotated[str, QueryParameter(name="state", max_length=256, description="one or several, with commas between")]
Tag = Annotated[str, QueryParameter(max_length=256, description="jobs that have this tag")]
By = Annotated[str, QueryParameter(name="acceptedBy", max_length=256, description="the id of the key that sent them")]
Single = Annotated[
    bool | None,
    QueryParameter(description="true: only what came as one message; false: only what came as a list of contacts"),
]
From = Annotated[str, QueryParameter(name="from", max_length=64, description=f"accepted then or later: {_MOMENT}")]
Until = Annotated[str, QueryParameter(max_length=64, description=f"accepted before: {_MOMENT}")]
To = Annotated[str, QueryParameter(max_length=64, description="a number in any notation that sending takes")]
PersonLimit = Annotated[int, QueryParameter(ge=1, le=200, description="messages in a page")]


def list_routes(store: Store, keys: Keys, clock: Clock) -> list[Handler]:
    listing = Listing(store)

    @get("/v1/jobs", summary="Jobs, newest first", tags=["Jobs"], guards=[keys.requires("read")], security=KEY)
    async def list_jobs(
        *,
        states: States = "",
        tag: Tag = "",
        accepted_by: By = "",
        single: Single = None,
        since: From = "",
        until: Until = "",
        cursor: Cursor = "",
        limit: Limit = 100,
    ) -> JobPage:
        """A page looks at 2,000 jobs at most: with a filter it may be short, or empty, and still have a
        `nextCursor`."""
        wanted = job_filter(state=states, tag=tag, by=accepted_by, single=single, since=since, until=until)
        return await listing.jobs(wanted, cursor, limit)

    @get(
        "/v1/jobs/{job_id:str}/messages",
        summary="The messages of a job",
        tags=["Jobs"],
        guards=[keys.requires("read")],
        security=KEY,
    )
    async def job_messages(
        job_id: FromPath[str], states: States = "", cursor: Cursor = "", limit: Limit = 100
    ) -> MessagePage:
        """In the order of its contacts, all of them or those in the named states."""
        return await listing.messages(job_id, states, cursor, limit, now_ms=clock.now_ms())

    @get(
        "/v1/messages",
        summary="A person's messages, newest first",
        tags=["Messages"],
        guards=[keys.requires("read")],
        security=KEY,
    )
    async def person_messages(to: To, cursor: Cursor = "", limit: PersonLimit = 100) -> MessagePage:
        """By when they were accepted: what was sent or has a number, and what still waits for one in the newest 200
        jobs that are not routed to the end. A search through very large jobs goes on with `nextCursor`."""
        return await listing.of_person(to, cursor, limit, now_ms=clock.now_ms())

    return [list_jobs, job_messages, person_messages]
