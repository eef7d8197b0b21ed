"""One service fuzzed from its OpenAPI document: which checks hold, how a case gets past the gate, what was found."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import from_schema
from schemathesis.engine.events import FatalError, NonFatalError, ScenarioFinished

from contract.platform import ADMIN_KEY, WEBHOOK_SECRET
from paceline.kits.secrets import derive

from .stage import Stage
from .steering import WORKER_PATHS, session_of, steer

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "ignored_auth",
    "unsupported_method",
    "allow_header_conformance",
    "use_after_free",
    "ensure_resource_availability",
)
REFUSALS = ["400", "401", "403", "404", "405", "409", "413", "415", "422", "429", "431"]
PHASES = ("examples", "coverage", "fuzzing", "stateful")
SCHEMA_SAYS_ALL = [
    "GET /fleet", "POST /start", "POST /stop", "POST /fleet/pause", "POST /fleet/resume", "GET /smartguard/status",
    "POST /smartguard/enable", "GET /queue/status", "GET /incidents", "GET /jobs/events", "GET /pacers",
    "GET /sessions/metrics", "GET /sessions/{session_id}/explain", "POST /sessions/{session_id}/rpm", "GET /v1/keys",
    "GET /v1/webhooks", "GET /v1/jobs/{job_id}", "POST /v1/jobs/{job_id}/cancel", "POST /v1/jobs/{job_id}/pause",
    "POST /v1/jobs/{job_id}/resume", "GET /api/sessions",
    "GET /status", "GET /api/proxies", "GET /api/profiles", "POST /api/alerts/test",
]  # fmt: skip
"""Where whatever fits the schema must be taken. Elsewhere there are rules that no schema can say: a text may fit it and
be no phone number, hold a NUL, or say a whole number as 1.0."""


@dataclass
class Report:
    service: str
    cases: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)
    """What each distinct failure is, with a command that repeats it."""
    errors: list[str] = field(default_factory=list)
    """What kept schemathesis from testing."""


class _WorkerAuth:
    """A worker's secret is that of the session it speaks for, whichever that is."""

    def get(self, case: Any, _context: Any) -> str:
        steer(case, _known)
        return derive(WEBHOOK_SECRET, session_of(case))

    def set(self, case: Any, secret: str, _context: Any) -> None:
        case.headers = {**(case.headers or {}), "X-Webhook-Secret": secret}


def fuzz(
    stage: Stage,
    service: str,
    *,
    examples: int,
    seed: int,
    phases: Sequence[str] = PHASES,
    only: str | None = None,
) -> Report:
    """All operations of a service, or those of one path."""
    global _known  # noqa: PLW0603 - schemathesis knows only global hooks before a call
    _known = stage.known
    config = SchemathesisConfig.from_dict(
        {
            "seed": seed,
            "headers": {"X-API-KEY": ADMIN_KEY},
            "generation": {"max-examples": examples, "with-security-parameters": False, "database": "none"},
            "checks": {
                "enabled": False,
                **{name: {"enabled": True} for name in CHECKS},
                "negative_data_rejection": {"expected-statuses": REFUSALS},
            },
            "phases": {"enabled": False, **{name: {"enabled": True} for name in phases}},
            "operations": [
                {"include-name": SCHEMA_SAYS_ALL, "checks": {"positive_data_acceptance": {"enabled": True}}},
                # A filter on the schema itself is forgotten where there are rules for operations.
                *([{"exclude-path": only, "enabled": False}] if only else []),
            ],
            "request-timeout": 60,
        }
    )
    schema = schemathesis.openapi.from_url(f"{stage.urls[service]}/openapi.json", config=config)
    schema.auth(refresh_interval=None).apply_to(path_regex=WORKER_PATHS)(_WorkerAuth)
    report = Report(service)
    for event in from_schema(schema).execute():
        _note(event, report)
    return report


_known: dict[str, Any] = {}


@schemathesis.hook("before_call")
def _before_call(_context: Any, case: Any, _kwargs: Any) -> None:
    if not re.match(WORKER_PATHS, case.path):
        steer(case, _known)


def _note(event: Any, report: Report) -> None:
    if isinstance(event, ScenarioFinished):
        recorder = event.recorder
        report.cases += len(recorder.interactions)
        for case_id, sent in recorder.interactions.items():
            label = recorder.cases[case_id].value.operation.label if case_id in recorder.cases else recorder.label
            status = sent.response.status_code if sent.response else 0
            report.answers[f"{label} {status}"] += 1
        for checks in recorder.checks.values():
            for check in checks:
                if check.failure_info is not None:
                    failure = check.failure_info.failure
                    key = f"{recorder.label}: {failure.title}: {failure.message[:300]}"
                    report.failures.setdefault(key, check.failure_info.code_sample)
    elif isinstance(event, NonFatalError):
        report.errors.append(f"{event.label}: {event.value!r}")
    elif isinstance(event, FatalError):
        raise event.exception
