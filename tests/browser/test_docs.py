"""The page of the HTTP interface."""

from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Visit

if TYPE_CHECKING:
    import httpx

pytestmark = [pytest.mark.browser, pytest.mark.process]


def test_a_request_can_be_tried_out(visit: Visit, server: "httpx.Client") -> None:
    page = visit()
    page.goto("/docs")
    page.locator("#operations-tag-translate").click()
    translate = page.locator("#operations-translate-translate")
    translate.locator(".opblock-summary-control").click()
    translate.locator("textarea").fill('{"text": "A dog runs.", "target": "fr"}')
    translate.locator("button.execute").click()
    answer = translate.locator(".live-responses-table .microlight").first
    answer.wait_for()
    expected = server.post("/translate", json={"text": "A dog runs.", "target": "fr"}).json()
    assert expected["translations"][0]["text"] in answer.inner_text()
