"""The answer to a plan: when a job would be done, and what would help."""

from paceline.client.answers_jobs import Answer, Rejected


class PlanDay(Answer, frozen=True, kw_only=True):
    date: str
    messages: int
    phones: int


class PlanPhone(Answer, frozen=True, kw_only=True):
    phone: str
    session_id: str | None = None
    messages: int
    finishes_at: int | None
    limited_by: str


class PlanRest(Answer, frozen=True, kw_only=True):
    phones: int
    messages: int


class PlanExpiry(Answer, frozen=True, kw_only=True):
    count: int
    why: str | None


class PlanRefused(Answer, frozen=True, kw_only=True):
    reason: str
    count: int


class Suggestion(Answer, frozen=True, kw_only=True):
    change: str
    finishes_at: int
    text: str


class JobPlan(Answer, frozen=True, kw_only=True):
    accepted: int
    suppressed: int
    duplicates: int
    rejected: list[Rejected]
    starts_at: int | None
    finishes_at: int | None
    days: list[PlanDay]
    phones: list[PlanPhone]
    other_phones: PlanRest
    will_expire: PlanExpiry
    refused: list[PlanRefused]
    bottleneck: str
    suggestions: list[Suggestion]
