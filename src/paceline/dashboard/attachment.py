"""The file that goes with a job that is being written: what is shown is what is sent.

A file comes in two ways: its bytes, which are stored at the gateway, and from the browser the address at which that has
the picture. Either may be late, or of a file that was replaced meanwhile. No I/O and no elements. Neighbour:
`pages.compose_form`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Turn:
    """One file that came; the same one again is another turn."""

    name: str
    size: int


class Attachment:
    def __init__(self) -> None:
        self._turn: Turn | None = None
        self._seen: tuple[str, int, str] = ("", 0, "")
        self.ref = ""
        """What the gateway calls it; empty until it is stored there."""

    @property
    def picture(self) -> str:
        """The address of the picture, if that is the one that is stored."""
        name, size, address = self._seen
        is_it = self._turn is not None and (name, size) == (self._turn.name, self._turn.size)
        return address if self.ref and is_it else ""

    def begin(self, name: str, size: int) -> Turn:
        """A file has come. Until it is stored there is none: not the one before either."""
        self._turn = Turn(name, size)
        self.ref = ""
        return self._turn

    def is_current(self, turn: Turn) -> bool:
        return turn is self._turn

    def stored(self, turn: Turn, ref: str) -> bool:
        """Under this name, or not at all (empty). Whether that still matters: it may have been replaced."""
        if turn is not self._turn:
            return False
        self.ref = ref
        return True

    def seen(self, name: str, size: int, address: str) -> None:
        """The browser has a file of that name and size there."""
        self._seen = (name, size, address)

    def remove(self) -> None:
        self._turn, self.ref = None, ""
