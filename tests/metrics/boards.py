"""What lies in deploy/ for Prometheus and Grafana, as data."""

import json
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((DEPLOY / "prometheus" / "rules.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def board() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEPLOY / "grafana" / "paceline.json").read_text())
    return found


def panel_queries() -> list[tuple[str, str]]:
    """The title of a panel and each of its queries, with what Grafana fills in."""
    return [
        (panel["title"], target["expr"].replace("$__rate_interval", "1m"))
        for panel in board()["panels"]
        for target in panel.get("targets", ())
    ]
