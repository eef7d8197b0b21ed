"""Random interleavings of all verbs: nothing is lost, doubled or miscounted. `walk` has the steps."""

from collections.abc import Callable
from random import Random

import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from .servers import LiveServer
from .walk import ACTIONS, Walk

seeds = st.integers(0, 2**32 - 1)
STRETCH = 25


class Machine(RuleBasedStateMachine):
    """Single steps, which hypothesis can shrink, and stretches of them, which get far."""

    client: redis.Redis

    @initialize()
    def start(self) -> None:
        self.walk = Walk(self.client)

    @rule(action=st.sampled_from(ACTIONS), seed=seeds)
    def one(self, action: Callable[[Walk, Random], None], seed: int) -> None:
        action(self.walk, Random(seed))

    @rule(seed=seeds)
    def many(self, seed: int) -> None:
        rng = Random(seed)
        for _ in range(STRETCH):
            self.walk.step(rng)

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "walk"):
            self.walk.check()


def test_whatever_the_order_nothing_is_lost_doubled_or_miscounted(server: LiveServer) -> None:
    machine = type("OnServer", (Machine,), {"client": server.client})
    # The other servers are there for what they do otherwise, not for more of the same.
    examples = 12 if server.name == "embedded" else 4
    limits = settings(
        max_examples=examples,
        stateful_step_count=20,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=limits)


PLANTED = {
    "an old look counts": {"hand_off.lua": ("if not is_same or score ~= leased_until then", "if false then")},
    "two routers": {"40_job.lua": ("~= cursor then return", "~= cursor and false then return")},
    "parking forgets the order": {
        "30_phone.lua": ("if not is_good or item.seq >= newest then break end", "if true then break end")
    },
    "cancel takes claimed ones": {"cancel_job.lua": ("'qrspth'", "'qrspthcu'")},
    "a settled one stays in hands": {
        "50_outbox.lua": ("if not take_item(K.processing(session), task) and", "if true and")
    },
    "a phone is forgotten": {"50_outbox.lua": ("  score_next(phone, now, slot, works)\n", "")},
    "a look goes by old facts": {"35_limits.lua": ("  forget_facts(phone)\n  make_due", "  make_due")},
    "a parked one is not noted": {"30_phone.lua": ("  marks.parkedAt = ms(at)\n", "")},
    "a correction counts as open": {
        "20_task.lua": ("    correct(job, K.job_sent(job), 1)\n", "    count_in(job, 1, 0, 1, now)\n")
    },
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(server: LiveServer, name: str) -> None:
    """The same walk on a broken script must fall over, or it proves nothing. (Rarer bugs have tests of their own.)"""
    if server.name != "embedded":
        pytest.skip("one server is enough for this")
    with pytest.raises(AssertionError):
        walk_far(server.client, PLANTED[name])


def walk_far(client: redis.Redis, mutate: dict[str, tuple[str, str]]) -> None:
    for seed in range(40):
        walk, rng = Walk(client, mutate), Random(seed)
        for _ in range(200):
            walk.step(rng)


def test_a_cap_that_is_off_by_one_is_found(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for what is decided beside the scripts."""
    if server.name != "embedded":
        pytest.skip("one server is enough for this")
    monkeypatch.setattr("paceline.store.pacers.is_over", lambda used, cap: cap is not None and used > cap + 1)
    with pytest.raises(AssertionError):
        walk_far(server.client, {})
