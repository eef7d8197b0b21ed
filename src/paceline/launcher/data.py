"""The data directory of `paceline up`: what lies where, and the lock that keeps a second one out."""

import contextlib
import fcntl
import os
import re
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from paceline.kits.addresses import is_loopback
from paceline.launcher.errors import LauncherError, UsageError

DEMO_DATA = Path("data/demo")
"""Where the demo's state lies, and no other's: below the working directory, as that of `up`."""

_OTHERS = 0o007
"""Everybody but the owner and the group, which somebody may have let in on purpose."""
_MARKS = ("api-key", "run/up.lock", "demo/api-key")
_OURS = re.compile(
    r"run|log|redis|ledger|sessions|media|demo|fake-whatsapp|simulated\.toml|orchestrator\.sqlite.*"
    r"|(api-key|webhook-secret)(\.new)?|lost\+found"
)
"""What the services and the demo leave in it, and what a disk of its own has from the start."""


class DataDirectory:
    """Paths below `$PACELINE_DATA`, made absolute so that children may have another working directory."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().absolute()
        self.run = self.root / "run"
        self.log = self.root / "log"
        self.redis = self.root / "redis"
        self.ledger = self.root / "ledger"
        self.sessions = self.root / "sessions"
        self.api_key = self.root / "api-key"
        self.webhook_secret = self.root / "webhook-secret"

    def create(self) -> None:
        try:
            # Keys, message texts and numbers lie below: nobody else's business.
            for path in [*reversed(self.root.parents), self.root]:
                path.mkdir(mode=0o700, exist_ok=True)
            about = self.root.stat()
            if about.st_mode & _OTHERS and self._is_ours_alone(about):
                self.root.chmod(stat.S_IMODE(about.st_mode) & ~_OTHERS)
            for path in (self.run, self.log, self.redis, self.ledger, self.sessions):
                path.mkdir(mode=0o777 & ~_OTHERS, exist_ok=True)
        except OSError as error:
            raise LauncherError(f"cannot use {self.root} as data directory (PACELINE_DATA): {error}") from error

    def _is_ours_alone(self, about: os.stat_result) -> bool:
        """And so ours to close: neither a directory like /tmp, nor where this user works or lives, nor one that holds
        anything else."""
        if about.st_uid != os.getuid() or about.st_mode & stat.S_ISVTX:
            return False
        here = self.root.resolve()
        if any(place.resolve().is_relative_to(here) for place in (Path.cwd(), Path(os.path.expanduser("~")))):
            return False
        names = {path.name for path in here.iterdir()}
        has_mark = any((here / mark).exists() for mark in _MARKS)
        return not names or (has_mark and all(_OURS.fullmatch(name) for name in names))

    def pid_file(self, name: str) -> Path:
        return self.run / f"{name}.pid"

    def log_file(self, name: str) -> Path:
        return self.log / f"{name}.log"

    def is_in_use(self) -> bool:
        """Whether an `up` or a demo runs on it."""
        try:
            with open(self.run / "up.lock", encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return isinstance(error, BlockingIOError)
        return False

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory for this process. The kernel lets go of the lock however the process ends."""
        with open(self.run / "up.lock", "a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = file.read().strip() or "unknown"
                raise LauncherError(
                    f"another `paceline up` (pid {holder}) is running on {self.root}; "
                    "stop it first, or set PACELINE_DATA to another directory"
                ) from None
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
            yield


def data_here() -> Path:
    """The data directory that somebody at this place means: the one that is set, else the one that runs, else that of
    `up`, else the demo's."""
    if given := os.environ.get("PACELINE_DATA"):
        return Path(given)
    up, demo = DataDirectory(Path("data")), DataDirectory(DEMO_DATA)
    if not demo.api_key.exists():
        return up.root
    is_demo = not up.api_key.exists() or (demo.is_in_use() and not up.is_in_use())
    return demo.root if is_demo else up.root


def find_key(given: str | None, *urls: str) -> str:
    """For a command that asks running services at `urls`: the key that was given, or the one `paceline up` or `demo`
    made, which is for those of this machine only."""
    if given:
        return given.strip()
    path = DataDirectory(data_here()).api_key
    if elsewhere := [url for url in urls if not is_here(url)]:
        raise UsageError(
            f"no API key: the one in {path} is this machine's and is not sent to {host_of(elsewhere[0])}: "
            "set API_KEY or give --key"
        )
    try:
        kept = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        kept = ""
    if not kept:
        raise UsageError(f"no API key: set API_KEY or give --key; `paceline up` makes one in {path}")
    return kept


def is_here(url: str) -> bool:
    """Whether a service of this machine is asked there: on loopback, where services listen (HOST), or by its name."""
    host = host_of(url)
    own = {"0.0.0.0", "::", os.environ.get("HOST", "").lower(), socket.gethostname().lower()}
    return is_loopback(host) or host in own


def host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or url
    except ValueError:
        return url


def tail(path: Path, lines: int = 20, max_bytes: int = 64_000) -> str:
    """The last lines of a log, for a message about why something did not start."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - max_bytes))
            text = file.read().decode(errors="replace")
    except OSError:
        return "(no log)"
    return "\n".join(text.splitlines()[-lines:]) or "(the log is empty)"
