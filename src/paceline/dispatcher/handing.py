"""SEND_MODE=api: what the pacer handed off is posted to the orchestrator until it has arrived or was taken back.

The hand-off itself (slot, daily unit, state) is done when a task comes here; what is left is the way into the outbox.
Nothing is lost: a task stays in `dispatch:handing` until the orchestrator's script moves it, so a dispatcher that dies
before or after its post leaves it to whoever looks when the lease is over. Nothing is repeated: that script moves a
task once, whoever posts it how often. What cannot be placed is taken back by the sweep of `outbox:deadlines`, as an
unclaimed hand-over is in `redis` mode.

Nothing it keeps matters; it awaits only ports. Neighbours: `pacer` hands off, `outbox_http` is the production port.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec
import structlog

from paceline.domain.ids import parse_task_id
from paceline.domain.states import TERMINAL, Byte
from paceline.kits.brain import BrainPort, NoBrain
from paceline.store.handing import HandOver
from paceline.store.store import Store
from paceline.store.texts import Texts

log = structlog.stdlib.get_logger(__name__)

BATCH = 16
"""Posts at once. A round takes as long as its slowest post; on one host the processor is the limit, some hundreds a
second (measured 170 on two busy cores)."""
LEASE_MS = 10_000
"""Longer than a post may take, so that one that is under way is not posted by another dispatcher too."""


class Post(msgspec.Struct, frozen=True):
    """One call of `POST /api/sessions/<session>/outbox/enqueue`."""

    session: str
    body: dict[str, str]
    request_id: str = ""
    """Of the request the message came with: the orchestrator's lines about this post have it too."""


class OutboxPort(Protocol):
    async def enqueue_many(self, posts: Sequence[Post]) -> list[str | None]:
        """For each post, in their order: None if it was answered with 2xx, else what went wrong. Never raises."""


class Handing:
    def __init__(self, store: Store, outbox: OutboxPort, brain: BrainPort | None = None) -> None:
        self._store = store
        self._outbox = outbox
        self._brain = brain or NoBrain()
        self._texts = Texts(store.jobs)
        self._away = False
        self.posted = 0
        self.failed = 0

    async def step(self, now_ms: int) -> int | None:
        """Posts what is due. Returns when the next is; None when none waits."""
        due = await self._store.handing.due(now_ms=now_ms, lease_ms=LEASE_MS, limit=BATCH)
        for task in due.ended:
            await self._clear(task, now_ms)
        posts = [post for hand_over in due.tasks if (post := await self._post(hand_over, now_ms))]
        answers = await self._outbox.enqueue_many(posts) if posts else []
        for post, problem in zip(posts, answers, strict=True):
            if problem is None:
                self.posted += 1
                self._note_back()
            else:
                await self._refused(post, problem, now_ms)
        return now_ms if due.tasks or due.ended else due.next_at

    async def _post(self, hand_over: HandOver, now_ms: int) -> Post | None:
        content = await self._texts.content(hand_over.task)
        parsed = parse_task_id(hand_over.task)
        if content is None or parsed is None:
            # It cannot become a message, today or tomorrow; an end that everybody sees is better than a phone held up.
            await self._store.outbox.settle(
                hand_over.task, "failed", now_ms=now_ms, from_=Byte.HANDED_OFF, unitBack=True, recipientOnly=True,
                code="JOB_MALFORMED", message="the text of this message cannot be read",
            )  # fmt: skip
            return None
        body = {"mode": content.mode, "to": hand_over.to, "jobId": parsed[0], "taskId": hand_over.task}
        if content.media is None:
            return Post(hand_over.session, body | {"text": content.text}, content.request_id)
        body |= {"mediaRef": content.media.ref, "caption": content.text}
        return Post(hand_over.session, body, content.request_id)

    async def _refused(self, post: Post, problem: str, now_ms: int) -> None:
        """A refusal and a lost answer look alike from here, so the task is asked: its state knows which it was."""
        state = await self._clear(post.body["taskId"], now_ms)
        if state != Byte.HANDED_OFF:
            return  # It ended, was taken back, or is in a worker's hands: the post is over, however it was answered.
        # Still handed off. The lease ends, and it is posted again; if it had arrived, it is no longer in the list.
        self.failed += 1
        fields = {"at": now_ms, "sessionId": post.session, "taskId": post.body["taskId"], "error": problem}
        self._brain.tell("SESSION_CONSUMER_ERROR", fields)
        if not self._away:
            about = {"session_id": post.session, "task_id": post.body["taskId"], "request_id": post.request_id}
            log.warning("a hand-over was not taken; it is posted again", reason=problem, **about)
        self._away = True

    async def _clear(self, task: str, now_ms: int) -> str:
        """If it was canceled on its way, its phone is free again and the day's unit returned. The state it is in."""
        return (await self._store.outbox.settle(task, "cleared", now_ms=now_ms, from_=TERMINAL)).state

    def _note_back(self) -> None:
        if self._away:
            log.info("hand-overs are taken again", failed=self.failed)
        self._away = False
