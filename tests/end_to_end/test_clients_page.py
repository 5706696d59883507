"""The examples of docs/clients.md work as they are, but for the port."""

import re
from pathlib import Path

import httpx
import pytest

pytestmark = pytest.mark.process

PAGE = (Path(__file__).parents[2] / "docs" / "clients.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^## (.+?)$.*?^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("example", [pytest.param(code, id=heading) for heading, code in EXAMPLES])
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # five lines leave their connections open
def test_an_example_runs(server: httpx.Client, example: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(example.replace("localhost:8000", server.base_url.netloc.decode()), {})
    assert capsys.readouterr().out
