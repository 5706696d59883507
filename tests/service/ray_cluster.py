"""attend on a Ray of its own: `python -m tests.service.ray_cluster PORT` deploys as many replicas as each line says."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120
RAY = {"RAY_SERVE_ENABLE_HA_PROXY": "1", "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "2"}
"""Replicas that end wait for 30 s by default until every HAProxy has noticed."""


class Cluster(httpx.Client):
    """A client of the application."""

    process: "subprocess.Popen[str]"

    def deploy(self, n_replicas: int) -> None:
        """Return when so many replicas run."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{n_replicas}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == f"{n_replicas} deployed\n"

    def replicas(self) -> list[int]:
        """Return the processes of the replicas."""
        return [one for one in descendants(self.process.pid) if command_of(one).startswith("ray::ServeReplica")]


@contextmanager
def running_cluster(port: int, log: Path, environment: Mapping[str, str]) -> Iterator[Cluster]:
    """Run Ray with HAProxy, and end all of it.

    Args:
        log: the file that gets what Ray says.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ATTEND_", "RAY_"))}
    command = [sys.executable, "-m", __name__, str(port)]
    with (
        log.open("w") as file,
        tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder,
    ):
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=inherited | RAY | {"RAY_TMPDIR": folder, "HOME": folder} | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )
        try:
            with Cluster(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client:
                client.process = process
                yield client
        finally:
            assert process.stdin is not None
            family = descendants(process.pid)
            process.stdin.close()
            process.wait(PATIENCE_S)
            assert process.stdout is not None
            process.stdout.close()
            wait_until(lambda: all(map(has_ended, family)), PATIENCE_S)


def descendants(process_id: int) -> list[int]:
    """Return the processes that a process has started, and those that these have."""
    children: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{process_id}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    return [one for child in children for one in (child, *descendants(child))]


def command_of(process_id: int) -> str:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{process_id}/cmdline").read_text()
    return ""


def has_ended(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] in "XZ"
    except (FileNotFoundError, ProcessLookupError):
        return True


def main(port: int) -> None:
    import ray
    from ray import serve

    from service.on_ray import deployment

    answers, sys.stdout = sys.stdout, sys.stderr  # Ray writes there too
    ray.init(num_cpus=4, include_dashboard=False, namespace="serve")
    serve.start(http_options={"port": port})
    for line in sys.stdin:
        serve.run(deployment.options(num_replicas=int(line)).bind())
        answers.write(f"{int(line)} deployed\n")
        answers.flush()
    serve.shutdown()
    ray.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]))
