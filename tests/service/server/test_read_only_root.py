"""A container whose root is read-only and that has no `/tmp`: `docker run --read-only`, `readOnlyRootFilesystem`."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.read_only_root import UNSHARED
from tests.running_service import ROOT, running_service

pytestmark = pytest.mark.process


@pytest.fixture(scope="module", autouse=True)
def namespaces() -> None:
    tried = shutil.which("unshare") and subprocess.run([*UNSHARED, "--", "true"], capture_output=True, check=False)
    if not tried or tried.returncode:
        pytest.skip("this machine gives no mount namespace")


def test_everything_is_served_with_the_shared_memory_that_every_container_has(artifacts: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    environment = {
        "ATTEND_ARTIFACTS": str(artifacts),
        "ATTEND_SERVERS": "2",
        "ATTEND_MODEL_MEMORY": "1GB",
        "ATTEND_RATE_LIMIT": "100/minute",
        "ATTEND_DRAIN_TIMEOUT_S": "0",  # nobody waits for the document
    }
    with running_service(log, environment, under=[*UNSHARED, "/dev/shm", "--"]) as service:
        text = service.post("/translate", json={"text": "the dog runs", "model": "tiny-en-fr"}).raise_for_status()
        assert text.json()["translations"][0]["text"]
        dictionary = {"source": "en", "target": "fr", "entries": {"dog": "chien"}}
        service.post("/glossaries", json={"name": "dogs", "dictionaries": [dictionary]}).raise_for_status()
        larger_than_memory_of_a_form = b"the dog runs.\n" * 80_000
        answer = service.post(
            "/v2/document", data={"target_lang": "FR"}, files={"file": ("dogs.txt", larger_than_memory_of_a_form)}
        )
        assert answer.raise_for_status().json()["document_id"]
    assert "temporary files are in /dev/shm and take memory" in log.read_text()


def test_without_any_place_a_sentence_says_what_to_mount() -> None:
    command = [*UNSHARED, "--", sys.executable, "-m", "service"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    *_, sentence = ended.stderr.splitlines()
    assert sentence.startswith("attend cannot start: No folder for temporary files can be written: mount one at /tmp")
    assert "Traceback" not in ended.stderr
