"""Correcting a translation, and finding it again."""

from collections.abc import Callable

import httpx
import pytest

from tests.browser.asking import editor, part, settle, state
from tests.browser.conftest import Visit

pytest.importorskip("playwright", reason="playwright is not installed (pip install playwright)")

from playwright.sync_api import Route, expect

pytestmark = [pytest.mark.browser, pytest.mark.process]

TEXT = "Two dogs play in the snow."


def test_a_correction_is_kept_and_found_again(visit: Visit, server: httpx.Client) -> None:
    right = "Deux chiens jouent dans la neige fraîche."
    page = visit(state("translate", text=TEXT))
    settle(page)
    part(page, "correct").click()
    part(page, "corrected").fill(right)
    part(page, "correction").get_by_text("Keep").click()
    expect(part(page, "translation")).to_have_text(right)
    expect(part(page, "remembered")).to_be_visible()

    again = visit(state("translate", text="A cat sleeps."))
    settle(again)
    expect(part(again, "remembered")).to_be_hidden()
    editor(again).fill(TEXT)
    expect(part(again, "translation")).to_have_text(right)

    for memory in server.get("/memories").json()["memories"]:
        server.delete(f"/memories/{memory['id']}").raise_for_status()


def test_a_correction_that_cannot_be_kept_says_why(visit: Visit, complaints: list[str]) -> None:
    refusal = {"status": 403, "detail": "This key may not change memories"}
    page = visit(state("translate", text=TEXT), before=lambda page: page.route("**/memories", _refuse(refusal)))
    settle(page)
    part(page, "correct").click()
    part(page, "correction").get_by_text("Keep").click()
    expect(part(page, "correction-said")).to_have_text(refusal["detail"])
    complaints.clear()


def _refuse(problem: dict[str, object]) -> Callable[[Route], None]:
    def answer(route: Route) -> None:
        is_read = route.request.method == "GET"
        route.fulfill(json={"memories": []}) if is_read else route.fulfill(status=403, json=problem)

    return answer
