"""Secrets that are made once and kept in a file, and secrets that are derived from another one."""

import contextlib
import hashlib
import hmac
import os
import secrets
from pathlib import Path


def derive(master: str, label: str) -> str:
    """The secret of `label`: hex HMAC-SHA256. Who holds it learns nothing about the master or about another
    label."""
    return hmac.new(master.encode(), label.encode(), hashlib.sha256).hexdigest()


def new_key(prefix: str) -> str:
    """A key of 256 random bits. The prefix lets people, logs and scanners for leaked secrets recognise one."""
    return f"{prefix}{secrets.token_urlsafe(32)}"


def read_or_create(path: Path) -> str:
    """The secret in that file; the first call makes a random one that only this user can read."""
    if path.exists() and (kept := path.read_text().strip()):
        _close(path)
        return kept
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = secrets.token_urlsafe(32)
    # Renamed into place: a crash leaves no file or a whole one, never half a key.
    draft = path.with_suffix(".new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(fresh + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    return fresh


def _close(path: Path) -> None:
    """One that is another user's, mounted or linked to stays as it is; `paceline doctor` tells of it."""
    with contextlib.suppress(OSError):
        if not path.is_symlink() and path.stat().st_uid == os.getuid():
            path.chmod(0o600)
