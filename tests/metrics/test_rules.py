"""The alert rules and the dashboard of deploy/ are sound: promtool takes them, every alert is proven to fire, and
nothing asks for a metric or a label that nobody tells."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from paceline.telemetry import catalogue

from .boards import DEPLOY, board, panel_queries, rules
from .prometheus import need_prometheus, promtool

HERE = Path(__file__).parent
METRICS = {metric.name: metric for metric in catalogue.ALL}
RECORDED = {rule["record"] for rule in rules() if "record" in rule}
QUERIES = [*((rule.get("alert") or rule["record"], rule["expr"]) for rule in rules()), *panel_queries()]
_SELECTOR = re.compile(r"\b(paceline[a-z0-9_:]+)(?:\{([^}]*)\})?")
_SUFFIX = re.compile(r"_(bucket|sum|count)$")


def test_promtool_takes_the_rules_and_the_example(tmp_path: Path) -> None:
    need_prometheus()
    for name in ("rules.yml", "prometheus.yml"):
        shutil.copy(DEPLOY / "prometheus" / name, tmp_path)
    (tmp_path / "prometheus.key").touch()
    checked = promtool("check", "config", str(tmp_path / "prometheus.yml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_alert_fires_on_what_it_is_for_and_none_on_a_healthy_platform() -> None:
    need_prometheus()
    checked = promtool("test", "rules", str(HERE / "rules_test.yml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_no_alert_is_without_its_proof() -> None:
    fired = set(re.findall(r'alertname="(\w+)"', (HERE / "rules_test.yml").read_text()))
    assert fired == {rule["alert"] for rule in rules() if "alert" in rule}


def test_a_rule_that_is_weakened_is_noticed(tmp_path: Path) -> None:
    """promtool would pass an empty file too; this one has teeth."""
    need_prometheus()
    weak = (DEPLOY / "prometheus" / "rules.yml").read_text().replace("> 0.75", "> 0.95")
    (tmp_path / "rules.yml").write_text(weak)
    (tmp_path / "test.yml").write_text(
        (HERE / "rules_test.yml").read_text().replace("../../deploy/prometheus/rules.yml", "rules.yml")
    )
    assert "PacelineRedisNearlyFull" in promtool("test", "rules", str(tmp_path / "test.yml")).stderr


@pytest.mark.parametrize("rule", [rule for rule in rules() if "alert" in rule], ids=lambda rule: rule["alert"])
def test_every_alert_says_how_bad_it_is_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert set(rule["annotations"]) == {"summary", "description"}
    assert rule["annotations"]["description"].endswith(".")


@pytest.mark.parametrize("query", [query for _, query in QUERIES], ids=[name for name, _ in QUERIES])
def test_a_query_asks_only_for_what_is_told(query: str) -> None:
    for name, given in _SELECTOR.findall(query):
        if name in RECORDED:
            continue
        metric = METRICS[name if name in METRICS else _SUFFIX.sub("", name)]
        assert set(re.findall(r"(\w+)\s*[=!]", given)) <= {*metric.labels, "job", "instance"}, name
        assert bool(_SUFFIX.search(name)) <= (metric.kind in ("histogram", "summary")), name
    for labels in re.findall(r"\bby \(([^)]*)\)", query):
        known = {label for metric in METRICS.values() for label in metric.labels}
        assert {label.strip() for label in labels.split(",")} <= {*known, "le", "job", "instance"}


def test_every_metric_is_looked_at_somewhere() -> None:
    """What neither an alert nor the dashboard asks for is here on purpose."""
    asked = {_SUFFIX.sub("", name) for _, query in QUERIES for name, _ in _SELECTOR.findall(query)}
    by_hand = {"paceline_build_info", "paceline_jobs_accepted_total", "paceline_jobs_malformed_total",
               "paceline_jobs_waiting", "paceline_hand_offs_refused_total", "paceline_hand_over_posts_total",
               "paceline_messages_routed_total", "paceline_routing_turns_total", "paceline_smartguard_changes_total",
               "paceline_phones_restricted_last_hour", "paceline_workers_measured"}  # fmt: skip
    assert {name for name in METRICS if name not in asked} == by_hand


def test_the_dashboard_is_one_grafana_takes() -> None:
    shown = board()
    panels = shown["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert [variable["name"] for variable in shown["templating"]["list"]] == ["datasource"]
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        if panel["type"] != "row":
            assert panel["description"].endswith("."), panel["title"]
            assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}


def test_the_example_scrapes_the_ports_that_the_services_have_by_default() -> None:
    example = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    (job,) = example["scrape_configs"]
    assert job["job_name"] == "paceline"
    assert {target.rpartition(":")[2] for target in job["static_configs"][0]["targets"]} == {"4000", "4001", "3000"}
