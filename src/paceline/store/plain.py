"""What the plain steps (`hand_plain.lua`, `prove_plain.lua`) are asked with: a list for each thing, over all orders.

A table for each order would cost Redis more than the order does. Tasks of a job stand together: their states are read
and written by a command for each job. Neighbours: `pacers` hands over, `proofs` settles.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

Page = tuple[str, int, list[str], list[str], list[str]]
"""A job, the place (from 1) of its first task, the indexes of its tasks, and what reads and writes their states."""


def has_index(task: str) -> bool:
    """Whether it ends as tasks do: the plain steps go by that number, which is written in one way only."""
    _, _, index = task.partition(":")
    return index.isascii() and index.isdigit() and (index[0] != "0" or index == "0")


def in_order(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows that begin with a job and an index there, a number: those of a job together, in their order."""
    return sorted(rows, key=itemgetter(0, 1))


def pages(rows: Sequence[tuple[Any, ...]], byte: str) -> list[Page]:
    """Of rows in order; `byte` is what their tasks become."""
    found: list[Page] = []
    place = 1
    for job, some in groupby(rows, key=itemgetter(0)):
        indexes = [str(row[1]) for row in some]
        found.append((job, place, indexes, *_fields(indexes, str(ord(byte)))))
        place += len(indexes)
    return found


def _fields(indexes: Sequence[str], value: str) -> tuple[list[str], list[str]]:
    reads = [word for index in indexes for word in ("GET", "u8", f"#{index}")]
    return reads, [word for index in indexes for word in ("SET", "u8", f"#{index}", value)]


def pairs(first: Iterable[str], second: Iterable[str]) -> list[str]:
    """As a command over many takes them."""
    return list(chain.from_iterable(zip(first, second, strict=True)))
