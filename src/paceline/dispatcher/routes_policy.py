"""The route that shows the policy: what a number may do at which age, and what holds for all."""

from litestar import get

from paceline.apidoc import KEY
from paceline.dispatcher.schemas import PolicyAnswer, TrustLevel
from paceline.edge import Keys
from paceline.kits.web import Handler
from paceline.policy import pacing
from paceline.policy.facts import Rules
from paceline.policy.trust import Level


def policy_route(rules: Rules, keys: Keys) -> Handler:
    @get("/policy", summary="The trust table", tags=["Fleet"], guards=[keys.requires("read")], security=KEY)
    async def policy() -> PolicyAnswer:
        """What this dispatcher was started with: the policy file, and the settings for what it leaves open."""
        return policy_answer(rules)

    return policy


def policy_answer(rules: Rules) -> PolicyAnswer:
    policy = rules.policy
    oldest = _pace(policy.levels[-1], rules)
    return PolicyAnswer(
        name=policy.name,
        levels=[_level(level, rules) for level in policy.levels],
        recipient_hours=policy.recipient_hours,
        jitter=policy.jitter,
        typing_ms=policy.typing_ms,
        burst_limit=oldest.burst_limit,
        burst_cooldown_ms=oldest.burst_cooldown_ms,
        global_rpm=rules.global_rpm or None,
    )


def _level(level: Level, rules: Rules) -> TrustLevel:
    pace = _pace(level, rules)
    return TrustLevel(
        name=level.name,
        max_age_days=level.max_age_days,
        rpm=pace.rpm,
        min_delay_ms=pace.min_ms,
        max_delay_ms=pace.max_ms,
        effective_rpm=round(pacing.effective_rpm(pace), 2),
        daily_cap=level.daily_cap,
        hours=level.hours,
    )


def _pace(level: Level, rules: Rules) -> pacing.Pace:
    return pacing.pace_for(level, rules.policy, rules.pace_defaults)
