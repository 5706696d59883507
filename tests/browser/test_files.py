"""What the playground is made of, and how it is served."""

import re
from pathlib import Path

import httpx
import pytest

from service.pages import playground, static_files

pytestmark = pytest.mark.browser

FOLDER = Path(playground.__file__).parent
FILES = sorted(path for path in FOLDER.iterdir() if path.suffix in static_files.MEDIA_TYPES)


@pytest.mark.process
@pytest.mark.parametrize("path", ["/", *(f"/playground/{path.name}" for path in FILES if path.name != "index.html")])
def test_a_file_has_its_type_and_may_reach_nothing_but_the_service(server: httpx.Client, path: str) -> None:
    response = server.get(path)
    policy = response.headers["content-security-policy"]
    assert response.status_code == 200
    assert response.headers["content-type"] == static_files.MEDIA_TYPES[Path(path).suffix or ".html"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert server.head(path).status_code == 200


@pytest.mark.process
def test_a_file_that_has_not_changed_is_not_sent_again(server: httpx.Client) -> None:
    etag = server.get("/playground/main.js").headers["etag"]
    again = server.get("/playground/main.js", headers={"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["cache-control"] == "no-cache"


@pytest.mark.process
@pytest.mark.parametrize("name", ["nothing.js", "__init__.py", "index.html", "..%2F__init__.py"])
def test_nothing_else_is_served(server: httpx.Client, name: str) -> None:
    response = server.get(f"/playground/{name}")
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"


def test_the_page_has_no_script_or_style_of_its_own() -> None:
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|javascript:", page) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_names_another_host(path: Path) -> None:
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)\S+", path.read_text(encoding="utf-8")) == []


def test_every_file_that_another_one_asks_for_is_there() -> None:
    names = {path.name for path in FILES}
    asked = set()
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        asked |= set(re.findall(r"\"playground/([\w.]+)\"", text)) | set(re.findall(r"from \"\./([\w.]+)\"", text))
    types_alone = {"types.js"}
    assert asked | types_alone == names - {"index.html"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_one_idea(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 250
