"""When a pause before the next start is over although the clock stands still.

Wall time stands still while the clock that it follows is set back (`kits.clock`), and a worker that died in that time
would wait for an hour instead of a second. So each pause is also measured by a clock that nobody sets. Neighbours:
`policy.reconcile` decides on pauses, `provisioner` asks here before.
"""

from collections.abc import Callable, Container

import msgspec

from paceline.policy.reconcile import Wait, Wanted


class Pauses:
    def __init__(self, monotonic_ms: Callable[[], int]) -> None:
        self._monotonic_ms = monotonic_ms
        self._ends: dict[str, tuple[int, int]] = {}
        """Of each session that waits: until when, and what that is by the monotonic clock."""

    def begin(self, wait: Wait, *, now_ms: int) -> None:
        """The same pause again goes on."""
        if self._ends.get(wait.session_id, (0, 0))[0] != wait.until_ms:
            self._ends[wait.session_id] = (wait.until_ms, self._monotonic_ms() + wait.until_ms - now_ms)

    def keep(self, sessions: Container[str]) -> None:
        """Of the others none waits any more."""
        self._ends = {session: ends for session, ends in self._ends.items() if session in sessions}

    def without_those_over(self, row: Wanted) -> Wanted:
        until_ms, end_ms = self._ends.get(row.session_id, (0, 0))
        is_over = until_ms == row.not_before and end_ms <= self._monotonic_ms()
        return msgspec.structs.replace(row, not_before=0) if is_over else row
