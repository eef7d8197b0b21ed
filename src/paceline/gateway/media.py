"""Media on its way in: an upload or an address becomes a stored file and a `mediaRef`, or is refused with nothing kept.

The bytes are on the disk before the file is recorded, and it is recorded before anybody is told of it. `sweep` removes
what no open job needs and nobody used for `MEDIA_KEPT_DAYS`. Awaits only the store and its ports (`in_thread` for the
disk, `SafeHttp` for the network). Neighbours: `routes_media` reads uploads, `intake` asks for a job's media.
"""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from paceline.domain.errors import BadRequest, Busy, NotFound, TooLarge
from paceline.domain.media import (
    LOOKED_AT,
    TYPES,
    Kind,
    Media,
    Mode,
    declared_kind,
    fits,
    looks_like,
    may_be_text,
    new_ref,
    shown_name,
    types_said,
)
from paceline.gateway.media_room import MediaRoom
from paceline.kits.failpoint import failpoint
from paceline.kits.media_store import Draft, MediaFiles
from paceline.kits.safe_http import SafeHttp, SafeHttpError
from paceline.store.store import Store

DAY_MS = 86_400_000
FETCH_TIMEOUT_S = 15
"""For a whole download. Well below the half minute after which a repeat takes over a request that was cut off."""
FETCHES_AT_ONCE = 8
"""Downloads are held in memory, so there are not many of them."""
SWEEP_EVERY_MS = 600_000
SWEEP_BATCH = 100
FOLDERS = 256
LEFT_BEHIND_MS = 3_600_000
"""A draft, or a file that was never recorded, is a crash's after so long; no upload takes an hour."""


InThread = Callable[..., Awaitable[Any]]


class Limits(msgspec.Struct, frozen=True):
    max_bytes: int = 16 * 1_048_576
    kept_days: int = 30
    max_total_bytes: int = 10_240 * 1_048_576


class Stored(msgspec.Struct, frozen=True):
    media: Media
    expires_at: int


async def _at_once(call: Callable[..., Any], *arguments: Any) -> Any:
    return call(*arguments)


class MediaDesk:
    def __init__(
        self,
        store: Store,
        files: MediaFiles,
        *,
        limits: Limits | None = None,
        http: SafeHttp | None = None,
        in_thread: InThread = _at_once,
    ) -> None:
        self.limits = limits or Limits()
        self._store = store
        self._files = files
        self._http = http or SafeHttp()
        self._in_thread = in_thread
        self._room = MediaRoom(files, self.limits.max_total_bytes, in_thread)
        self._fetching = 0
        self._folder = 0

    async def take(
        self,
        chunks: AsyncIterable[bytes],
        content_type: str,
        name: str | None,
        *,
        field: str,
        now_ms: int,
        mode: Mode = "document",
    ) -> Stored:
        """A file that comes in, checked as it comes. `field` is what the caller called it."""
        kind = declared_kind(content_type, name)
        if kind is None or not fits(kind.type, mode):
            raise _wrong_type("no type that can be sent so", field, mode)
        with _disk():
            draft = await self._in_thread(self._files.draft)
        try:
            await self._receive(draft, chunks, kind, field, mode)
            return await self._keep(draft, kind, shown_name(name), field, now_ms)
        finally:
            draft.discard()

    async def from_url(self, url: str, mode: Mode, *, now_ms: int) -> Media:
        """Fetched once, now; later nobody looks at the address again."""
        if self._fetching >= FETCHES_AT_ONCE:
            raise Busy("too many files are being fetched")
        self._fetching += 1
        try:
            fetched = await self._http.fetch(
                url, max_bytes=self.limits.max_bytes, types=types_said(mode), timeout_s=FETCH_TIMEOUT_S
            )
        except SafeHttpError as error:
            raise BadRequest("MEDIA_URL", f"the file cannot be fetched: {error}", field="mediaUrl") from error
        finally:
            self._fetching -= 1
        name = unquote(urlsplit(fetched.url).path.rpartition("/")[2], errors="replace")
        chunks = _once(fetched.content)
        stored = await self.take(chunks, fetched.content_type, name, field="mediaUrl", now_ms=now_ms, mode=mode)
        return stored.media

    async def by_ref(self, ref: str, mode: Mode) -> Media:
        media = await self._store.media.get(ref)
        with _disk():
            is_there = media is not None and await self._in_thread(self._files.has, media.ref, media.size)
        if media is None or not is_there:
            raise gone()
        if not fits(media.type, mode):
            raise _wrong_type(f"{media.type} cannot be sent as an image", "mediaRef", mode)
        return media

    async def sweep(self, now_ms: int) -> int | None:
        """Housekeeping: forgets and removes what nobody needs, and what crashes left. Returns when to look again."""
        before_ms = now_ms - self.limits.kept_days * DAY_MS
        dropped = await self._store.media.drop(before_ms=before_ms, now_ms=now_ms, limit=SWEEP_BATCH)
        failpoint("media-forgotten")
        with _disk():
            for ref in dropped.refs:
                if await self._in_thread(self._files.put_aside, ref):
                    await self._end(ref)
            await self._clear_up_after_crashes(now_ms - LEFT_BEHIND_MS)
        self._room.look_again()
        return now_ms if dropped.more else now_ms + SWEEP_EVERY_MS

    async def _receive(self, draft: Draft, chunks: AsyncIterable[bytes], kind: Kind, field: str, mode: Mode) -> None:
        head = b""
        async for chunk in chunks:
            head += chunk[: LOOKED_AT - len(head)] if len(head) < LOOKED_AT else b""
            if kind.looks == "text" and not may_be_text(chunk, head=head):
                raise _wrong_type("the file is not what its type says", field, mode)
            if draft.size + len(chunk) > self.limits.max_bytes:
                limit = self.limits.max_bytes
                raise TooLarge("MEDIA_TOO_LARGE", f"at most {limit:,} bytes", field=field, details={"limit": limit})
            with _disk():
                await self._in_thread(draft.write, chunk)
        if draft.size == 0:
            raise BadRequest("INVALID_REQUEST", "the file is empty", field=field)
        if not looks_like(kind, head):
            raise _wrong_type("the file is not what its type says", field, mode)

    async def _keep(self, draft: Draft, kind: Kind, name: str | None, field: str, now_ms: int) -> Stored:
        media = Media(new_ref(draft.sha256, kind), kind.type, draft.size, name)
        with _disk():
            # One that is there already takes no more room.
            is_there = await self._in_thread(self._files.has, media.ref, media.size)
            async with self._room.for_file(0 if is_there else media.size, field=field, now_ms=now_ms):
                await self._in_thread(self._files.keep, draft, media.ref)
        failpoint("media-kept-not-recorded")
        await self._store.media.save(media, now_ms=now_ms)
        with _disk():
            # Housekeeping may have taken the same file away a moment before it was recorded anew.
            if not await self._in_thread(self._files.has, media.ref, media.size):
                raise Busy("the file was being removed just then; send it again")
        return Stored(media, now_ms + self.limits.kept_days * DAY_MS)

    async def _clear_up_after_crashes(self, before_ms: int) -> None:
        await self._in_thread(self._files.drop_drafts, before_ms)
        for name in await self._in_thread(self._files.in_trash, before_ms):
            await self._end(name)
        # One of the folders each time: all of them within two days.
        names = await self._in_thread(self._files.names, self._folder, before_ms)
        self._folder = (self._folder + 1) % FOLDERS
        for name in sorted(set(names) - await self._store.media.known(names)):
            if await self._in_thread(self._files.put_aside, name):
                await self._end(name)

    async def _end(self, name: str) -> None:
        """Of a file that was put aside. Who recorded it before this look gets it back; who records it after this
        look sees that it is not there."""
        if await self._store.media.known([name]):
            await self._in_thread(self._files.put_back, name)
        else:
            await self._in_thread(self._files.forget, name)


def gone() -> NotFound:
    return NotFound("UNKNOWN_MEDIA", "there is no such file; upload it (again)", field="mediaRef")


def _wrong_type(message: str, field: str, mode: Mode) -> BadRequest:
    return BadRequest(
        "MEDIA_TYPE", message, field=field, details={"allowed": [type_ for type_ in TYPES if fits(type_, mode)]}
    )


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


@contextmanager
def _disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Busy(f"the disk does not take it: {type(error).__name__}") from error
