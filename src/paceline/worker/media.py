"""The file of a task: fetched before anything is typed, and believed only if it is what its name says.

The last one is kept: a job of ten thousand sends one file ten thousand times. Awaits the protocol alone. Neighbour:
`sender`, which gives a task back that has no file.
"""

import hashlib

from paceline.domain.errors import PacelineError
from paceline.domain.media import is_ref, sha256_of
from paceline.worker.protocol import ProtocolUnavailable, RequestRefused, WorkerProtocol


class MediaUnavailable(PacelineError):
    """There is no file to send now. Certainly nothing went out."""


class MediaKeeper:
    def __init__(self, protocol: WorkerProtocol) -> None:
        self._protocol = protocol
        self._ref = ""
        self._content = b""

    async def get(self, ref: str, size: int) -> bytes:
        """The bytes that `ref` names. Raises MediaUnavailable."""
        if ref != self._ref:
            # Let go of the old one first, so that there is only ever one in memory.
            self._ref, self._content = "", b""
            self._content = await self._fetch(ref, size)
            self._ref = ref
        return self._content

    async def _fetch(self, ref: str, size: int) -> bytes:
        if not is_ref(ref):
            raise MediaUnavailable("the orchestrator named no file of a kind we know")
        try:
            content = await self._protocol.media(ref, size=size)
        except (ProtocolUnavailable, RequestRefused) as error:
            raise MediaUnavailable(str(error)) from error
        if len(content) != size:
            raise MediaUnavailable(f"{len(content)} bytes instead of {size}")
        if hashlib.sha256(content).hexdigest() != sha256_of(ref):
            raise MediaUnavailable("the file is not the one that was uploaded")
        return content
