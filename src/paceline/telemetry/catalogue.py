"""Every metric there is: its name, kind, labels, and what it means. docs/metrics.md is made from this table.

Names begin with `paceline_` and end with their unit: seconds, bytes, messages; counters with `_total`. A label's values
are a closed list, never a number, an address or what a caller wrote. The one label that could grow with the fleet,
`session`, has at most `WORST` values and one for all others.
"""

from paceline.kits.metrics import Metric

WORST = 20
"""Sessions that are told of by name: a screen full. At 10,000 each one more would be another 20,000 series a day."""
OTHERS = "_others"
"""Stands for all other sessions; no session can have this name."""
OTHER = "other"
"""Stands for what is not in a closed list: a code a worker made up, a method nobody knows."""

_QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_STAGES = (0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0, 7_200.0, 43_200.0, 172_800.0)
"""From a hand-over within the process to a message that waits over the weekend."""
_LATENESS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

# Every service

BUILD = Metric(
    "paceline_build_info", "gauge", "Which service this is, and its version; always 1.", ("service", "version")
)
HTTP_REQUESTS = Metric(
    "paceline_http_requests_total",
    "counter",
    "Requests that were answered, by route (its template, not the path) and status.",
    ("method", "route", "status"),
)
HTTP_SECONDS = Metric(
    "paceline_http_request_duration_seconds",
    "histogram",
    "How long answers took; a long poll or a stream takes as long as it is wanted.",
    ("method", "route"),
    _QUICK,
)
REDIS_SECONDS = Metric(
    "paceline_redis_call_duration_seconds", "histogram", "How long Redis took to answer this process.", buckets=_QUICK
)
REDIS_VERBS = Metric(
    "paceline_redis_verb_duration_seconds", "summary", "The same by script; `read` are plain reads.", ("verb",)
)
REDIS_ERRORS = Metric("paceline_redis_errors_total", "counter", "Calls that Redis did not answer, or refused.")
REDIS_USED = Metric("paceline_redis_memory_used_bytes", "gauge", "Memory that Redis has in use.")
REDIS_MAX = Metric(
    "paceline_redis_memory_max_bytes",
    "gauge",
    "What Redis may use at most; 0 is no limit. Above 80 % intake answers 503.",
)

# Gateway

JOBS_ACCEPTED = Metric("paceline_jobs_accepted_total", "counter", "Jobs, batches and single sends that were accepted.")
MESSAGES_ACCEPTED = Metric("paceline_messages_accepted_total", "counter", "Messages in them.")
WEBHOOK_POSTS = Metric(
    "paceline_webhook_posts_total",
    "counter",
    "Posts to customers' webhooks: delivered, to be tried again, or given up.",
    ("outcome",),
)
WEBHOOK_SECONDS = Metric(
    "paceline_webhook_post_duration_seconds", "histogram", "How long receivers took to answer.", buckets=_QUICK
)
WEBHOOK_PENDING = Metric("paceline_webhook_pending_events", "gauge", "Events in the outboxes of webhooks.")
WEBHOOK_LATE = Metric(
    "paceline_webhook_overdue_seconds", "gauge", "How long the delivery that is due longest has waited for its turn."
)
WEBHOOKS = Metric("paceline_webhooks", "gauge", "Webhooks: working, failing or disabled.", ("state",))

# Dispatcher

TURNS = Metric("paceline_routing_turns_total", "counter", "Turns that jobs took with this process.")
ROUTED = Metric("paceline_messages_routed_total", "counter", "Messages of jobs that got a number.")
ROUTING_FAILED = Metric(
    "paceline_jobs_malformed_total", "counter", "Jobs that ended FAILED because they could not be read."
)
HANDED_OFF = Metric("paceline_messages_handed_off_total", "counter", "Messages handed to an outbox.")
HAND_OFF_REFUSED = Metric(
    "paceline_hand_offs_refused_total", "counter", "Hand-overs that the store refused because something had changed."
)
POSTED = Metric(
    "paceline_hand_over_posts_total",
    "counter",
    "SEND_MODE=api: posts to the orchestrator, by how they ended.",
    ("outcome",),
)
GUARD_CHANGES = Metric("paceline_smartguard_changes_total", "counter", "Rates that SmartGuard changed.")
DISPATCH_LATENESS = Metric(
    "paceline_dispatch_lateness_seconds",
    "histogram",
    "Of each hand-over: from when its number was due to when it was looked at.",
    buckets=_LATENESS,
)

# Orchestrator: messages

STAGE_SECONDS = Metric(
    "paceline_message_stage_seconds",
    "histogram",
    "How long messages took to a stage from the one before: routed (from its time, or acceptance), handed_off, "
    "claimed, sent, delivered, read.",
    ("stage",),
    _STAGES,
)
SLOT_LATENESS = Metric(
    "paceline_slot_lateness_seconds",
    "histogram",
    "From the slot of a message to when its sending was confirmed.",
    buckets=_LATENESS,
)
SETTLED = Metric(
    "paceline_messages_settled_total",
    "counter",
    "What became of attempts: sent, retry, failed, returned (untouched); and receipts: delivered, read.",
    ("outcome",),
)
FAILURES = Metric(
    "paceline_send_failures_total",
    "counter",
    "Attempts that failed, by class (transient, recipient, platform) and code; codes we do not know are `other`.",
    ("class", "code"),
)
GATE_REFUSED = Metric(
    "paceline_gate_refusals_total", "counter", "Messages that the last gate did not give to a worker.", ("reason",)
)
LEASES_ENDED = Metric(
    "paceline_leases_ended_total",
    "counter",
    "Deadlines that passed without a word: not_claimed (withdrawn), lease_ended (unknown), validity_ended (given up), "
    "cleared (it had ended).",
    ("what",),
)

# Orchestrator: the fleet, read when asked

SESSIONS = Metric("paceline_sessions", "gauge", "Sessions by connection.", ("connection",))
SESSIONS_DOWN = Metric(
    "paceline_sessions_down", "gauge", "Sessions that are away for so long that an operator was told."
)
SESSION_MINUTE = Metric(
    "paceline_session_last_minute_messages",
    "gauge",
    "What the sessions with most failures did in the last minute (sent, failed); `_others` are all others together.",
    ("session", "outcome"),
)
OVERRIDES = Metric("paceline_rpm_overrides", "gauge", "Sessions whose rate somebody set.", ("source",))
WORKERS = Metric("paceline_workers_measured", "gauge", "Workers whose memory is known.")
WORKER_MEMORY = Metric("paceline_workers_memory_bytes", "gauge", "Memory of all of them together.")
WORKER_MEMORY_MAX = Metric("paceline_worker_memory_max_bytes", "gauge", "Memory of the largest one.")
PHONES = Metric("paceline_phones", "gauge", "Numbers by trust level.", ("level",))
STANDING = Metric(
    "paceline_phones_restricted", "gauge", "Numbers by what keeps them from sending freely.", ("restriction",)
)
WAITING = Metric(
    "paceline_phones_waiting", "gauge", "Numbers with messages that wait, by what they wait for.", ("reason",)
)
DAILY_LIMIT = Metric(
    "paceline_daily_limit_messages", "gauge", "What numbers with a daily cap may send today, together.", ("level",)
)
DAILY_USED = Metric(
    "paceline_daily_used_messages", "gauge", "What they have used of it, hand-overs under way included.", ("level",)
)
RESTRICTED_HOUR = Metric(
    "paceline_phones_restricted_last_hour",
    "gauge",
    "Numbers the platform restricted in the last hour; three trip the breaker.",
)
FLEET_PAUSED = Metric("paceline_fleet_paused", "gauge", "1 while all sending is paused, by an operator or the breaker.")
FLEET_STOPPED = Metric("paceline_fleet_stopped", "gauge", "1 while the dispatchers are stopped.")
QUEUED = Metric(
    "paceline_queue_messages",
    "gauge",
    "Messages that wait: unrouted (at the cursor of their job), phones (in a number's queue), parked, scheduled, "
    "retry, handing (on their way by HTTP), outbox (handed over or claimed).",
    ("queue",),
)
JOBS_OPEN = Metric("paceline_jobs_waiting", "gauge", "Jobs that are being routed, or wait for it.", ("queue",))
DEAD_LETTERS = Metric("paceline_dead_letter_messages", "gauge", "Messages that were given up and are kept.")
OVERDUE = Metric(
    "paceline_dispatch_overdue_seconds",
    "gauge",
    "How long the number that is due longest has waited for a dispatcher; 0 if none.",
)
DEADLINE_OVERDUE = Metric(
    "paceline_lease_overdue_seconds",
    "gauge",
    "How long ago the oldest deadline passed that nobody has swept; 0 if none.",
)
PROXIES = Metric("paceline_proxies", "gauge", "Proxies: available, bad, all.", ("state",))
PROFILES = Metric("paceline_profiles", "gauge", "Profiles: available, used.", ("state",))

ALL: tuple[Metric, ...] = tuple(value for value in globals().values() if isinstance(value, Metric))
