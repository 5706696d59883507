"""What the page says when something goes wrong, and how it recovers."""

import json

import httpx
import pytest

from tests.browser.asking import editor, part, settle, state, translated
from tests.browser.conftest import Visit

pytest.importorskip("playwright", reason="playwright is not installed (pip install playwright)")

from playwright.sync_api import Page, Route, expect

pytestmark = [pytest.mark.browser, pytest.mark.process]

TEXT = "Two dogs play in the snow."
OTHER = "He is reading a book."


def problem(route: Route, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
    body = {"title": "A problem", "status": status, "detail": detail, "request_id": "r"}
    headers = {"content-type": "application/problem+json"} | (headers or {})
    route.fulfill(status=status, headers=headers, body=json.dumps(body))


def expect_stale(page: Page, text: str) -> None:
    """The old translation is still there, and marked."""
    expect(part(page, "translation")).to_have_text(text)
    expect(part(page, "stale")).to_be_visible()
    assert "stale" in (part(page, "translation").get_attribute("class") or "")


def test_offline_is_said_and_ends_by_itself(visit: Visit, server: httpx.Client, complaints: list[str]) -> None:
    page = visit(state("translate", text=TEXT))
    settle(page)
    page.context.set_offline(True)
    editor(page).fill(OTHER)
    expect(part(page, "notice")).to_contain_text("attend cannot be reached")
    expect_stale(page, translated(server, TEXT)["text"])
    page.context.set_offline(False)  # the browser tells the page
    expect(part(page, "translation")).to_have_text(translated(server, OTHER)["text"])
    expect(part(page, "notice")).to_be_hidden()
    expect(part(page, "stale")).to_be_hidden()
    assert all("ERR_INTERNET_DISCONNECTED" in complaint for complaint in complaints)
    complaints.clear()


def test_the_next_keystroke_tries_again(visit: Visit, server: httpx.Client, complaints: list[str]) -> None:
    page = visit(state("translate", text=TEXT))
    settle(page)
    page.route("**/translate", lambda route: route.abort())
    editor(page).fill(OTHER[:-1])
    expect(part(page, "notice")).to_contain_text("attend cannot be reached")
    page.unroute("**/translate")
    editor(page).press("Control+End")
    editor(page).press_sequentially(".")
    expect(part(page, "translation")).to_have_text(translated(server, OTHER)["text"])
    expect(part(page, "notice")).to_be_hidden()
    complaints.clear()


def test_a_busy_service_is_asked_once_more(visit: Visit, server: httpx.Client, complaints: list[str]) -> None:
    times = 0

    def busy_once(route: Route) -> None:
        nonlocal times
        times += 1
        if times == 1:
            problem(route, 503, "The queue is full", {"retry-after": "5"})
        else:
            route.continue_()

    page = visit(state("translate", text=TEXT), before=lambda page: page.route("**/translate", busy_once))
    expect(part(page, "notice")).to_contain_text("Asking once more in 5 s")
    expect(part(page, "translation")).to_have_text(translated(server, TEXT)["text"])
    expect(part(page, "notice")).to_be_hidden()
    assert times == 2
    complaints.clear()


def test_a_service_that_stays_busy_says_so(visit: Visit, complaints: list[str]) -> None:
    def busy(route: Route) -> None:
        problem(route, 503, "The queue is full", {"retry-after": "1"})

    page = visit(state("translate", text=TEXT), before=lambda page: page.route("**/translate", busy))
    expect(part(page, "notice")).to_contain_text("The queue is full.")
    page.unroute("**/translate")
    page.get_by_role("button", name="Try again").click()
    settle(page)
    expect(part(page, "notice")).to_be_hidden()
    complaints.clear()


def test_a_text_that_is_too_long_is_refused_in_words(visit: Visit, complaints: list[str]) -> None:
    page = visit(state("translate", text=TEXT))
    settle(page)
    editor(page).fill("word " * 10_001)
    expect(part(page, "notice")).to_contain_text(
        "The text is too long. A text has 50005 characters; the limit is 50000."
    )
    expect(part(page, "stale")).to_be_visible()
    assert all("413" in complaint for complaint in complaints)
    complaints.clear()


def test_the_words_of_another_refusal_are_shown(visit: Visit, complaints: list[str]) -> None:
    def refuse(route: Route) -> None:
        problem(route, 422, "`text` has something about it")

    page = visit(state("translate", text=TEXT), before=lambda page: page.route("**/translate", refuse))
    expect(part(page, "notice")).to_contain_text("`text` has something about it.")
    complaints.clear()


def test_a_key_is_asked_for_and_used(visit: Visit, complaints: list[str]) -> None:
    def guarded(route: Route) -> None:
        if route.request.headers.get("authorization") == "Bearer secret":
            route.continue_()
        else:
            problem(route, 401, "A key is required", {"www-authenticate": "Bearer"})

    def guard(page: Page) -> None:
        for path in ("**/models", "**/translate"):
            page.route(path, guarded)

    page = visit(state("translate", text=TEXT), before=guard)
    page.get_by_label("Key").fill("secret")
    page.keyboard.press("Enter")
    settle(page)
    part(page, "curl").locator("summary").click()
    assert '-H "authorization: Bearer $ATTEND_KEY"' in part(page, "command").inner_text()
    assert "secret" not in page.content()
    complaints.clear()


def test_a_page_that_found_no_service_finds_it_later(visit: Visit, complaints: list[str]) -> None:
    page = visit(
        state("translate", text=TEXT), before=lambda page: page.route("**/models", lambda route: route.abort())
    )
    expect(page.locator("#start-notice")).to_contain_text("attend cannot be reached")
    page.unroute("**/models")
    page.get_by_role("button", name="Try again").click()
    settle(page)
    expect(page.locator("#start-notice")).to_be_hidden()
    complaints.clear()
