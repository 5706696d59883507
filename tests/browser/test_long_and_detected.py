"""What a visitor sees first: the language of a text is detected, and a long text stays within the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.asking import editor, part

if TYPE_CHECKING:
    from tests.browser.conftest import Visit

pytestmark = [pytest.mark.browser, pytest.mark.process]


def test_the_language_is_detected_unless_it_is_chosen(visit: Visit) -> None:
    page = visit()
    editor(page).fill("Das Wetter war gestern viel besser als heute.")
    source = part(page, "source")
    source.locator("option", has_text="Detected: German").wait_for(state="attached")
    assert source.input_value() == "auto"


def test_a_detected_language_is_forgotten_where_a_text_is_refused(visit: Visit, complaints: list[str]) -> None:
    page = visit()
    editor(page).fill("Das Wetter war gestern viel besser als heute.")
    source = part(page, "source")
    source.locator("option", has_text="Detected: German").wait_for(state="attached")
    editor(page).fill("Me gustaría reservar una mesa para dos personas esta noche.")
    part(page, "notice").wait_for()
    assert "Spanish" in part(page, "notice").inner_text()
    source.locator("option", has_text="Detect the language").wait_for(state="attached")
    complaints.clear()  # the browser's console has the 422


def test_a_text_that_is_too_long_scrolls_and_the_notice_is_in_view(visit: Visit, complaints: list[str]) -> None:
    page = visit(viewport={"width": 1280, "height": 800})
    editor(page).fill("word " * 12_000)
    part(page, "notice").wait_for()
    assert part(page, "count").inner_text() == "60,000 of 50,000 characters"
    assert editor(page).evaluate("area => area.closest('.pane').getBoundingClientRect().height") <= 800
    box = part(page, "notice").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 800
    complaints.clear()  # the browser's console has the 413


def test_a_line_of_the_glossary_that_is_no_term_is_named(visit: Visit) -> None:
    page = visit()
    part(page, "glossary").locator("summary").click()
    part(page, "terms").fill("dog = clebs\nhouse maison\n")
    assert "line 2 (“house maison”)" in part(page, "terms-said").inner_text()
