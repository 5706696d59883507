"""The image and the compose files, as far as they can be checked without a Docker Engine."""

import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import httptools.parser.parser
import pytest
import yaml

from tests.running_service import ROOT

COMPOSE_FILES = ["compose.yaml", "compose.cpu.yaml"]


def instructions() -> list[tuple[str, str]]:
    """Each instruction of the Dockerfile and its arguments."""
    text = re.sub(r"^#.*\n", "", (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [(name, arguments) for name, _, arguments in (line.partition(" ") for line in lines if line)]


def services(file: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))["services"]
    return found


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage, `FROM` first."""
    starts = [i for i, (name, _) in enumerate(instructions()) if name == "FROM"] + [None]
    return [instructions()[start:end] for start, end in pairwise(starts)]


def test_a_changed_source_installs_nothing_again() -> None:
    """The lock, dependencies, models and sources are layers in this order, and sources are copied once."""
    packages, _, image = stages()
    names = [f"{name} {arguments.split()[0]}" for name, arguments in packages]
    assert names.index("COPY requirements/${PROVIDER}.txt") < min(
        i for i, (_, arguments) in enumerate(packages) if "pip install" in arguments
    )
    copied = [arguments.split()[-2] for name, arguments in image if name == "COPY"]
    assert copied == ["/", "/packages", "artifacts", "manifest", "service"]


def test_dependencies_come_from_a_lock_of_hashes_through_a_cache() -> None:
    [install] = [arguments for name, arguments in instructions() if name == "RUN" and "pip install" in arguments]
    assert {"--require-hashes", "--no-deps", "--mount=type=cache,target=/root/.cache/pip"} <= set(install.split())
    assert "--requirement requirements.txt" in install


def test_no_stage_exports_anything() -> None:
    for provider in ("cpu", "cuda"):
        assert not re.search("^(torch|onnx)==", (ROOT / "requirements" / f"{provider}.txt").read_text(), re.MULTILINE)


def test_the_image_has_no_layer_of_what_was_deleted() -> None:
    """It begins from scratch, and takes what the other stages have left over."""
    packages, system, image = stages()
    assert image[0] == ("FROM", "scratch")
    assert {arguments for name, arguments in [packages[0], system[0]]} == {"${BASE} AS packages", "${BASE} AS system"}
    assert not [arguments for _, arguments in image if "rm " in arguments or "pip" in arguments]


@pytest.mark.process
@pytest.mark.skipif(shutil.which("strip") is None, reason="binutils are not installed")
def test_what_serving_never_reads_is_deleted_and_licences_are_not(tmp_path: Path) -> None:
    module = Path(httptools.parser.parser.__file__)
    capi = "onnxruntime/capi/"
    kept = ["a/LICENSE", "a/module.py", "a-1.dist-info/licenses/LICENSE.c.txt", f"{capi}libonnxruntime_providers.so"]
    deleted = [f"onnxruntime/{folder}/module.py" for folder in ("quantization", "tools", "transformers")]
    deleted += ["a/tests/test_a.py", "a/module.pyi", "a/module.pyx", "a/src/module.c", f"{capi}libonnxruntime.so.1.2"]
    for name in kept + deleted:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    shutil.copy(module, tmp_path)
    [command] = [arguments for _, arguments in stages()[0] if arguments.startswith("cd /packages")]
    subprocess.run(command.replace("/packages", str(tmp_path)), shell=True, check=True)
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == {*kept, module.name}
    assert (tmp_path / module.name).stat().st_size < module.stat().st_size
    importing = [
        sys.executable,
        "-c",
        f"import importlib.machinery as m; m.ExtensionFileLoader('parser', '{module.name}')",
    ]
    subprocess.run(importing, cwd=tmp_path, check=True)


def test_the_build_is_sent_what_it_copies_and_nothing_else() -> None:
    first, *others = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert first == "*"
    assert {line for line in others if line.startswith("!")} == {"!requirements", "!artifacts", "!manifest", "!service"}


def test_the_image_runs_the_service_as_nobody_else_and_asks_its_health() -> None:
    said = dict(instructions())
    assert said["USER"] == "10001"
    assert "ATTEND_HOST=*" in said["ENV"].split()
    assert services("compose.cpu.yaml")["attend"]["environment"]["ATTEND_HOST"] == "*"
    assert said["ENTRYPOINT"] == '["python", "-m", "service"]'
    assert said["HEALTHCHECK"].endswith('CMD ["python", "-m", "service.server.health"]')


@pytest.mark.process
@pytest.mark.parametrize("file", COMPOSE_FILES)
def test_compose_files_are_valid(file: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", file]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.process
@pytest.mark.parametrize("file", COMPOSE_FILES)
def test_compose_reads_its_files(file: str) -> None:
    version = shutil.which("docker") and subprocess.run(["docker", "compose", "version"], capture_output=True)
    if not version or version.returncode:
        pytest.skip("docker compose is not installed")
    subprocess.run(["docker", "compose", "--file", file, "config", "--quiet"], cwd=ROOT, check=True)


def test_the_gpu_serves_with_everything_that_the_cpu_has() -> None:
    gpu = services("compose.yaml")
    for name in services("compose.cpu.yaml"):
        assert gpu[name]["extends"] == {"file": "compose.cpu.yaml", "service": name}
    attend = gpu["attend"]
    assert (attend["build"]["args"], attend["environment"]) == ({"PROVIDER": "cuda"}, {"ATTEND_PROVIDER": "cuda"})


@pytest.mark.parametrize("name", ["attend", "prometheus", "grafana"])
def test_services_are_limited(name: str) -> None:
    service = services("compose.cpu.yaml")[name]
    assert service["mem_limit"]
    assert set(service["logging"]["options"]) == {"max-size", "max-file"}
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert any(mount.startswith("/tmp:") for mount in service["tmpfs"])  # the root file system is read-only


def test_uploaded_files_take_no_room_from_metrics() -> None:
    attend = services("compose.cpu.yaml")["attend"]
    run_directory = attend["environment"]["ATTEND_RUN_DIRECTORY"]
    assert [mount.partition(":")[0] for mount in attend["tmpfs"]] == ["/tmp", run_directory]


def test_prometheus_is_on_loopback_and_keeps_its_data() -> None:
    prometheus = services("compose.cpu.yaml")["prometheus"]
    assert prometheus["ports"] == ["${PUBLISH_PROMETHEUS:-127.0.0.1:9090}:9090"]
    assert "prometheus:/prometheus" in prometheus["volumes"]


def test_grafana_is_on_loopback_and_is_given_the_dashboard_and_prometheus() -> None:
    every = services("compose.cpu.yaml")
    grafana = every["grafana"]
    assert grafana["ports"] == ["${PUBLISH_GRAFANA:-127.0.0.1:3000}:3000"]
    mounts = dict(volume.removesuffix(":ro").split(":") for volume in grafana["volumes"])
    assert [source for source in mounts if not (ROOT / source).exists()] == []
    [provider] = provisioned("dashboards/attend.yml")["providers"]
    assert f"{provider['options']['path']}/attend.json" in mounts.values()
    assert grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] in mounts.values()
    [source] = provisioned("datasources/prometheus.yml")["datasources"]
    assert source["url"] == "http://prometheus:9090"
    interval = yaml.safe_load((ROOT / "docker" / "prometheus.yml").read_text(encoding="utf-8"))["global"]
    assert source["jsonData"]["timeInterval"] == interval["scrape_interval"]


def provisioned(file: str) -> dict[str, Any]:
    path = ROOT / "deploy" / "grafana" / "provisioning" / file
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def test_what_env_can_set_is_in_its_example_with_its_default() -> None:
    text = "".join((ROOT / file).read_text(encoding="utf-8") for file in COMPOSE_FILES)
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    defaults = dict(re.findall(r"\$\{(\w+):-(.*?)\}", text))
    assert len(defaults) == 5
    for name, default in defaults.items():
        assert f"#{name}={default}\n" in example


@pytest.mark.process
@pytest.mark.parametrize(("vendor", "code"), [("0x10de", 0), ("0x1414", 0), ("0x8086", 1)])
def test_a_host_without_a_gpu_is_told_the_other_command(vendor: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "0000:00:01.0").mkdir()
    (tmp_path / "0000:00:01.0" / "vendor").write_text(f"{vendor}\n")
    *shell, script = services("compose.yaml")["gpu"]["command"]
    assert "/sys/bus/pci/devices" in script
    command = [*shell, script.replace("/sys/bus/pci/devices", str(tmp_path))]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == code
    assert ("docker compose --file compose.cpu.yaml up" in checked.stdout) == bool(code)
