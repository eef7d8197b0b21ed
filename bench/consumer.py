"""The stub that stands where orchestrator and workers would: it takes what was handed over, waits until it may be sent,
and settles it as sent, as the orchestrator does with what comes together. Run by `dispatch.py`; prints what it saw as
JSON when its input ends. It claims nothing (`open_claim` and `claim_outbox` are not called) and brings no receipts.

It judges what it sees, from its own clock: how late each hand-over came after the moment the number was due (and how
late those are by now that have not come), how long a task waited here past its time, and whether any send came sooner
after the last one than the pacing allows.
"""

import asyncio
import gc
import heapq
import json
import select
import sys
import time
from itertools import chain

import uvloop
from fleet import RULES, now_ms, phone_of

from paceline.store import keys
from paceline.store.blocking import BlockingRedis
from paceline.store.caller import Caller
from paceline.store.client import RedisLink
from paceline.store.proofs import TOGETHER, Proof, Proofs
from paceline.store.rows import Pace
from paceline.store.scripts import ScriptConfig

TICK_S = 0.005
AT_ONCE = 200
SHORTEST_MS = int(RULES.policy.levels[0].delay_ms[0] * (1 - RULES.policy.jitter))  # type: ignore[index]


class Consumer:
    def __init__(self, socket: str) -> None:
        self._redis = BlockingRedis(socket)
        config = ScriptConfig(lead_ms=RULES.lead_ms)
        self._proofs = Proofs(Caller(RedisLink(f"unix://{socket}"), config), config)
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._holds: list[tuple[int, str, str, int]] = []
        self._sent: dict[str, tuple[int, int]] = {}
        """By number: when its last message was settled, and the rest that was drawn after it."""
        self._handed: set[str] = set()
        """Numbers whose next message has come and was not settled yet."""
        self.late: list[int] = []
        self.held: list[int] = []
        """How long after its time each was settled: what the stub itself adds."""
        self.settled = 0
        self.violations = 0

    def run(self) -> None:
        """Until it is told to end. What is seen before it is told to measure counts only if it came too soon."""
        while (word := _told()) != "end":
            if word == "measure":
                self.late, self.held = [], []
            began = time.monotonic()
            self._redis.answers()
            topics = self._redis.wakes()
            self._collect(list({topic[7:] for topic in topics if topic.startswith("outbox:")}))
            self._send()
            time.sleep(max(0.0, TICK_S - (time.monotonic() - began)))

    def _collect(self, sessions: list[str]) -> None:
        """What their numbers are busy with, when it may be sent, and the rest that follows it."""
        phones = [phone_of(int(session[1:])) for session in sessions]
        parts = [phones[start : start + AT_ONCE] for start in range(0, len(phones), AT_ONCE)]
        found = self._redis.read(*[("HMGET", keys.pace(), *part) for part in parts])
        for phone, text in zip(phones, chain.from_iterable(found), strict=True):
            pace = Pace.of(text)
            if pace.unsettled and phone not in self._handed:
                self._judge(phone, int(pace.slot), int(pace.last_now))
                heapq.heappush(self._holds, (int(pace.slot), pace.unsettled, phone, int(pace.gap_ms)))

    def not_come(self) -> list[int]:
        """How late those are that are due and were not handed over."""
        now = now_ms()
        due = (at + gap - RULES.lead_ms for phone, (at, gap) in self._sent.items() if phone not in self._handed)
        return [now - at for at in due if at < now]

    def _judge(self, phone: str, send_after: int, handed_at: int) -> None:
        self._handed.add(phone)
        if phone not in self._sent:
            return
        at, gap = self._sent[phone]
        self.violations += send_after < at + gap or send_after < at + SHORTEST_MS
        self.late.append(handed_at - max(at, at + gap - RULES.lead_ms))

    def _send(self) -> None:
        now = now_ms()
        proofs: list[Proof] = []
        while self._holds and self._holds[0][0] <= now:
            send_after, task, phone, gap = heapq.heappop(self._holds)
            self.held.append(now - send_after)
            self._handed.discard(phone)
            proofs.append(Proof(task, "sent", now, "2026-01-01", phone))
            self._sent[phone] = (now, gap)
        if proofs:
            self._runner.run(self._settle(proofs))
            self.settled += len(proofs)

    async def _settle(self, proofs: list[Proof]) -> None:
        parts = [proofs[start : start + TOGETHER] for start in range(0, len(proofs), TOGETHER)]
        for answers in await asyncio.gather(*map(self._proofs.settle, parts)):
            for answer in answers:
                if isinstance(answer, Exception):
                    raise answer


def _told() -> str:
    """The next word, if there is one."""
    return sys.stdin.readline().strip() or "end" if select.select([sys.stdin], [], [], 0)[0] else ""


def main() -> None:
    consumer = Consumer(sys.argv[1])
    # What it remembers of every number is no garbage, and looking through it would be lateness of its own.
    gc.disable()
    consumer.run()
    late = consumer.late + consumer.not_come()
    saw = {"late": late, "held": consumer.held, "settled": consumer.settled, "violations": consumer.violations}
    print(json.dumps(saw))


if __name__ == "__main__":
    main()
