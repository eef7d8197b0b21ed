"""The route by which a worker gets the file of a task: only of tasks that lie in its own session's outbox or hands.

The files are the gateway's, on the same machine. On several machines something that fetches and keeps them behind the
same `MediaFiles` can stand here; workers would not notice.
"""

from collections.abc import Callable
from typing import Annotated

from litestar import get
from litestar.params import FromPath, QueryParameter
from litestar.response import File

from paceline.apidoc import WORKER_SECRET
from paceline.domain.errors import NotFound
from paceline.domain.media import is_ref
from paceline.kits.media_store import MediaFiles
from paceline.kits.web import AnyRequest, Handler
from paceline.store.media import MediaBook

SessionId = Annotated[str, QueryParameter(name="sessionId", max_length=128, description="whose secret is shown")]


def media_route(book: MediaBook, files: MediaFiles, check: Callable[[AnyRequest, str], None]) -> Handler:
    @get("/api/worker/media/{ref:str}", summary="The file for a task", tags=["Workers"], security=WORKER_SECRET)
    async def media(request: AnyRequest, ref: FromPath[str], session_id: SessionId) -> File:
        """For a task that this session was given. 404 for anything else, whether it exists or not."""
        check(request, session_id)
        found = await book.held(session_id, ref) if is_ref(ref) else None
        if found is None or not files.has(ref, found.size):
            raise NotFound("UNKNOWN_MEDIA", "no task of this session needs such a file", field="ref")
        return File(files.path(ref), media_type=found.type)

    return media
