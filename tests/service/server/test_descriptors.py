"""The limit of file descriptors, in processes of their own."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "most"),
    [
        (128, 128, None, 64),
        (100, 1000, None, 936),
        (1000, 1000, 10, 10),
        (100, 100, 90, 50),
        (20000, 20000, None, 10000),
    ],
)
def test_connections_leave_descriptors_for_the_service(soft: int, hard: int, wanted: int | None, most: int) -> None:
    program = (
        f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))\n"
        f"from service.server.connections import max_connections; print(max_connections({wanted}))\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert said.split() == [str(most), str(hard)]
