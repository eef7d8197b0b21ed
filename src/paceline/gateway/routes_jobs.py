"""Routes about accepted work: how a job or a message is doing; stopping, holding and resuming a job."""

from litestar import get, post
from litestar.params import FromPath

from paceline.domain.errors import Conflict, NotFound
from paceline.domain.ids import is_job_id
from paceline.edge import Keys
from paceline.gateway import answers
from paceline.gateway.intake import Intake
from paceline.gateway.routes_common import KEY
from paceline.gateway.views import Backlog, JobCanceled, JobPaused, JobResumed, JobStatus, JobTimeline, MessageStatus
from paceline.gateway.waiting import Teller
from paceline.kits.clock import Clock
from paceline.kits.web import Handler
from paceline.store import keys as keyspace
from paceline.store.store import Store

_BACKLOG = (
    ("scheduled", "ZCARD", keyspace.scheduled()),
    ("retrying", "ZCARD", keyspace.task_retry()),
    ("sending", "ZCARD", keyspace.deadlines()),
)


def job_routes(store: Store, intake: Intake, keys: Keys, clock: Clock) -> list[Handler]:
    @get(
        "/v1/jobs/{job_id:str}",
        summary="How a job is doing",
        tags=["Jobs"],
        guards=[keys.requires("read")],
        security=KEY,
    )
    async def job_status(job_id: FromPath[str]) -> JobStatus:
        """What was asked for, how many of its messages are in which state, why it waits and when it should be done.
        Kept for `JOBS_KEPT_DAYS` (90) after its end."""
        now_ms = clock.now_ms()
        view = await store.jobs.view(job_id) if is_job_id(job_id) else None
        if view is None:
            raise _no_job()
        phone = view.job.phone
        timezone = await store.sessions.phone_timezone(phone) if phone else None
        teller = Teller(await store.queues.fleet(), phone, timezone, now_ms=now_ms)
        held_by = await store.rounds.held_by(job_id)
        return answers.job_status(view, held_by, await intake.watcher.look(now_ms), teller, now_ms=now_ms)

    @get(
        "/v1/backlog",
        summary="All that waits, and when it should have gone out",
        tags=["Jobs"],
        guards=[keys.requires("read")],
        security=KEY,
    )
    async def backlog() -> Backlog:
        """Of all jobs and single sends together, by a picture of the fleet that is a second old, of a large one some
        seconds."""
        now_ms = clock.now_ms()
        picture = await intake.watcher.look(now_ms)
        lengths = await store.pacers.queue_status(_BACKLOG)
        later = [await store.queues.last_scheduled(), await store.rounds.due_until(picture.unrouted_jobs)]
        due_until = max((at for at in later if at is not None and at > now_ms), default=None)
        return answers.backlog(picture, lengths, due_until, now_ms=now_ms)

    @get(
        "/v1/jobs/{job_id:str}/timeline",
        summary="Planned against actual",
        tags=["Jobs"],
        guards=[keys.requires("read")],
        security=KEY,
    )
    async def job_timeline(job_id: FromPath[str]) -> JobTimeline:
        """How many messages should have gone out by when, and how many had. The plan is that of the moment it was
        accepted; `estimatedCompletion` of the job is the present one."""
        job = await store.jobs.get(_checked(job_id))
        if job is None:
            raise _no_job()
        return answers.job_timeline(job, await store.courses.of_job(job_id))

    @post(
        "/v1/jobs/{job_id:str}/cancel",
        status_code=200,
        summary="Stop what no worker has claimed",
        tags=["Jobs"],
        guards=[keys.requires("send")],
        security=KEY,
    )
    async def cancel_job(job_id: FromPath[str]) -> JobCanceled:
        """Nothing vanishes: each message that is stopped ends `canceled`."""
        answer = await store.jobs.cancel(_checked(job_id), now_ms=clock.now_ms())
        _raise_for(answer.code, answer.state)
        return JobCanceled(job_id=job_id, state="CANCELED", canceled=answer.canceled, open=answer.open)

    @post(
        "/v1/jobs/{job_id:str}/pause",
        status_code=200,
        summary="Hold what no worker has claimed",
        tags=["Jobs"],
        guards=[keys.requires("send")],
        security=KEY,
    )
    async def pause_job(job_id: FromPath[str]) -> JobPaused:
        """Its messages wait until the job is resumed or canceled, or until they expire. Pausing again is no error."""
        answer = await store.queues.pause_job(_checked(job_id), now_ms=clock.now_ms())
        _raise_for(answer.code, answer.state)
        return JobPaused(
            job_id=job_id,
            state=answer.state,
            paused_at=answer.paused_at,
            waiting=answer.waiting,
            claimed=answer.claimed,
        )

    @post(
        "/v1/jobs/{job_id:str}/resume",
        status_code=200,
        summary="Let a paused job go on",
        tags=["Jobs"],
        guards=[keys.requires("send")],
        security=KEY,
    )
    async def resume_job(job_id: FromPath[str]) -> JobResumed:
        """It goes on where it stood, in its old order."""
        answer = await store.queues.resume_job(_checked(job_id), now_ms=clock.now_ms())
        _raise_for(answer.code, answer.state)
        return JobResumed(job_id=job_id, state=answer.state, released=answer.released)

    @get(
        "/api/v1/messages/{message_id:str}/status",
        summary="How a message is doing, and why it waits",
        tags=["Messages"],
        guards=[keys.requires("read")],
        security=KEY,
    )
    async def message_status(message_id: FromPath[str]) -> MessageStatus:
        """Its state and what happened to it, each try with its error; while it waits, why and until when."""
        view = await store.jobs.message(message_id)
        if view is None:
            raise NotFound("UNKNOWN_MESSAGE", "there is no such message", field="messageId")
        phone = view.phone or view.job.phone
        timezone = view.phone_known.get("timezone")
        if phone is not None and view.phone is None:
            timezone = await store.sessions.phone_timezone(phone)
        teller = Teller(await store.queues.fleet(), phone, timezone, now_ms=clock.now_ms())
        return answers.message_status(view, teller)

    return [backlog, job_status, job_timeline, cancel_job, pause_job, resume_job, message_status]


def _checked(job_id: str) -> str:
    if not is_job_id(job_id):
        raise _no_job()
    return job_id


def _raise_for(code: str, state: str) -> None:
    if code == "GONE":
        raise _no_job()
    if code == "CLOSED":
        raise Conflict("JOB_CLOSED", "this job has ended already", details={"state": state})
    if code == "NOT_PAUSED":
        raise Conflict("JOB_NOT_PAUSED", "this job is not paused", details={"state": state})


def _no_job() -> NotFound:
    return NotFound("UNKNOWN_JOB", "there is no such job", field="jobId")
