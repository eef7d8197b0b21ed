"""Debian's Prometheus and promtool, if they are here; `tools/ensure-prometheus` installs them."""

import os
import shutil
import subprocess

import pytest

PROGRAMS = ("prometheus", "promtool")


def need_prometheus() -> None:
    """Skips the test with a reason where they are missing; in CI that is a failure."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if not missing:
        return
    reason = f"no {' and no '.join(missing)} here (tools/ensure-prometheus says why)"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def promtool(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["promtool", *arguments], input=given, capture_output=True, text=True, timeout=60, check=False
    )
