"""The whole keyspace: every key, its type, who writes it. Python and Lua both build key names from this file alone.

The names of SPEC §9 are fixed, other tools read them. No key that holds waiting work ever has a TTL.
"""

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Key:
    template: str
    type: str
    about: str

    def __call__(self, *parts: str | int) -> str:
        return self._filled % parts

    @cached_property
    def _filled(self) -> str:
        # With every message a dozen of names are made; this way takes half as long as `format`.
        return self.template.replace("{}", "%s")


# Intake and jobs
gateway_jobs = Key("gateway:jobs", "LIST", "job ids the router has not seen; gateway pushes left, router takes right")
priority_jobs = Key("queue:priority", "LIST", "the same for priority 2 and 3, taken first")
jobs_active = Key("jobs:active", "ZSET", "jobs being routed, by the time of their next turn; router")
jobs_retry = Key("queue:retry", "ZSET", "jobs with no number to go to, by when to look again; router")
jobs_index = Key(
    "jobs:index", "ZSET", "every job by when it was accepted, for lists; gateway; ids of jobs that are gone are dropped"
)
jobs_unrouted = Key(
    "jobs:unrouted", "ZSET", "jobs with contacts that have no number yet, by when they were accepted; gateway, router"
)
jobs_room = Key("jobs:room", "STRING", "when the jobs that wait for room look again, all together; router")
turn_counter = Key("jobs:turn", "STRING", "counts the turns jobs took; router")
job = Key("job:{}", "STRING", "the job as accepted, JSON, immutable; gateway")
job_run = Key(
    "job:run:{}",
    "HASH",
    "what changes: state, cursor, turn, lastError, waitReason, waitUntil, pausedAt, closedAt; scripts",
)
job_states = Key("job:states:{}", "STRING", "one byte per task (domain.states); scripts, through lib/task.lua only")
job_contacts = Key(
    "job:contacts:{}:{}", "LIST", "contacts in chunks of 1,000; gateway (staged with a TTL until committed)"
)
job_routes = Key("job:routes:{}", "HASH", "task index to phone while it lies in that phone's queue; router, hand-off")
job_total = Key("job:stats:{}:total", "STRING", "contacts accepted; gateway")
job_sent = Key("job:stats:{}:sent", "STRING", "messages that went out, absent while there are none; lib/task.lua")
job_failed = Key("job:stats:{}:failed", "STRING", "messages given up, absent while there are none; lib/task.lua")
job_open = Key("job:stats:{}:open", "STRING", "messages without an end; the job closes at 0; lib/task.lua")
job_done_emitted = Key("job:stats:{}:doneEmitted", "STRING", "set once, by whoever closed the job; lib/task.lua")
messages_ended = Key(
    "messages:ended", "ZSET", "ids of messages that went out, many in one member, by when they are forgotten; settling"
)
task_status = Key("job:taskStatus:{}", "STRING", "SENT or FAILED, for other tools; settling; kept like its message")
idempotency = Key("idempotency:{}:{}", "HASH", "one Idempotency-Key of one API key; gateway; forgotten after 24 h")
job_events = Key("jobs:events", "LIST", "the last 2,000 job events; scripts")
incidents = Key("antiban:incidents", "LIST", "the last 200 incidents; scripts")
incident_stream = Key(
    "incidents:stream", "STREAM", "the same for those who follow, about the last 10,000; scripts; alerts read it"
)
audit = Key(
    "audit",
    "STREAM",
    "bindings and operators' actions until they are copied into SQLite and trimmed; at most about 200,000, "
    "as a last resort; scripts, orchestrator",
)

# Media
media = Key(
    "media:{}", "HASH", "one stored file: type, size, name, createdAt, lastUsedAt; gateway; its bytes are on disk"
)
media_jobs = Key("media:jobs:{}", "ZSET", "the open jobs that need a file, by when they were accepted; scripts")
media_kept = Key("media:kept", "ZSET", "every stored file by when it was last used; scripts, housekeeping")

# Phones
phones = Key("phones:all", "ZSET", "every registered number by registration; orchestrator")
phone = Key(
    "phone:{}",
    "HASH",
    "createdAt, timezone, cooldownUntil, quarantined, restriction, an operator's pacing, sessions …; scripts",
)
phone_facts = Key(
    "phones:facts",
    "HASH",
    "phone to what policies read of it and its sessions, as text; looks make it, whoever changes any of it drops it",
)
phone_sessions = Key("phone:sessions:{}", "SET", "the sessions of a number; orchestrator")
pace = Key(
    "phones:pace",
    "HASH",
    "phone to its pacing as text (lib/25_pace.lua): unsettled, gap, the day's units, why it waits; scripts",
)
marks = Key(
    "phones:marks",
    "HASH",
    "phone to marks of its queues as text: number of its last task, urgent, minExpiry, parkedAt, failures; scripts",
)
sends = Key("phones:sends", "HASH", "phone to its past sends as text: when on the wire, whether proven; settling")
pacer = Key("pacer:{}", "HASH", "its sessions' failed attempts of a minute, its turn under GLOBAL_RPM; scripts")
chats = Key("chats:{}", "ZSET", "people who wrote to a number, by when; inbound")
due = Key("dispatch:due", "ZSET", "phones with work by the earliest time they may be handed a task; scripts")
queue = Key("queue:session:{}", "LIST", "tasks of a phone, priority 1; pushed left, taken right")
queue_p2 = Key("queue:session:{}:p2", "LIST", "priority 2, taken before 1")
queue_p3 = Key("queue:session:{}:p3", "LIST", "priority 3, taken before 2")
parked = Key("queue:parked:{}", "ZSET", "tasks that wait for something of their own, by when; hand-off")
singles = Key("queue:singles:{}", "SET", "single sends waiting for a phone (the limit of 1,000); gateway, hand-off")
scheduled = Key("queue:scheduled", "ZSET", "single sends for later; gateway, scheduler")
task_retry = Key("queue:retry:session", "ZSET", "tasks to try again, {sessionId, phone, task}, by when; settling")
job_replays = Key(
    "job:replays:{}", "HASH", "index of a dead letter to the job that sends it again; gateway; kept like its job"
)
dead_letters = Key("queue:dead_letter", "LIST", "what was given up, with its whole history; lib/task.lua")
message = Key(
    "message:{}",
    "HASH",
    "a message from hand-off (or parking) on: entry, handed (lib/15_message.lua), and what became of it since; scripts",
)
sticky = Key(
    "sticky:{}",
    "STRING",
    "which number writes to this person: `phone at warm` (when they last wrote to it, if they did); scripts",
)
person = Key(
    "person:{}",
    "ZSET",
    "a person's newest 1,000 messages that got a number, of jobs that are kept, by when they were accepted; gateway, "
    "router; kept like messages",
)
recipient_sends = Key(
    "recipient:sends:{}", "ZSET", "what a person was sent, by when, for the frequency cap; hand-off, settling"
)

# Sessions
sessions = Key("sessions:active", "SET", "every registered session; orchestrator")
sessions_real = Key(
    "sessions:real", "STRING", "how many of them are not simulated, once somebody has counted them; orchestrator"
)
epoch_floor = Key(
    "sessions:epoch", "STRING", "above every epoch of sessions that are gone: a new one begins there; orchestrator"
)
session = Key(
    "session:{}", "HASH", "phone, driver, connection, authorisation, epoch, instanceId, lastSeen …; orchestrator"
)
sessions_seen = Key("sessions:seen", "HASH", "session to when it was last heard of; orchestrator")
session_status = Key("session:status:{}", "STRING", "the connection state, for other tools; orchestrator")
session_qr = Key("session:qr:{}", "STRING", "the QR text while linking and its end, JSON; orchestrator; ends with it")
session_pairing = Key(
    "session:pairing:{}", "STRING", "the pairing code while linking and its end, JSON; orchestrator; ends with it"
)
session_commands = Key(
    "session:commands:{}", "HASH", "what its worker is told: pair, scan, logout, one of a kind, JSON; orchestrator"
)
session_events = Key("session:events:{}", "LIST", "the last 200 events of a session; orchestrator")
session_rpm = Key("config:session:{}:rpm", "STRING", "an rpm override; operator, SmartGuard")
session_rpm_source = Key("config:session:{}:rpm:source", "STRING", "who set it: manual or smartguard")
metric = Key(
    "metrics:session:{}:{}",
    "STRING",
    "sent60s, routed60s, failed60s: of a session's last minute when it was last told, for other tools; settling",
)
outbox = Key("session:outbox:{}", "LIST", "tasks handed over, not claimed, as they lay in their queue; hand-off")
processing = Key(
    "session:outbox:processing:{}", "LIST", "task ids a worker holds, or whose end is unknown; claim, settle"
)
deadlines = Key("outbox:deadlines", "ZSET", "task ids by when an unclaimed hand-over or a lease ends; scripts")
session_stats = Key(
    "stats:session:{}:{}:{}",
    "STRING",
    "sent, failed, delivered, read, deliveryMs (their sum) of a session and day; settling",
)

# Proxies and profiles
proxies = Key("proxies:all", "SET", "every proxy URL of the pool; orchestrator")
proxies_available = Key("proxies:available", "SET", "those of them that are good and have room for a session; scripts")
proxies_bad = Key("proxies:bad", "SET", "those that are marked bad; scripts")
proxies_load = Key("proxies:load", "ZSET", "the good ones by how many sessions hold them; scripts")
proxies_numbers = Key("proxies:numbers", "ZSET", "proxy URL by its number, from which its id is made; orchestrator")
proxy_status = Key("proxy:status:{}", "STRING", "OK or BAD, by URL, for other tools; scripts")
proxy_about = Key("proxy:about:{}", "HASH", "by URL: addedAt, and of its mark reason, by, since; scripts")
proxy_sessions = Key("proxy:sessions:{}", "SET", "by URL: the sessions that hold it, at most a handful; scripts")
proxy_active = Key("proxy:active_count", "HASH", "proxy URL to how many sessions hold it, if any; scripts")
sticky_proxy = Key("phone:sticky_proxy", "HASH", "phone to the proxy it keeps; scripts")
phone_active = Key("phone:active_count", "HASH", "phone to how many of its sessions have a worker, if any; scripts")
profiles_available = Key("profiles:available", "SET", "ids of profiles no session has; scripts")
profiles_used = Key("profiles:used", "SET", "ids of profiles that a session has; scripts")
profiles_free = Key(
    "profiles:free", "ZSET", "the available ones in the order of their upload, as they are given out; scripts"
)
profiles_numbers = Key("profiles:numbers", "ZSET", "profile ids in the order of their upload; orchestrator")
profile = Key("profile:{}", "HASH", "line, addedAt, session, and what settings the line holds; scripts")
inventory = Key(
    "inventory",
    "HASH",
    "the last numbers given, maxSessionsPerProxy as of now, proxyAsked, which pools were told to be low; scripts",
)

# Events and those who want them
events = Key("events", "STREAM", "what customers are told, the newest EVENTS_KEPT; scripts, where states change")
inbound = Key("inbound:{}", "ZSET", "ids of the last 1,000 messages a number received, to tell each once; inbound")
webhooks = Key("webhooks", "HASH", "webhook id to what was asked for (url, events, secret), JSON; gateway")
webhooks_due = Key("webhooks:due", "ZSET", "webhook ids by when their next delivery is due; gateway")
webhook = Key("webhook:{}", "HASH", "cursor, number, failingSince, disabledAt, disabledReason of one webhook; gateway")
webhook_outbox = Key("webhook:outbox:{}", "ZSET", "deliveries of a webhook that wait, by their next try; gateway")
webhook_busy = Key("webhook:busy:{}", "ZSET", "deliveries being posted now, by the end of their lease; gateway")
webhook_log = Key("webhook:log:{}", "ZSET", "all deliveries known of a webhook, in their order; gateway")
webhook_ended = Key("webhook:ended:{}", "ZSET", "those of them that ended, the newest 1,000; gateway")
webhook_deliveries = Key("webhook:deliveries:{}", "HASH", "delivery id to its event and tries, JSON; gateway")

# Everything else
suppressions = Key(
    "suppressions", "ZSET", "digits nobody writes to, in every notation of each number; gateway, inbound"
)
suppression_info = Key(
    "suppressions:info",
    "HASH",
    "when, why, by whom, and the one task that may still go: the confirmation of a stop; gateway, inbound",
)
stops = Key("suppressions:stops", "ZSET", "inbound stop messages that were heard, by when; inbound; 90 days")
api_keys = Key("apikeys", "HASH", "key id to its record (hash, scopes, expiry …; never the key), JSON; gateway")
fleet = Key(
    "fleet",
    "HASH",
    "paused: nothing is handed over or claimed; stopped: the dispatchers rest; operator, breaker",
)
restricted_phones = Key(
    "fleet:restricted", "ZSET", "numbers by when the platform restricted them; the breaker counts an hour"
)
fleet_sends = Key("fleet:sends", "ZSET", "hand-overs of the last minute, for GLOBAL_RPM; hand-off, settling")
fleet_waiting = Key(
    "fleet:waiting", "ZSET", "numbers that wait for a place under GLOBAL_RPM, by their last turn; hand-off"
)
fleet_hour = Key(
    "fleet:hour:{}",
    "HASH",
    "sent, delivered, read, failed of all numbers in each minute of an hour (Unix hours), as sent:5; settling",
)
handing = Key(
    "dispatch:handing",
    "ZSET",
    "SEND_MODE=api: tasks on their way to the outbox, by when to post them again; dispatcher",
)
smartguard_enabled = Key("config:smartguard:enabled", "STRING", "1 or 0, set by an operator; else the setting counts")
smartguard_tick = Key("smartguard:lastTick", "STRING", "when SmartGuard last looked; dispatcher")
smartguard_action = Key("smartguard:lastActionAt", "STRING", "when it last changed something; dispatcher")
alerts = Key("alerts", "HASH", "cursor into incidents:stream and what the alerts remember, JSON; orchestrator")
lease = Key("lease:{}", "HASH", "who does a piece of work alone and until when; orchestrator")
token_counter = Key("outbox:token", "STRING", "the last fencing token given; claim")

WAKE_CHANNEL = "paceline:wake"
"""One PUBLISH channel: `jobs`, `due`, `handing` or `outbox:<sessionId>`. A lost message costs a second,
never correctness."""

ALL: dict[str, Key] = {name: value for name, value in globals().items() if isinstance(value, Key)}
