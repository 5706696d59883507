"""Tools read the description: its operations have names as people write them, and generators make clients that work."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from service.http.problems import TAGS
from tests.service.conftest import Serve

pytestmark = pytest.mark.anyio


async def description(serve: Serve) -> dict[str, Any]:
    async with serve() as client:
        document: dict[str, Any] = (await client.get("/openapi.json")).json()
        return document


def operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation for path in document["paths"].values() for operation in path.values()]


async def test_native_operations_come_first_and_every_group_is_described(serve: Serve) -> None:
    document = await description(serve)
    described = [tag["name"] for tag in document["tags"]]
    assert described[: len(TAGS)] == [*TAGS]
    assert all(tag["description"].endswith(".") for tag in document["tags"])
    groups = [tag for operation in operations(document) for tag in operation["tags"]]
    assert len(groups) == len(operations(document))
    assert set(groups) == set(described)
    is_native = [group in TAGS for group in groups]
    assert is_native == sorted(is_native, reverse=True)


async def test_operations_are_called_as_people_write_them(serve: Serve) -> None:
    names = [operation["operationId"] for operation in operations(await description(serve))]
    assert len(names) == len(set(names))
    assert {"translate", "translate_document", "list_models", "deepl_translate", "cohere_rerank"} <= set(names)


def run(command: list[str | Path]) -> None:
    folder = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    made = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert made.returncode == 0, made.stdout + made.stderr


@pytest.mark.process
@pytest.mark.slow
async def test_a_generated_client_for_python_translates(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openapi_python_client", reason="openapi-python-client is not installed")
    file, out = tmp_path / "openapi.json", tmp_path / "made"
    file.write_text(json.dumps(await description(serve)))
    run(
        [
            "openapi-python-client",
            "generate",
            "--path",
            file,
            "--output-path",
            out,
            "--meta",
            "none",
            "--fail-on-warning",
        ]
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    generated = importlib.import_module("made")
    translate = importlib.import_module("made.api.translate.translate")
    request = importlib.import_module("made.models.translate_request").TranslateRequest(text="the dog runs")
    async with serve() as client:
        here = generated.Client("http://attend").set_async_httpx_client(client)
        answer = await translate.asyncio(client=here, body=request)
        expected = (await client.post("/translate", json={"text": "the dog runs"})).json()
    assert answer.to_dict() == expected


@pytest.mark.process
@pytest.mark.slow
async def test_a_client_for_typescript_is_generated(serve: Serve, tmp_path: Path) -> None:
    package = pytest.importorskip("openapi_generator_cli", reason="openapi-generator-cli is not installed")
    if shutil.which("java") is None:
        pytest.skip("there is no Java")
    file, out = tmp_path / "openapi.json", tmp_path / "made"
    file.write_text(json.dumps(await description(serve)))
    jar = Path(package.__file__).with_name("openapi-generator.jar")
    run(["java", "-jar", jar, "generate", "-i", file, "-g", "typescript-fetch", "-o", out])
    for group, method in (("Translate", "translate"), ("Documents", "translateDocument"), ("Deepl", "deeplTranslate")):
        assert f"async {method}(" in (out / "apis" / f"{group}Api.ts").read_text()
