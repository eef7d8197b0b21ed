"""How a job went over time: when its messages went out, from the messages themselves.

Nothing is counted while sending. Of a large job some of the messages tell of all. Neighbours: `jobs` has its present
state, `policy.course` what was planned.
"""

import msgspec

from paceline.domain.ids import task_id
from paceline.domain.states import WENT_OUT
from paceline.store import keys
from paceline.store.caller import Caller

ASKED = 400
"""Messages asked for their time, spread evenly over those that went out: a millisecond of Redis, and finer than a chart
can show."""


class Course(msgspec.Struct, frozen=True):
    sent: int
    """How many have gone out."""
    times: list[int]
    """When, in order; of a large job those of a sample."""


class Courses:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def of_job(self, job_id: str) -> Course:
        """Without times once the messages of an old job are not kept any more."""
        states = await self._caller.read_one("GET", keys.job_states(job_id)) or ""
        out = [index for index, byte in enumerate(states) if byte in WENT_OUT]
        asked = out if len(out) <= ASKED else [out[len(out) * step // ASKED] for step in range(ASKED)]
        commands = [("HGET", keys.message(task_id(job_id, index)), "sentAt") for index in asked]
        found = await self._caller.read(*commands) if commands else []
        # Lua may have written a whole number with an exponent.
        return Course(len(out), sorted(int(float(at)) for at in found if at is not None))
