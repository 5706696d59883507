"""The limit of file descriptors, in processes of their own."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    ("soft", "hard", "most"), [(128, 128, 64), (100, 1000, 936), (100, 100, 50), (20000, 20000, 10000)]
)
def test_connections_leave_descriptors_for_the_service(soft: int, hard: int, most: int) -> None:
    program = (
        f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))\n"
        "from service.server.connections import max_connections; print(max_connections())\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert said.split() == [str(most), str(hard)]
