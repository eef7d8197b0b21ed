"""A stand-in for a service, so that the launcher is tested without the platform: python standin.py <package> <name>.

The orchestrator keeps its sessions in a file, as the real one does in Redis, and calls all of them connected. For each
it starts one worker that waits, and leaves it to others to end it. A file `fail-<name>` in the data directory makes the
process exit at once with the code in it; for a session, its worker keeps dying. A file `look-<session>` has what else
is to be seen of that one.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from paceline.kits.processes import PidFile, Process

DATA = Path(os.environ["PACELINE_DATA"])
REGISTRY = DATA / "standin-sessions.json"
JOB_TOTAL = 200


def sessions() -> dict[str, dict[str, object]]:
    return json.loads(REGISTRY.read_text()) if REGISTRY.exists() else {}


def look(session: dict[str, object]) -> dict[str, object]:
    failing = (DATA / f"fail-{session['sessionId']}").exists()
    seen = {"connection": "STARTING" if failing else "CONNECTED", "starts": 3 if failing else 0}
    more = DATA / f"look-{session['sessionId']}"
    known = {"authorisation": "LINKED", "restriction": "NONE"}
    return {**session, **known, **seen, **(json.loads(more.read_text()) if more.exists() else {})}


def start_worker(session: str) -> None:
    """A process of its own, as the real orchestrator's are."""
    path = DATA / "run" / f"worker-{session}.pid"
    if (file := PidFile.read(path)) and file.process.is_alive():
        return
    (DATA / "log" / f"worker-{session}.log").write_text("the canary died\n")
    waiting = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
    PidFile(Process.of(waiting.pid)).write(path)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/health":
            self.answer(200, {"status": "ok"})
        elif self.headers["X-API-KEY"] != os.environ["API_KEY"]:
            self.answer(401, {"error": {"code": "UNAUTHORIZED"}})
        elif path == "/api/sessions":
            self.answer(200, {"items": [look(one) for one in sessions().values()], "nextCursor": None})
        elif path.startswith("/v1/jobs/"):
            state = os.environ.get("STANDIN_JOB_STATE", "DONE")
            self.answer(200, job_status(state))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/api/sessions":
            known = sessions()
            session = {**body, "desired": "running"}
            REGISTRY.write_text(json.dumps(known | {body["sessionId"]: session}))
            start_worker(body["sessionId"])
            self.answer(200 if body["sessionId"] in known else 201, session)
        else:
            self.answer(202, job_accepted(len(body["contacts"])))

    def answer(self, status: int, body: dict[str, object]) -> None:
        payload = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        pass


def job_accepted(total: int) -> dict[str, object]:
    nothing = {"suppressed": 0, "duplicates": 0, "rejected": [], "willExpire": 0, "estimatedCompletion": None}
    return {"jobId": "01J", "total": total, "accepted": total, "statusUrl": "/v1/jobs/01J", **nothing}


def job_status(state: str) -> dict[str, object]:
    progress = dict.fromkeys(("queued", "scheduled", "parked", "handedOff", "unknown", "retrying"), 0)
    progress |= dict.fromkeys(("failed", "expired", "canceled", "suppressed"), 0)
    progress |= {"total": JOB_TOTAL, "sent": JOB_TOTAL, "delivered": 7, "read": 3}
    empty = ("lastError", "waiting", "estimatedCompletion", "phone", "sessionId", "sendAt", "strategy", "replayOf")
    return {
        **dict.fromkeys(empty),
        **{"jobId": "01J", "state": state, "progress": progress, "acceptedAt": 1, "acceptedBy": "bootstrap"},
        **{"closedAt": 2, "mode": "message", "priority": 1, "spreadMinutes": 0, "validitySeconds": 60},
        **{"onUnknown": "resend", "tags": [], "metadata": {}, "confirmation": False},
    }


def serve() -> None:
    server = ThreadingHTTPServer((os.environ["HOST"], int(os.environ["PORT"])), Handler)
    server.daemon_threads = True
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever()


if __name__ == "__main__":
    package, name = sys.argv[1:3]
    fails = DATA / f"fail-{name}"
    if fails.exists():
        print(f"{name} cannot go on: the canary died", flush=True)
        sys.exit(int(fails.read_text()))
    if package == "orchestrator":
        for session in sessions():
            start_worker(session)
    serve()
