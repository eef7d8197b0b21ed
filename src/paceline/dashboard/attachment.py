"""The file that goes with a job that is being written: what is shown is what is sent.

A file comes in two ways: its bytes, which are stored at the gateway, and from the browser the word that it begins, that
it has ended, and the address at which that has the picture. Any of it may be late, or of a file that was replaced
meanwhile, so the browser counts its uploads, and the newest counts. No I/O and no elements. Neighbour:
`pages.compose_file`.
"""


class Attachment:
    def __init__(self) -> None:
        self._turn = 0
        self._is_wanted = False
        self._address = ""
        self.is_under_way = False
        """Begun, and neither stored nor failed."""
        self.ref = ""
        """What the gateway calls it; empty until it is stored there."""

    @property
    def picture(self) -> str:
        """The address of the picture, if that is the one that is stored."""
        return self._address if self.ref else ""

    def begin(self, turn: int) -> bool:
        """Something is heard of this upload: whether it still matters, or was replaced, removed or failed. Until it is
        stored there is no file: not the one before either."""
        if turn > self._turn:
            self._turn, self._is_wanted, self.is_under_way = turn, True, True
            self._address = self.ref = ""
        return self._is_wanted and turn == self._turn

    def stored(self, turn: int, ref: str) -> bool:
        """Under this name, or not at all (empty). Whether that still matters."""
        if not self.begin(turn):
            return False
        self.ref, self.is_under_way = ref, False
        return True

    def seen(self, turn: int, address: str) -> None:
        """The browser has the file of that upload there."""
        if self.begin(turn):
            self._address = address

    def failed(self, turn: int) -> bool:
        """The browser could not bring it, or does not know whether it did. Whether that still matters."""
        if not self.begin(turn):
            return False
        self.remove()
        return True

    def remove(self) -> None:
        self._is_wanted = self.is_under_way = False
        self.ref = ""
