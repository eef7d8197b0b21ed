"""Ids: a job is a ULID, a task is `<jobId>:<i>`, and the WhatsApp message id follows from the task id.

Because the message id is derived, a task that is delivered to a worker twice can only ever go out under one id.
"""

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LETTERS = frozenset(_CROCKFORD)
_PAIRS = [first + second for first in _CROCKFORD for second in _CROCKFORD]
_ULID_LENGTH = 26
_CHANCE = range(70, -1, -10)


def new_ulid(now_ms: int, rng: "Random") -> str:
    """48 bits of time and 80 bits of chance, sortable by time."""
    chance = rng.getrandbits(80)
    return _time_of(now_ms) + "".join([_PAIRS[(chance >> shift) & 1023] for shift in _CHANCE])


def derived_job_id(*parts: str) -> str:
    """The same parts always give the same id: how a caller's own name for a task makes it one task of ours.

    128 bits of a hash in the shape of a ULID; the time in front is chance here and says nothing.
    """
    named = "\0".join(parts).encode()
    return _written(int.from_bytes(hashlib.sha256(named).digest()[:16], "big"))


@lru_cache(maxsize=4)
def _time_of(now_ms: int) -> str:
    """Many ids are made in one millisecond."""
    return _written(now_ms << 80)[:10]


def _written(value: int) -> str:
    return "".join([_PAIRS[(value >> shift) & 1023] for shift in range(120, -1, -10)])


def is_job_id(text: str) -> bool:
    return len(text) == _ULID_LENGTH and _LETTERS.issuperset(text)


def task_id(job_id: str, index: int) -> str:
    return f"{job_id}:{index}"


def parse_task_id(text: str) -> tuple[str, int] | None:
    """The job and the index, or None for what is no task id."""
    job_id, _, index = text.partition(":")
    if not is_job_id(job_id) or not index.isascii() or not index.isdigit() or len(index) > 6:
        return None
    if index != str(int(index)):
        return None  # "007" would be a second key for message 7.
    return job_id, int(index)


@lru_cache(maxsize=4096)
def whatsapp_id(task: str) -> str:
    """The same task always has the same message id, in the shape WhatsApp's own web client uses."""
    return "3EB0" + hashlib.sha256(task.encode()).hexdigest()[:18].upper()
