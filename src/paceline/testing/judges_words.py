"""Judges of what workers tell: in whatever order it comes, what was proven stays, and who says stop is told so once
(I1, I9)."""

from collections import Counter
from collections.abc import Iterator

from paceline.testing.evidence import Evidence

STEPS = ("sent", "delivered", "read")


def what_was_proven_stays(evidence: Evidence) -> Iterator[str]:
    """A message is at least what was proven of it, however late another word about it came."""
    for task, proven in evidence.outside.proven:
        state = evidence.state(task) if task in evidence.messages else ""
        if state in STEPS and STEPS.index(state) < STEPS.index(proven):
            yield f"{task} was proven {proven} and is called {state}"


def stop_is_confirmed_once(evidence: Evidence) -> Iterator[str]:
    """Only to those who said it, by the number they said it to, and never again."""
    told = Counter(evidence.to(task) for task in evidence.confirmations)
    for who, count in told.items():
        if count > 1:
            yield f"{who} was told {count} times that they are not written to any more"
        if who not in evidence.outside.said_stop:
            yield f"{who} never said stop and was told that it was heard"
    for placed in evidence.outside.confirmations:
        heard = {phone for phone, who, _ in evidence.outside.wrote if who == evidence.to(placed.task)}
        if placed.phone not in heard:
            yield f"{placed.task} is answered by {placed.phone}, which they had not written to"
