"""What the Helm chart renders, and what it refuses. No cluster is needed."""

import difflib
import json
import re
import subprocess
from functools import cache

import jsonschema
import pytest
import yaml

from service import __version__
from service.base.settings import PREFIX, Settings
from tests.deploy.chart import (
    CHART,
    CHOICES,
    DATABASE,
    HELM,
    NETWORK,
    SCALED,
    Case,
    Object,
    Values,
    cases,
    needs_helm,
    pods_of,
    rendered,
    template,
)
from tests.deploy.resources import SPECS
from tests.running_service import ROOT

kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")

pytestmark = needs_helm

MANIFEST = ROOT / "docs" / "deploy" / "kubernetes.yaml"
NEWEST = "1.37"
"""The newest version of Kubernetes whose schemas are installed."""


@pytest.fixture(params=cases(40), ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


@pytest.mark.process
def test_helm_finds_no_fault() -> None:
    linted = subprocess.run([str(HELM), "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False)
    assert linted.returncode == 0, linted.stdout


def test_kubernetes_takes_what_is_rendered(case: Case) -> None:
    for document in case.rendered:
        schema = SPECS.get((document["apiVersion"], document["kind"]))
        if schema is None:
            taken_by_kubernetes(json.dumps(document), NEWEST)
            continue
        jsonschema.validate(document["spec"], schema)
        for pod in pods_of([document]):
            whole = {"apiVersion": "v1", "kind": "Pod"} | pod | {"metadata": pod["metadata"] | {"name": "pod"}}
            taken_by_kubernetes(json.dumps(whole), NEWEST)


@cache
def taken_by_kubernetes(document: str, version: str) -> None:
    """Fail unless a version of Kubernetes knows every field. Most objects occur in many cases."""
    kubernetes_validate.validate(json.loads(document), version, strict=True)


@pytest.mark.process
def test_the_oldest_kubernetes_that_the_chart_allows_takes_it_too() -> None:
    oldest = re.findall(r'kubeVersion: ">=(\d+\.\d+)', (CHART / "Chart.yaml").read_text(encoding="utf-8"))[0]
    more = CHOICES["provider"]["mig"] | CHOICES["models"]["archives"] | CHOICES["more"]["all"]
    for document in rendered(more | NETWORK | DATABASE | SCALED):
        if (document["apiVersion"], document["kind"]) not in SPECS:
            taken_by_kubernetes(json.dumps(document), oldest)


def test_pods_fit_together(case: Case) -> None:
    for pod in pods_of(case.rendered):
        spec = pod["spec"]
        volumes = [volume["name"] for volume in spec["volumes"]]
        mounted = {mount["name"] for container in containers(spec) for mount in container["volumeMounts"]}
        assert mounted == set(volumes)
        for container in spec["containers"]:
            variables = [variable["name"] for variable in container["env"]]
            assert len(set(variables)) == len(variables)
            named = {name for name in variables if name.startswith(PREFIX)}
            assert named <= {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}


def containers(spec: Object) -> list[Object]:
    return [*spec.get("initContainers", []), *spec["containers"]]


def test_everything_is_about_the_same_pods(case: Case) -> None:
    [*pods] = pods_of(case.rendered)
    for document in case.rendered:
        spec = document["spec"]
        selector = spec.get("podSelector", spec.get("selector", {}))
        labels = selector.get("matchLabels", selector if document["kind"] == "Service" else {})
        assert all(labels.items() <= pod["metadata"]["labels"].items() for pod in pods)
        deployments = {other["metadata"]["name"] for other in case.rendered if other["kind"] == "Deployment"}
        assert "scaleTargetRef" not in spec or spec["scaleTargetRef"]["name"] in deployments


def test_a_gpu_is_asked_for_where_models_run(case: Case) -> None:
    for pod in pods_of(case.rendered):
        limits = [container["resources"]["limits"] for container in pod["spec"]["containers"]]
        asks = any(name.startswith("nvidia.com/") for each in limits for name in each)
        is_head = pod["spec"]["containers"][0]["name"] == "ray-head"
        assert asks == (case.names["provider"] != "cpu" and not is_head)


@pytest.mark.process
@pytest.mark.parametrize(("pause", "drain"), [(0, 0), (5, 30), (60, 600)])
def test_a_pod_has_time_for_its_pause_and_its_drain(pause: int, drain: int) -> None:
    [pod] = pods_of(rendered({"pause": pause, "drain": drain}))
    [container] = pod["spec"]["containers"]
    assert container["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", str(pause)]
    assert {"name": "ATTEND_DRAIN_TIMEOUT_S", "value": str(drain)} in container["env"]
    assert pod["spec"]["terminationGracePeriodSeconds"] >= pause + drain + 10


@pytest.mark.process
def test_settings_come_as_they_are_written() -> None:
    settings = {"max_body_bytes": 1048576, "probe_interval_s": 0.5, "access_log": True, "rate_limit": "60/minute"}
    [pod] = pods_of(rendered({"settings": settings}))
    given = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
    assert {name: given[f"ATTEND_{name.upper()}"] for name in settings} == {
        "max_body_bytes": "1048576", "probe_interval_s": "0.5", "access_log": "true", "rate_limit": "60/minute",
    }  # fmt: skip


REFUSED: list[tuple[str, Values]] = [
    ("'grace' not allowed", {"grace": 10}),
    ("/image.*'repo' not allowed", {"image": {"repo": "a"}}),
    ("'database'", {"database": None}),
    ("/provider", {"provider": "tpu"}),
    ("/replicas", {"replicas": 0}),
    ("/pause", {"pause": "5s"}),
    ("/drain", {"drain": -1}),
    ("/database/secret", {"replicas": 2}),
    ("/database/secret", SCALED),
    ("/replicas", DATABASE | {"replicas": 2, "data": {"claim": "data"}}),
    ("/autoscaling/prometheus", DATABASE | {"provider": "cuda", "autoscaling": {"enabled": True}}),
    ("autoscaling.maxReplicas", DATABASE | {"replicas": 9} | SCALED),
    ("/models/claim", {"models": {"folder": "2026-11"}}),
    ("/models/folder", {"models": {"claim": "models", "folder": "../secrets"}}),
    ("/models/archives/0/sha256", {"models": {"archives": [{"url": "https://a", "sha256": "0"}]}}),
    ("/models/archives/0.*'sha256'", {"models": {"archives": [{"url": "https://a"}]}}),
    ("/network/egress", DATABASE | {"network": {"enabled": True}}),
    ("/network/enabled", {"kind": "RayService"}),
    ("/data/claim", NETWORK | {"kind": "RayService", "data": {"claim": "data"}}),
    ("/replicas", DATABASE | {"kind": "ServingRuntime", "replicas": 2}),
    ("/models/claim", {"kind": "ServingRuntime", "models": {"claim": "models"}}),
    ("/kind", {"kind": "StatefulSet"}),
    ("'port'", {"settings": {"port": 80}}),
    ("'drain_timeout_s'", {"settings": {"drain_timeout_s": 60}}),
    ("/settings/models", {"settings": {"models": ["a"]}}),
]


@pytest.mark.process
@pytest.mark.parametrize(("named", "values"), REFUSED, ids=[named for named, _ in REFUSED])
def test_wrong_values_are_refused_by_name(named: str, values: Values) -> None:
    ended = template(values)
    assert ended.returncode != 0
    assert re.search(named, ended.stderr), ended.stderr


def test_what_the_chart_sets_is_no_setting_of_the_values() -> None:
    """Two entries of one name would be in the environment, and the later one would count."""
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    reserved = set(schema["properties"]["settings"]["propertyNames"]["not"]["enum"])
    templates = "".join(path.read_text(encoding="utf-8") for path in (CHART / "templates").iterdir())
    assert {name.lower() for name in re.findall(r"name: ATTEND_([A-Z_]+)", templates)} <= reserved


@pytest.mark.process
def test_the_manifest_is_what_the_chart_renders() -> None:
    command = re.findall(r"# .*: helm (template .*)", MANIFEST.read_text(encoding="utf-8"))[0].split()
    now = subprocess.run([str(HELM), *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    kept = re.sub(r"\A(#.*\n)*", "", MANIFEST.read_text(encoding="utf-8"))
    difference = "\n".join(difflib.unified_diff(kept.splitlines(), now.splitlines(), lineterm=""))
    assert not difference, f"Write it again: helm {' '.join(command)}\n{difference}"


def test_chart_and_service_have_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


@pytest.mark.process
@pytest.mark.parametrize("provider", ["cpu", "cuda"])
@pytest.mark.parametrize("pods", [DATABASE | {"replicas": 2}, DATABASE | SCALED], ids=["fixed", "scaled"])
def test_ray_is_told_how_many_replicas_there_are_and_what_each_needs(provider: str, pods: Values) -> None:
    documents = rendered(NETWORK | pods | {"kind": "RayService", "provider": provider})
    [service] = [document for document in documents if document["kind"] == "RayService"]
    [application] = yaml.safe_load(service["spec"]["serveConfigV2"])["applications"]
    [deployment] = application["deployments"]
    assert ("num_replicas" in deployment) == ("replicas" in pods)
    assert ("autoscaling_config" in deployment) == ("autoscaling" in pods)
    assert deployment.get("ray_actor_options") == ({"num_gpus": 1} if provider == "cuda" else None)
