"""Debian's Prometheus and promtool, if they are here; `tools/ensure-prometheus` installs them."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import yaml

from needed import skip_if

from .boards import DEPLOY

PROGRAMS = ("prometheus", "promtool")


def need_prometheus() -> None:
    """Skips the test with a reason where they are missing; in CI that is a failure."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    skip_if(f"no {' and no '.join(missing)} here (tools/ensure-prometheus says why)" if missing else "")


def promtool(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["promtool", *arguments], input=given, capture_output=True, text=True, timeout=60, check=False
    )


class Prometheus:
    """A server of its own that scrapes these addresses every second, with the rules of deploy/."""

    def __init__(self, folder: Path, targets: Sequence[str], *, key: str, port: int) -> None:
        self._folder = folder
        self._url = f"http://127.0.0.1:{port}"
        shutil.copy(DEPLOY / "prometheus" / "rules.yml", folder)
        (folder / "prometheus.key").write_text(key)
        # The example itself, only quicker and on other ports.
        config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        config["scrape_configs"][0]["static_configs"] = [{"targets": list(targets)}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self._targets = len(targets)
        with (folder / "prometheus.log").open("w") as said:
            self._process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{port}",
                ],
                stdout=said,
                stderr=subprocess.STDOUT,
            )

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The result at this moment; a fault in the expression is an error."""
        answer = httpx.get(f"{self._url}/api/v1/query", params={"query": expression}, trust_env=False, timeout=30)
        if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            raise httpx.TransportError("it is not ready yet")
        assert answer.status_code == 200, (expression, answer.text)
        found: list[dict[str, Any]] = answer.json()["data"]["result"]
        return found

    def is_scraping(self) -> bool:
        """Whether all targets answer, and have for long enough that something can have risen."""
        assert self._process.poll() is None, (self._folder / "prometheus.log").read_text()
        try:
            return len(self.query('count_over_time(up{job="paceline"}[1m]) >= 3 and up == 1')) == self._targets
        except httpx.TransportError:
            return False

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
