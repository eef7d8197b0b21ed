"""What the platform knows of one account: whom it talks with, and whether it may start a chat with somebody new.

Belongs to the server's side and so outlives the workers: in the World an `Account` stands in the `LedgerBook`, shared
by all sessions of a number; on a disk its chats follow from the ledger's lines and its lock from a file beside them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from paceline.worker.drivers.base import Restriction
from paceline.worker.drivers.config import Behaviour


@dataclass(frozen=True)
class Standing:
    """How the account stands towards one person at one moment."""

    is_new: bool = False
    """There is no chat between them yet."""
    locked: bool = False
    """No chat may be started until the lock ends."""
    capped: bool = False
    """All chats of this cycle have been started."""


@dataclass
class Account:
    locked_until_ms: int = 0
    _chats: set[str] = field(default_factory=set)
    _cycle_began_ms: int = 0
    _cycle_chats: int = 0

    def standing(self, to: str, behaviour: Behaviour, now_ms: int) -> Standing:
        return Standing(
            is_new=to not in self._chats,
            locked=now_ms < self.locked_until_ms,
            capped=self._is_capped(behaviour, now_ms),
        )

    def talk(self, to: str, behaviour: Behaviour, at_ms: int) -> None:
        """A message to this person was accepted; the first one starts a chat and counts in its cycle."""
        if to in self._chats:
            return
        self._chats.add(to)
        if not self._cycle_chats or at_ms >= self.cycle_ends_ms(behaviour):
            self._cycle_began_ms, self._cycle_chats = at_ms, 0
        self._cycle_chats += 1

    def hear(self, sender: str) -> None:
        """This person wrote: there is a chat, which the account did not start."""
        self._chats.add(sender)

    def lock(self, until_ms: int) -> None:
        self.locked_until_ms = max(self.locked_until_ms, until_ms)

    def cycle_ends_ms(self, behaviour: Behaviour) -> int:
        return self._cycle_began_ms + behaviour.new_chats_cycle_ms

    def restrictions(self, behaviour: Behaviour, now_ms: int) -> Iterator[Restriction]:
        """The limits in force, as the server states them to a client that connects: each by itself, for they add up."""
        if now_ms < self.locked_until_ms:
            yield Restriction("TIME_LOCKED", self.locked_until_ms, now_ms)
        if self._is_capped(behaviour, now_ms):
            yield Restriction("CAPPED", self.cycle_ends_ms(behaviour), now_ms)

    def _is_capped(self, behaviour: Behaviour, now_ms: int) -> bool:
        if behaviour.new_chats == 0 or self._cycle_chats < behaviour.new_chats:
            return False
        return now_ms < self.cycle_ends_ms(behaviour)
