"""A link that blocks until Redis has answered. For the World, whose steps must end before the next one begins.

It speaks the protocol itself, for two reasons. A run of the World is thousands of tiny calls over a local socket, one
after the other, and the client library's pools, retries and observers would cost more than Redis does. And it hears the
wake-ups on the same connection (RESP3 pushes). Some servers push what a script publishes before its answer, some behind
it; each order is followed by a word whose answer is waited for, too, so that it is here with the answer in every run.
"""

import socket
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import hiredis
import redis

from paceline.store.client import Command, topics
from paceline.store.keys import WAKE_CHANNEL
from paceline.store.scripts import Script

_READ_BYTES = 65_536
_WORD = ("ECHO", "")
"""Behind each order of a script."""
_SENT_TOGETHER = 8
"""Orders that are begun go out so many at a time, if nobody waits for an answer sooner."""


class BlockingRedis:
    def __init__(self, socket_path: str) -> None:
        self._path = socket_path
        self._socket: socket.socket | None = None
        self._reader = hiredis.Reader(encoding="utf-8", replyError=redis.ResponseError)
        # How the client library shapes answers (INFO as a dictionary): the same here.
        self._shapes: dict[str, Callable[[Any], Any]] = dict(redis.Redis(protocol=3).response_callbacks)
        self._loaded: set[str] = set()
        self._wakes: list[str] = []
        self._outgoing: list[bytes] = []
        self._begun: deque[Sequence[Command]] = deque()
        """What was begun and has no answer yet, the earliest first."""
        self._answered: deque[list[Any]] = deque()

    def run(self, script: Script, argument: bytes) -> Any:
        return self._call([self._order(script, argument), _WORD])[0]

    def read(self, *commands: Command) -> list[Any]:
        return self._shaped(commands, self._call(commands))

    # The same in two halves, for a caller who has something else to do while Redis works

    def begin_run(self, script: Script, argument: bytes) -> None:
        self.begin_read(self._order(script, argument), _WORD)

    def begin_read(self, *commands: Command) -> None:
        """Everything that is begun is carried out in this order, and before what is called as a whole."""
        self._outgoing += map(_packed, commands)
        self._begun.append(commands)
        if len(self._outgoing) >= _SENT_TOGETHER:
            self._send_begun(self._socket or self._connect())

    def end(self) -> list[Any]:
        """The answers to the earliest that was begun and is not ended."""
        if not self._answered:
            self._receive_begun()
        return self._answered.popleft()

    def wakes(self) -> list[str]:
        """What scripts have published since the last look."""
        found, self._wakes = self._wakes, []
        return found

    def answers(self) -> bool:
        """Whether the server is there yet."""
        try:
            return self._call([("PING",)]) == ["PONG"]
        except (OSError, redis.ResponseError):
            self.close()
            return False

    def flush(self) -> None:
        self._call([("FLUSHDB",)])

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _call(self, commands: Iterable[Command]) -> list[Any]:
        """All of them in one go; nothing else speaks on this connection, so the answers come in order."""
        while self._begun:
            self._receive_begun()
        link = self._socket or self._connect()
        packed = [_packed(command) for command in commands]
        link.sendall(b"".join(packed))
        return self._received(link, len(packed))

    def _order(self, script: Script, argument: bytes) -> Command:
        if script.sha not in self._loaded:
            self._call([("SCRIPT", "LOAD", script.source)])
            self._loaded.add(script.sha)
        return ("EVALSHA", script.sha, 0, argument)

    def _send_begun(self, link: socket.socket) -> None:
        link.sendall(b"".join(self._outgoing))
        self._outgoing.clear()

    def _receive_begun(self) -> None:
        commands = self._begun.popleft()
        answers = self._received(self._socket or self._connect(), len(commands))
        if commands[-1] is _WORD:
            answers.pop()
        self._answered.append(self._shaped(commands, answers))

    def _received(self, link: socket.socket, wanted: int) -> list[Any]:
        answers: list[Any] = []
        while len(answers) < wanted:
            answer = self._next(link)
            if isinstance(answer, hiredis.PushNotification):
                self._wakes += topics(answer[2]) if answer[0] == "message" else []
            else:
                answers.append(answer)
        # Not before all of them are here: what is left would be taken for the answers of the next call.
        if problem := next((answer for answer in answers if isinstance(answer, redis.ResponseError)), None):
            raise problem
        return answers

    def _shaped(self, commands: Iterable[Command], answers: list[Any]) -> list[Any]:
        for index, command in enumerate(commands):
            shape = self._shapes.get(str(command[0]))
            if shape is not None:
                answers[index] = shape(answers[index])
        return answers

    def _next(self, link: socket.socket) -> Any:
        while (answer := self._reader.gets()) is False:
            if self._outgoing:
                self._send_begun(link)
            received = link.recv(_READ_BYTES)
            if not received:
                raise ConnectionError("Redis closed the connection")
            self._reader.feed(received)
        return answer

    def _connect(self) -> socket.socket:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(self._path)
        self._call([("HELLO", 3)])
        self._socket.sendall(_packed(("SUBSCRIBE", WAKE_CHANNEL)))
        return self._socket


def _packed(command: Command) -> bytes:
    packed: bytes = hiredis.pack_command(tuple(command))  # type: ignore[arg-type]  # its stub says: one word only
    return packed
