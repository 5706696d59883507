"""What a page of another site can do to a service that its visitor reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import httpx
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.process]

FORM = """<form method="post" action="{}/v2/glossaries">
<input name="name" value="x"><input name="source_lang" value="en"><input name="target_lang" value="fr">
<input name="entries" value="dog,chat"><input name="entries_format" value="csv"><button>Win a prize</button></form>"""


def test_a_browser_says_that_a_page_of_another_site_asks(browser: Browser, server: httpx.Client) -> None:
    context = browser.new_context()
    page = context.new_page()
    form = FORM.format(str(server.base_url).rstrip("/"))
    page.route("http://elsewhere.test/", lambda route: route.fulfill(body=form, content_type="text/html"))
    page.goto("http://elsewhere.test/")
    before = server.get("/glossaries").json()
    with page.expect_response("**/v2/glossaries") as answered:
        page.get_by_role("button").click()
    assert answered.value.status == 403
    assert server.get("/glossaries").json() == before
    context.close()
