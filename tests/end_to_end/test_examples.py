"""The examples of README and docs, sent to a real server: each is answered, and as the page says where it says so."""

import json
import re
import shlex
from typing import Any

import httpx
import pytest

from docs.generate import PAGES, ROOT

CURL = re.compile(r"```sh\ncurl -s localhost:8000(/\w+) (.*?)\n```(?:\n```(?:json)?\n(.*?)\n```)?", re.DOTALL)
EXAMPLES = [(page.name, *found) for page in PAGES for found in CURL.findall(page.read_text(encoding="utf-8"))]
API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
DESCRIBED = re.findall(r"^## POST (/\w+)\n\n```json\n(.*?)\n```.*?```json\n(.*?)\n```", API, re.DOTALL | re.MULTILINE)
REST_OF_OBJECT, REST_OF_LIST = re.compile(r'\.\.\.(?=,\s*"|\})'), re.compile(r"(?<!\")\.\.\.(?!\")")
ANSWERED = re.findall(r"^```json\n(\{\"text\"[^\n]*)\n```\n```json\n(.*?)\n```", API, re.DOTALL | re.MULTILINE)


@pytest.mark.process
@pytest.mark.parametrize(("page", "path", "arguments", "shown"), EXAMPLES, ids=lambda value: value[:12])
def test_a_command_is_answered_as_its_page_shows(
    server: httpx.Client, page: str, path: str, arguments: str, shown: str
) -> None:
    body = shlex.split(arguments.replace("\\\n", ""))[-1]
    answer = server.post(path, json=json.loads(body)).raise_for_status()
    if shown.startswith("{"):
        assert alike(answer.json(), shown)
    elif shown:
        assert answer.json()["translations"][0]["text"] == shown


@pytest.mark.process
@pytest.mark.parametrize(("path", "request_body", "shown"), DESCRIBED, ids=lambda value: value[:12])
def test_the_interface_is_described_as_it_answers(
    server: httpx.Client, path: str, request_body: str, shown: str
) -> None:
    assert alike(server.post(path, json=json.loads(request_body)).raise_for_status().json(), shown)


@pytest.mark.process
@pytest.mark.parametrize(("request_body", "shown"), ANSWERED, ids=lambda value: value[:12])
def test_a_translation_is_answered_as_shown_below_it(server: httpx.Client, request_body: str, shown: str) -> None:
    assert alike(server.post("/translate", json=json.loads(request_body)).raise_for_status().json(), shown)


def test_pages_have_examples() -> None:
    assert len(ANSWERED) == 5
    assert {path for _, path, _, _ in EXAMPLES} == {path for path, _, _ in DESCRIBED} == {
        "/translate", "/detect", "/classify", "/embed",
    }  # fmt: skip


def alike(answer: Any, shown: str) -> bool:
    """Whether an answer is the one shown, numbers to one place: another processor may have other kernels."""
    with_keys = REST_OF_OBJECT.sub('"...": "..."', shown)
    return is_like(answer, json.loads(REST_OF_LIST.sub('"..."', with_keys)))


def is_like(answer: Any, shown: Any) -> bool:
    """The same of parsed JSON. Of an object with "..." in it only these keys are shown, of a list only the beginning
    and the end."""
    if isinstance(shown, dict):
        keys = shown.keys() - {"..."}
        has_keys = answer.keys() > keys if "..." in shown else answer.keys() == keys
        return has_keys and all(is_like(answer[key], shown[key]) for key in keys)
    if isinstance(shown, list) and "..." in shown:
        start, end = shown[: shown.index("...")], shown[shown.index("...") + 1 :]
        return is_like(answer[: len(start)], start) and is_like(answer[len(answer) - len(end) :], end)
    if isinstance(shown, list):
        return len(answer) == len(shown) and all(map(is_like, answer, shown))
    return round(answer, 1) == round(shown, 1) if isinstance(shown, float) else bool(answer == shown)
