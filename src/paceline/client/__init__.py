"""A typed client for Python: `Paceline` asks the public gateway, `Operator` the dispatcher and the orchestrator too;
`AsyncPaceline` and `AsyncOperator` have the same methods to await.

    with Paceline("http://localhost:4000", key) as p:
        job = p.jobs.create(contacts=["+44 7700 900301"], text="Hello")
        print(p.jobs.wait(job.job_id).state)

It stands alone: it imports nothing else of Paceline's, and knows the services only by what docs/api.md promises. Here
belongs what every caller needs (typed answers, one tree of errors, repeating safely); what only the CLI or a test
needs does not.

It does no I/O until the last step. `requests_*` turn arguments into a `Call`, a value; `talking` holds the
conversation around it (repeats, pages, waiting) as generators that ask for one step at a time; `blocking` and
`awaiting` take these steps with httpx; `sync*` and `aio*` only name the methods. What comes back is
in `answers_*`, what goes wrong in `errors`.
"""

from paceline.client.aio import AsyncPaceline
from paceline.client.aio_fleet import AsyncOperator
from paceline.client.answers_events import Event
from paceline.client.answers_jobs import (
    ENDED_JOBS,
    ENDED_MESSAGES,
    Contact,
    JobAccepted,
    JobStatus,
    MessageItem,
    MessageStatus,
    OwnText,
    Progress,
    SendAccepted,
)
from paceline.client.answers_plan import JobPlan
from paceline.client.calls import Urls
from paceline.client.errors import (
    BadAnswer,
    BadSignature,
    Conflict,
    Forbidden,
    Misused,
    NotFound,
    PacelineError,
    Refused,
    TimedOut,
    TooMany,
    Unauthorized,
    Unavailable,
    Unreachable,
)
from paceline.client.sync import Paceline
from paceline.client.sync_fleet import Operator
from paceline.client.talking import Retries
from paceline.client.verifying import verify_webhook

__all__ = [
    "ENDED_JOBS",
    "ENDED_MESSAGES",
    "AsyncOperator",
    "AsyncPaceline",
    "BadAnswer",
    "BadSignature",
    "Conflict",
    "Contact",
    "Event",
    "Forbidden",
    "JobAccepted",
    "JobPlan",
    "JobStatus",
    "MessageItem",
    "MessageStatus",
    "Misused",
    "NotFound",
    "Operator",
    "OwnText",
    "Paceline",
    "PacelineError",
    "Progress",
    "Refused",
    "Retries",
    "SendAccepted",
    "TimedOut",
    "TooMany",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
    "Urls",
    "verify_webhook",
]
