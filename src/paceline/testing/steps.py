"""What the scheduler of the World knows of: requests a coroutine stops at, processes, and what may go wrong."""

from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from typing import Any


class Request:
    """What a coroutine waits for."""

    __slots__ = ()

    def __await__(self) -> Generator["Request", Any, Any]:
        return (yield self)


@dataclass(slots=True)
class Pause(Request):
    until_ms: int
    key: str = ""
    """Woken early by `Sim.notify(key)`."""


@dataclass(slots=True)
class Do(Request):
    """One call that changes or reads the shared state, made on behalf of `process`."""

    process: "Process"
    call: Callable[[], Any]


@dataclass(slots=True)
class Order(Request):
    """The same in two halves: others go on between what is sent and its answer."""

    process: "Process"
    send: Callable[[], None]
    take: Callable[[], Any]


@dataclass(slots=True)
class Point(Request):
    """Nothing but a chance for another to go first, or for `process` to fail."""

    process: "Process"


class ProcessDied(Exception):
    """Seen by a coroutine of another process that was waiting for an answer from the one that died."""


class Killed(BaseException):
    """Thrown where a process dies; nothing may catch it but the scheduler."""

    def __init__(self, process: "Process") -> None:
        super().__init__(process.name)
        self.process = process


@dataclass(eq=False, slots=True)
class Thread:
    process: "Process"
    coroutine: Coroutine[Request, Any, Any]
    request: Request | None = None
    value: Any = None
    error: BaseException | None = None
    alive: bool = True
    sleep: int = 0
    """Which of its sleeps it is in. An alarm that was set for an earlier one rings for nobody."""


@dataclass(eq=False)
class Process:
    """Something that crashes as a whole. `boot` gives its coroutines anew after each crash."""

    name: str
    boot: Callable[[], list[Coroutine[Request, Any, Any]]]
    threads: list[Thread] = field(default_factory=list)
    up: bool = False
    boot_at_ms: int = 0
    frozen_until_ms: int = 0
    crashes: int = 0
    seen_ms: int = 0
    """The latest time its clock has shown in this life: it stands still there when the clock it follows is set back."""
    on_death: Callable[[], None] | None = None
    """Somebody else decides what follows; without one it boots again after a while."""


@dataclass
class Faults:
    """How likely each fault is at each step, until `until_ms`. All zero is a quiet world."""

    crash: float = 0.0
    lose_reply: float = 0.0
    refuse: float = 0.0
    freeze: float = 0.0
    until_ms: int = 0
    freeze_ms: tuple[int, int] = (1_000, 200_000)
    restart_ms: tuple[int, int] = (50, 20_000)
