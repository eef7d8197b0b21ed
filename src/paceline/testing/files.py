"""Files that jobs send: kept by the gateway, served to workers, now and then missing or damaged on the way."""

import hashlib

from paceline.domain.errors import NotFound, Unavailable
from paceline.domain.media import Media, Mode
from paceline.testing.sim import Sim


class Files:
    def __init__(self, sim: Sim, trouble: float) -> None:
        self._sim = sim
        self._trouble = trouble
        self._contents: dict[str, bytes] = {}

    def keep(self, text: str) -> Media:
        content = text.encode()
        ref = f"{hashlib.sha256(content).hexdigest()}-txt"
        self._contents[ref] = content
        return Media(ref, "text/plain", len(content), "file.txt")

    async def by_ref(self, ref: str, mode: Mode) -> Media:
        return Media(ref, "text/plain", len(self._contents[ref]), "file.txt")

    async def from_url(self, url: str, mode: Mode, *, now_ms: int) -> Media:
        raise Unavailable("the World has no other servers")

    def served(self, ref: str) -> bytes:
        content = self._contents[ref]
        if self._sim.chance(self._trouble):
            raise NotFound("UNKNOWN_MEDIA", "it is not there", field="ref")
        if self._sim.chance(self._trouble):
            return content[:-1] + b"!"
        return content
