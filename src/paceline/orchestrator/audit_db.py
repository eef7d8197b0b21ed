"""The audit trail as an SQLite file: its schema and migrations, one transaction for rows and cursors, pages, pruning.

Plain and synchronous; `orchestrator.audit` calls it from a thread of its own. WAL with synchronous FULL: what a
transaction has written is on the disk when it returns. One writer at a time holds a lock beside the file, for as long
as its process lives; a second one waits. No message text, recipient or credential comes here.
"""

import contextlib
import fcntl
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import msgspec

from paceline.kits.failpoint import failpoint
from paceline.orchestrator.audit_rows import Binding, Row, Sent

Connect = Callable[..., sqlite3.Connection]

BUSY_S = 5.0
"""How long a statement waits for a reader's lock; only a backup holds one for so long."""
WAL_BYTES = 16 * 1_048_576
"""What the log beside the file shrinks back to after a flood."""

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE cursors (stream TEXT PRIMARY KEY, place TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE session_bindings (
        seq INTEGER PRIMARY KEY,
        entry_id TEXT NOT NULL UNIQUE,
        bot_id TEXT NOT NULL,
        phone TEXT NOT NULL,
        proxy_ip TEXT NOT NULL,
        profile_id TEXT NOT NULL,
        status TEXT NOT NULL,
        action TEXT NOT NULL,
        reason TEXT NOT NULL,
        changed_by TEXT NOT NULL,
        details TEXT NOT NULL,
        changed_at INTEGER NOT NULL,
        recorded_at INTEGER NOT NULL
    );
    CREATE TABLE operator_actions (
        seq INTEGER PRIMARY KEY,
        entry_id TEXT NOT NULL UNIQUE,
        action TEXT NOT NULL,
        session_id TEXT NOT NULL,
        phone TEXT NOT NULL,
        done_by TEXT NOT NULL,
        reason TEXT NOT NULL,
        details TEXT NOT NULL,
        done_at INTEGER NOT NULL,
        recorded_at INTEGER NOT NULL
    );
    CREATE TABLE confirmed_sends (
        seq INTEGER PRIMARY KEY,
        task_id TEXT NOT NULL UNIQUE,
        session_id TEXT NOT NULL,
        phone TEXT NOT NULL,
        whatsapp_id TEXT NOT NULL,
        sent_at INTEGER NOT NULL,
        recorded_at INTEGER NOT NULL
    );
    CREATE INDEX bindings_of ON session_bindings (bot_id, seq);
    CREATE INDEX actions_of ON operator_actions (session_id, seq);
    CREATE INDEX sends_of ON confirmed_sends (session_id, seq);
    CREATE INDEX bindings_at ON session_bindings (changed_at);
    CREATE INDEX actions_at ON operator_actions (done_at);
    CREATE INDEX sends_at ON confirmed_sends (sent_at);
    """,
)
"""Each brings the file one version further; `PRAGMA user_version` says how far it is. Never change one that was out."""

_TABLES = {"BINDING": "session_bindings", "OPERATOR": "operator_actions", "SENT": "confirmed_sends"}
_AT = {"session_bindings": "changed_at", "operator_actions": "done_at", "confirmed_sends": "sent_at"}
_COLUMNS = {
    "BINDING": {"session": "bot_id", "at": "changed_at", "by": "changed_by", "reason": "reason", "proxy_ip": "proxy_ip",
                "profile_id": "profile_id", "status": "status", "action": "action", "details": "details"},
    "OPERATOR": {"session": "session_id", "at": "done_at", "by": "done_by", "reason": "reason", "action": "action",
                 "details": "details"},
    "SENT": {"session": "session_id", "at": "sent_at", "task": "task_id", "whatsapp": "whatsapp_id"},
}  # fmt: skip
"""Which column of each table a page shows under which name."""
_SHOWN = ("seq", "kind", "at", "session", "phone", "by", "reason", "proxy_ip", "profile_id", "status", "action",
          "details", "task", "whatsapp")  # fmt: skip


class AuditAway(Exception):
    """The file takes nothing now: full disk, broken file, no permission. What was to be written waits in Redis."""


class AuditBusy(AuditAway):
    """Another process writes this file."""


class Batch(msgspec.Struct, frozen=True):
    """Rows and how far the streams were read for them: one transaction."""

    rows: Sequence[Row]
    cursors: dict[str, str]


class AuditDb:
    """The writer. `open` may be called again after any error."""

    def __init__(self, path: Path, *, connect: Connect = sqlite3.connect) -> None:
        self._path = path
        self._connect = connect
        self._lock: TextIO | None = None
        self._db: sqlite3.Connection | None = None

    def cursors(self) -> dict[str, str]:
        """How far each stream was copied."""
        with self._working() as db:
            return dict(db.execute("SELECT stream, place FROM cursors").fetchall())

    def append(self, batch: Batch, *, now_ms: int) -> int:
        """All of it or nothing; a fact that is there already is not written again. How many were new."""
        with self._working() as db:
            db.execute("BEGIN IMMEDIATE")
            before = db.total_changes
            seq = _last_seq(db)
            for number, row in enumerate(batch.rows, start=seq + 1):
                _insert(db, number, row, now_ms)
            new = db.total_changes - before
            db.executemany(
                "INSERT INTO cursors VALUES (?, ?) ON CONFLICT (stream) DO UPDATE SET place = excluded.place",
                list(batch.cursors.items()),
            )
            failpoint("audit-inserted")
            db.execute("COMMIT")
            return new

    def prune(self, before_ms: int, *, limit: int) -> int:
        """Removes the oldest rows, at most so many of each kind; how many went."""
        with self._working() as db:
            gone = 0
            for table, at in _AT.items():
                oldest = f"SELECT seq FROM {table} WHERE {at} < ? ORDER BY {at} LIMIT ?"
                gone += db.execute(f"DELETE FROM {table} WHERE seq IN ({oldest})", (before_ms, limit)).rowcount
            return gone

    def close(self) -> None:
        """Gives the file and its lock back."""
        with contextlib.suppress(sqlite3.Error):
            if self._db is not None:
                self._db.close()
        if self._lock is not None:
            self._lock.close()
        self._db = self._lock = None

    @contextlib.contextmanager
    def _working(self) -> Iterator[sqlite3.Connection]:
        """The open file; an error closes it, so that the next call begins anew, and is told without the path."""
        try:
            yield self._opened()
        except AuditAway:
            self.close()
            raise
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise AuditAway(_reason(error)) from error

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = _locked(self._path.with_name(self._path.name + ".lock"))
            # Autocommit: a transaction is what stands between BEGIN and COMMIT, nothing the library thinks of.
            self._db = self._connect(self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
            self._path.chmod(0o600)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute(f"PRAGMA journal_size_limit={WAL_BYTES}")
            _migrate(self._db)
        return self._db


def read_page(path: Path, *, kind: str, session: str, before: int, limit: int) -> list[dict[str, Any]]:
    """The newest rows before that one, with a connection of its own: reading works whoever writes."""
    if not path.exists():
        return []
    parts: list[str] = []
    values: list[Any] = []
    for name, columns in _COLUMNS.items():
        if kind in ("", name):
            shown = {"seq": "seq", "kind": f"'{name}'", "phone": "phone", **columns}
            of_session = f" AND {columns['session']} = ?" if session else ""
            parts.append(
                f"SELECT * FROM (SELECT {', '.join(shown.get(column, repr('')) for column in _SHOWN)}"
                f" FROM {_TABLES[name]} WHERE seq < ?{of_session} ORDER BY seq DESC LIMIT ?)"
            )
            values += [before, *([session] if session else []), limit]
    query = f"{' UNION ALL '.join(parts)} ORDER BY 1 DESC LIMIT ?"
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=BUSY_S)) as db:
            found = db.execute(query, (*values, limit)).fetchall()
    except (sqlite3.Error, OSError) as error:
        raise AuditAway(_reason(error)) from error
    return [dict(zip(_SHOWN, row, strict=True)) for row in found]


def _migrate(db: sqlite3.Connection) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise AuditAway(f"the file is of a newer Paceline (version {version}, this one knows {len(MIGRATIONS)})")
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        # Together with its number: a crash in the middle leaves the version before.
        db.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version={number}; COMMIT;")


def _last_seq(db: sqlite3.Connection) -> int:
    newest = " UNION ALL ".join(f"SELECT max(seq) AS seq FROM {table}" for table in _AT)
    return int(db.execute(f"SELECT coalesce(max(seq), 0) FROM ({newest})").fetchone()[0])


def _insert(db: sqlite3.Connection, seq: int, row: Row, now_ms: int) -> None:
    values: tuple[Any, ...]
    if isinstance(row, Sent):
        kind, values = "SENT", (row.task, row.session, row.phone, row.whatsapp_id, row.at)
    elif isinstance(row, Binding):
        about = (row.session, row.phone, row.proxy_ip, row.profile, row.status, row.action)
        kind, values = "BINDING", (row.entry, *about, row.reason, row.by, row.details, row.at)
    else:
        kind = "OPERATOR"
        values = (row.entry, row.action, row.session, row.phone, row.by, row.reason, row.details, row.at)
    places = ", ".join("?" * (len(values) + 2))
    db.execute(f"INSERT OR IGNORE INTO {_TABLES[kind]} VALUES ({places})", (seq, *values, now_ms))


def _locked(path: Path) -> TextIO:
    """A lock that ends with the process, however it ends."""
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise AuditBusy("another orchestrator writes the audit trail") from error
    return file


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error)
