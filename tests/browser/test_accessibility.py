"""axe-core finds nothing to mend on the page, in any of its states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.asking import editor, part, settle

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Visit

pytestmark = [pytest.mark.browser, pytest.mark.process]

TABLE = {"name": "a.csv", "mimeType": "text/csv", "buffer": b"en,fr\nThe dog sleeps.,\n"}


def findings(page: Page) -> list[str]:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in axe.Axe().run(page).response["violations"]]


@pytest.mark.parametrize("color_scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_core_finds_nothing(visit: Visit, color_scheme: str, width: int) -> None:
    viewport = {"width": width, "height": 900}
    page = visit(viewport=viewport, color_scheme=color_scheme, bypass_csp=True)  # the policy forbids axe's script
    editor(page).wait_for()
    assert findings(page) == []
    part(page, "glossary").locator("summary").click()
    part(page, "terms").fill("dog = clebs\nhouse maison\n")
    part(page, "check").check()
    part(page, "file").set_input_files(files=[TABLE])  # type: ignore[list-item]
    part(page, "said").locator("a").wait_for()
    editor(page).fill("The dog sleeps in the garden.")
    part(page, "attention").locator("summary").first.click()
    page.locator("#translate .head").first.wait_for()
    settle(page)
    part(page, "translation").locator(".word").first.click()
    part(page, "choices").locator("button").first.wait_for()
    assert findings(page) == []
    page.locator("#tab-classify").click()
    editor(page).fill("I could watch this film every week.")
    settle(page)
    assert findings(page) == []
