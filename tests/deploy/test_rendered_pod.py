"""The pod that the chart renders, run as processes: its variables, mounts, init container, probes and end."""

import functools
import hashlib
import http.server
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.chart import Object, needs_helm, pods_of, rendered
from tests.read_only_root import UNSHARED
from tests.running_service import running_service
from tests.service.tiny_artifacts import TinyTranslator

pytestmark = [needs_helm, pytest.mark.process]

KEY = "a-key"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An archive of a model as the chart's values name it, on a server of this process."""
    folder = tmp_path_factory.mktemp("archive")
    made = TinyTranslator(seed=3).save(folder / "tiny-en-fr")
    with tarfile.open(folder / "models.tar.gz", "w:gz") as file:
        file.add(made, "tiny-en-fr")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        sha256 = hashlib.sha256((folder / "models.tar.gz").read_bytes()).hexdigest()
        yield {"url": f"http://127.0.0.1:{server.server_port}/models.tar.gz", "sha256": sha256}
        server.shutdown()


class Volumes:
    """A folder for each volume of a pod."""

    def __init__(self, pod: Object, root: Path) -> None:
        self._folders = {volume["name"]: root / volume["name"] for volume in pod["spec"]["volumes"]}
        for folder in self._folders.values():
            folder.mkdir()
        for volume in pod["spec"]["volumes"]:
            for source in volume.get("projected", {}).get("sources", []):
                for item in source["secret"]["items"]:
                    (self._folders[volume["name"]] / item["path"]).write_text(KEY)

    def place(self, path: str, container: Object) -> str:
        """Return where a path of a container is here."""
        for mount in container["volumeMounts"]:
            if path == mount["mountPath"] or path.startswith(mount["mountPath"] + "/"):
                return str(self._folders[mount["name"]]) + path.removeprefix(mount["mountPath"])
        return path

    def writable(self, container: Object) -> list[str]:
        mounts = container["volumeMounts"]
        return [str(self._folders[mount["name"]]) for mount in mounts if not mount.get("readOnly")]


def fetch(pod: Object, volumes: Volumes) -> "subprocess.CompletedProcess[str]":
    [container] = pod["spec"]["initContainers"]
    python, *arguments = [volumes.place(argument, container) for argument in container["command"]]
    assert python == "python"
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_a_pod_downloads_its_models_answers_its_probes_and_ends(archive: dict[str, str], tmp_path: Path) -> None:
    tried = subprocess.run([*UNSHARED, "--", "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip("this machine gives no mount namespace")
    values = {"models": {"archives": [archive]}, "pause": 0, "settings": {"log_format": "json", "max_texts": 2}}
    [pod] = pods_of(rendered(values))
    volumes = Volumes(pod, tmp_path)
    assert fetch(pod, volumes).returncode == 0

    [container] = pod["spec"]["containers"]
    assert "command" not in container, "the image's: python -m service"
    environment = {each["name"]: volumes.place(each["value"], container) for each in container["env"]}
    environment["TMPDIR"] = volumes.place("/tmp", container)
    under = [*UNSHARED, *volumes.writable(container), "--"]
    with running_service(tmp_path / "log", environment, under) as service:
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            asked = container[probe]
            assert service.get(asked["httpGet"]["path"], timeout=asked["timeoutSeconds"]).status_code == 200
        request = {"text": ["the dog runs"] * 2, "model": "tiny-en-fr"}
        assert service.post("/translate", json=request).status_code == 401
        service.headers["Authorization"] = f"Bearer {KEY}"
        assert len(service.post("/translate", json=request).raise_for_status().json()["translations"]) == 2
        assert service.post("/translate", json=request | {"text": ["a"] * 3}).status_code == 422
        subprocess.run(container["lifecycle"]["preStop"]["exec"]["command"], timeout=5, check=True)
    log = (tmp_path / "log").read_text()
    assert "stopped by SIGTERM" in log
    assert '"level": "warning"' not in log, log


def test_an_archive_with_another_sum_ends_the_pod_before_it_is_unpacked(
    archive: dict[str, str], tmp_path: Path
) -> None:
    [pod] = pods_of(rendered({"models": {"archives": [archive | {"sha256": "0" * 64}]}}))
    ended = fetch(pod, Volumes(pod, tmp_path))
    assert ended.returncode == 1
    assert f"sha256 is {archive['sha256']}, expected {'0' * 64}" in ended.stderr
    assert [*(tmp_path / "models").iterdir()] == []
