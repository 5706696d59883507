"""A file is translated on the page: told how far it is, fetched, given up."""

import json
from pathlib import Path

import httpx
import pytest

from tests.browser.asking import editor, part, state
from tests.browser.conftest import Visit

pytest.importorskip("playwright", reason="playwright is not installed (pip install playwright)")

from playwright.sync_api import Locator, Page, Route, expect

pytestmark = [pytest.mark.browser, pytest.mark.process]

MARKDOWN = b"# Two dogs\n\nTwo dogs **play** in the snow.\n\n```\ncode\n```\n"


def choose(page: Page, name: str, content: bytes) -> None:
    part(page, "examples").get_by_role("button").first.wait_for()
    part(page, "file").set_input_files({"name": name, "mimeType": "application/octet-stream", "buffer": content})


def fetch(page: Page, link: Locator) -> bytes:
    link.wait_for()
    with page.expect_download() as fetched:
        link.click()
    return Path(fetched.value.path()).read_bytes()


def test_a_file_is_translated_and_fetched(visit: Visit, server: httpx.Client, tmp_path: Path) -> None:
    page = visit(state("translate", terms="dogs = clebs"))
    choose(page, "a.md", MARKDOWN)
    link = part(page, "said").get_by_role("link", name="a.fr.md")
    link.wait_for()
    expect(part(page, "progress")).to_be_hidden()
    with page.expect_download() as fetched:
        link.click()
    assert fetched.value.suggested_filename == "a.fr.md"
    body = {
        "text": MARKDOWN.decode(),
        "source": "en",
        "target": "fr",
        "format": "markdown",
        "glossary": {"dogs": "clebs"},
    }
    answer = server.post("/translate", json=body).raise_for_status().json()
    assert Path(fetched.value.path()).read_bytes().decode() == answer["translations"][0]["text"]
    with page.expect_request(lambda request: request.method == "DELETE") as forgotten:
        page.get_by_role("button", name="Forget the file").click()
    assert forgotten.value.url.startswith(f"{server.base_url}/translate/document/")
    expect(part(page, "document")).to_be_hidden()


def test_columns_and_what_is_missing_are_chosen(visit: Visit) -> None:
    page = visit(state("translate", source="en"))
    missing, columns = page.get_by_label("Keep the translations"), page.get_by_label("Columns")
    link = part(page, "said").get_by_role("link", name="a.fr.CSV")
    choose(page, "a.CSV", b"en,fr,de\nA man sings.,x,\n")
    link.wait_for()
    with page.expect_response("**/translate/document"):
        missing.check()
    assert fetch(page, link) == b"en,fr,de\nA man sings.,x,\n"
    with page.expect_response("**/translate/document"):
        columns.fill("en=de")
        columns.blur()
    assert fetch(page, link).startswith(b"en,fr,de\nA man sings.,x,Un homme")
    choose(page, "a.po", b'msgid "A man"\nmsgstr ""\n')
    expect(missing).not_to_be_checked()
    expect(columns).to_be_hidden()
    choose(page, "a.txt", b"A man sings.")
    expect(missing).to_be_hidden()


def test_a_dropped_file_is_translated(visit: Visit) -> None:
    page = visit(state("translate", source="auto", target="en"))
    part(page, "examples").get_by_role("button").first.wait_for()
    dropped = page.evaluate_handle(
        """() => {
          const transfer = new DataTransfer();
          transfer.items.add(new File(["Zwei Hunde spielen im Schnee."], "a.txt"));
          return transfer;
        }"""
    )
    part(page, "dropzone").dispatch_event("drop", {"dataTransfer": dropped})
    expect(part(page, "said").get_by_role("link", name="a.en.txt")).to_be_visible()
    expect(editor(page)).to_have_value("")


def test_it_is_told_how_far_a_file_is_and_it_can_be_given_up(visit: Visit) -> None:
    card = {"id": "x", "key": "k", "status": "translating", "file_name": "a.fr.txt", "progress": 0.25}
    deleted = []

    def answer(route: Route) -> None:
        if route.request.method == "DELETE":
            deleted.append(route.request.url)
            route.fulfill(status=204)
        else:
            route.fulfill(json=card | {"seconds_remaining": 41.2})

    page = visit(state("translate"), before=lambda page: page.route("**/translate/document**", answer))
    page.route("**/translate/document/**", answer)
    choose(page, "a.txt", b"Two dogs.")
    expect(part(page, "said")).to_have_text("a.txt: 25 %, 42 s left")
    expect(part(page, "progress")).to_have_attribute("value", "0.25")
    with page.expect_response(lambda response: response.request.method == "DELETE"):
        page.get_by_role("button", name="Forget the file").click()
    expect(part(page, "document")).to_be_hidden()
    assert [url.partition("/translate/")[2] for url in deleted] == ["document/x?key=k"]


def test_a_damaged_file_gets_a_sentence(visit: Visit, complaints: list[str]) -> None:
    page = visit(state("translate"))
    choose(page, "a.docx", b"PK\x03\x04 and no more")
    expect(part(page, "said")).to_contain_text("a.docx: ")
    expect(part(page, "progress")).to_be_hidden()
    assert len(json.dumps(part(page, "said").inner_text())) > 20
    complaints.clear()
