"""The unit, the manifest and the alerts that operators start from fit the service."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.base.metrics import Metrics
from service.base.settings import Settings
from service.http.routes import operations_routes
from tests.running_service import ROOT

UNIT = ROOT / "docs" / "deploy" / "attend.service"
MANIFEST = ROOT / "docs" / "deploy" / "kubernetes.yaml"
ALERTS = ROOT / "docker" / "alerts.yml"
TESTS_OF_ALERTS = ROOT / "tests" / "alerts.yml"
VARIABLES = {f"ATTEND_{name.upper()}" for name in Settings.model_fields}
DRAIN_TIMEOUT_S = Settings.model_fields["drain_timeout_s"].default


@pytest.fixture(scope="module")
def pod() -> dict[str, Any]:
    documents = list(yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8")))
    [deployment] = [document for document in documents if document["kind"] == "Deployment"]
    found: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("file", [UNIT, MANIFEST], ids=lambda file: file.name)
def test_variables_are_settings(file: Path) -> None:
    assert set(re.findall(r"ATTEND_[A-Z_]+", file.read_text(encoding="utf-8"))) <= VARIABLES


def test_a_pod_is_asked_at_paths_that_are_there(pod: dict[str, Any]) -> None:
    routes = {route.path: route.name for route in operations_routes(None, Metrics()).routes}  # type: ignore[attr-defined, arg-type]
    [container] = pod["containers"]
    asked = [container[f"{probe}Probe"]["httpGet"] for probe in ("startup", "readiness", "liveness")]
    assert [routes[probe["path"]] for probe in asked] == ["ready", "ready", "live"]
    assert {probe["port"] for probe in asked} == {container["ports"][0]["name"]}


def test_accepted_requests_are_answered_before_a_pod_or_a_unit_is_killed(pod: dict[str, Any]) -> None:
    [*_, pause_s] = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    assert pod["terminationGracePeriodSeconds"] > float(pause_s) + DRAIN_TIMEOUT_S + 1
    [unit_s] = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    assert float(unit_s) > DRAIN_TIMEOUT_S + 1


@pytest.mark.process
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text(encoding="utf-8").replace("/opt/attend", str(ROOT)), encoding="utf-8")
    checked = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert unit.name not in checked.stderr
    assert checked.returncode == 0


def test_alerts_are_about_metrics_that_are_there() -> None:
    metrics = Metrics()
    metrics.watch(list, bool)
    samples = {"up"}
    for family in metrics.registry.collect():
        suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(family.type, [""])
        samples |= {family.name + suffix for suffix in suffixes}
    rules = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"][0]["rules"]
    series = [one["series"] for test in alert_cases() for one in test["input_series"]]
    named = {
        name
        for text in [*(rule["expr"] for rule in rules), *series]
        for name in re.findall(r"\b(?:up\b|attend_\w+)", text)
    }
    assert named <= samples


def alert_cases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(TESTS_OF_ALERTS.read_text(encoding="utf-8"))["tests"]
    return found


@pytest.mark.process
def test_each_alert_is_silent_in_calm_and_fires_in_a_test() -> None:
    alerts = set(re.findall(r"alert: (\w+)", ALERTS.read_text(encoding="utf-8")))
    calm, *others = alert_cases()
    assert calm["name"] == "calm"
    assert {rule["alertname"] for rule in calm["alert_rule_test"]} == alerts
    assert not any(rule.get("exp_alerts") for rule in calm["alert_rule_test"])
    rules = [rule for test in others for rule in test["alert_rule_test"]]
    assert {rule["alertname"] for rule in rules if rule.get("exp_alerts")} == alerts
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    command = ["promtool", "test", "rules", str(TESTS_OF_ALERTS)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_alerts_are_described() -> None:
    page = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
    alerts = re.findall(r"alert: (\w+)", ALERTS.read_text(encoding="utf-8"))
    assert [alert for alert in alerts if f"`{alert}`" not in page] == []


@pytest.mark.process
def test_prometheus_takes_its_configuration_and_the_alerts() -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    checked = subprocess.run(
        ["promtool", "check", "config", "docker/prometheus.yml"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "rules found" in checked.stdout
