"""Live events without I/O: takes the bytes of a stream, gives events, and says where and when to go on after its end.

A stream that ends is nothing unusual (the gateway ends each after 15 minutes): it is opened again after the last event
that came. Neighbours: `sync` and `aio` open the connection and feed it.
"""

from collections.abc import Iterator, Sequence

import msgspec

from paceline.client.answers_events import GAP, Event, Told
from paceline.client.calls import Repeat, Service, query
from paceline.client.errors import BadAnswer
from paceline.client.reading import Ask, Lost, Reply, error_of, retry_after
from paceline.client.talking import Talker, may_repeat

LINE_LIMIT = 1_048_576
"""An event has ids, states, tags and at most 8 KB of metadata."""
SILENCE_SECONDS = 45.0
"""The gateway says something every 15 s; three times that without a word, and nobody is there."""


class Stream:
    def __init__(self, talker: Talker, types: str | Sequence[str], after: str | None) -> None:
        self._talker = talker
        self._where = talker.where[Service.GATEWAY]
        self._types = types if isinstance(types, str) else ",".join(types)
        self.last_id = after
        self._retry_seconds = 2.0
        self._failures = 0
        self._reset()

    def _reset(self) -> None:
        self._rest = b""
        self._type = ""
        self._id: str | None = None
        self._data: list[bytes] = []
        self._is_alive = False

    def ask(self) -> Ask:
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if self.last_id:
            headers["Last-Event-ID"] = self.last_id
        return Ask(Service.GATEWAY, "GET", "/v1/events", query(types=self._types), headers)

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that are complete with this. Lines are split at newlines only: a text may hold what Unicode calls
        the end of a line."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LINE_LIMIT:
            raise BadAnswer(f"{self._where} does not answer like a service of Paceline: a line without end")
        for line in lines:
            found = self._line(line.removesuffix(b"\r"))
            if found is not None:
                yield found

    def _line(self, line: bytes) -> Event | None:
        if not line:
            return self._block()
        if line.startswith(b":"):
            self._is_alive = True
            return None
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"id" and b"\0" not in value:
            self._id = value.decode("ascii", "replace")
        elif name == b"event":
            self._type = value.decode("ascii", "replace")
        elif name == b"data":
            self._data.append(value)
        elif name == b"retry" and value.isdigit():
            self._retry_seconds = min(60.0, int(value) / 1000)
        return None

    def _block(self) -> Event | None:
        type_, id_, data = self._type, self._id, b"\n".join(self._data)
        self._type, self._id, self._data = "", None, []
        if id_:
            self.last_id = id_
        if not data:
            return None
        self._is_alive = True
        if type_ == GAP:
            return Event(id=self.last_id or "", type=GAP, timestamp="", data={})
        try:
            told = msgspec.json.decode(data, type=Told)
        except msgspec.DecodeError as error:
            raise BadAnswer(f"{self._where} sends no events of ours: {error}") from error
        return Event(id=id_ or "", type=told.type, timestamp=told.timestamp, data=told.data)

    def ended(self, heard: Reply | Lost | None) -> float:
        """The connection is over; None if it just ended. Seconds until the next one, or the error that ends it all:
        too many in a row that brought nothing."""
        retries, rng = self._talker.retries, self._talker.outside.rng
        if self._is_alive:
            self._failures = 0
            self._reset()
            return self._retry_seconds * rng.random()
        self._reset()
        self._failures += 1
        if heard is None:
            heard = Lost("the stream of events ended before it began", maybe_done=False)
        pause = None
        if may_repeat(Repeat.HARMLESS, heard):
            pause = retries.pause(self._failures, retry_after(heard), rng)
        if pause is None:
            error = error_of(heard, self._where, self._failures)
            raise error
        return pause
