"""Writing a text and reading its label, and what this owes to each of its tokens."""

import httpx
import pytest

from tests.browser.asking import classified, editor, faintest, part, settle, state
from tests.browser.conftest import Visit

pytest.importorskip("playwright", reason="playwright is not installed (pip install playwright)")

from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.process]

TEXT = "The story is weak, but the music is beautiful and I loved the ending."


def shades(page: Page) -> list[tuple[str, list[int]]]:
    """Each token as it is written, and its colour."""
    found = page.locator("#classify .editor .word").evaluate_all(
        """words => words.map(word => [word.textContent, getComputedStyle(word).backgroundColor])
          .map(([text, color]) => [text, color.match(/\\d+/g).map(Number)])"""
    )
    return [(word, color) for word, color in found]


def signed(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{abs(value):.3f}"  # noqa: RUF001  # a minus sign


def test_the_label_follows_the_text_as_it_is_written(visit: Visit, server: httpx.Client) -> None:
    page = visit("classify")
    expect(page.locator("#tab-classify")).to_have_attribute("aria-selected", "true")  # once the models are known
    editor(page).press_sequentially(TEXT)
    scores = classified(server, TEXT)["scores"]
    rows = part(page, "prediction").locator(".scores li")
    for row, (label, score) in enumerate(scores.items()):
        expect(rows.nth(row)).to_contain_text(label)
        expect(rows.nth(row)).to_contain_text(f"{100 * score:.1f} %")


def test_tokens_are_shaded_by_their_evidence(visit: Visit, server: httpx.Client) -> None:
    page = visit(state("classify", text=TEXT))
    settle(page)
    tokens = classified(server, TEXT, evidence=True)["evidence"]["tokens"]
    odds = [token["contributions"]["positive"] - token["contributions"]["negative"] for token in tokens]
    shown = shades(page)
    assert [word for word, _ in shown] == [TEXT[slice(*token["span"])] for token in tokens]
    distance = [sum(255 - channel for channel in color) for _, color in shown]
    assert max(range(len(odds)), key=lambda i: abs(odds[i])) == max(range(len(odds)), key=lambda i: distance[i])
    for (_, (red, _, blue)), value in zip(shown, odds, strict=True):
        if abs(value) > 0.1 * max(map(abs, odds)):
            assert (blue > red) == (value > 0)  # teal for the one label, orange for the other


def test_a_token_tells_what_the_label_owes_to_it(visit: Visit, server: httpx.Client) -> None:
    page = visit(state("classify", text=TEXT))
    settle(page)
    tokens = classified(server, TEXT, evidence=True)["evidence"]["tokens"]
    place = next(i for i, token in enumerate(tokens) if TEXT[slice(*token["span"])] == "loved")
    said = ", ".join(f"{label} {signed(value)}" for label, value in tokens[place]["contributions"].items())
    box = page.locator("#classify .editor .word").nth(place).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(part(page, "readout").first).to_have_text(f"loved {said}")
    page.mouse.move(0, 0)
    expect(part(page, "readout").first).to_contain_text("Point at a word")


def test_tokens_are_read_by_the_caret(visit: Visit) -> None:
    page = visit(state("classify", text=TEXT))
    settle(page)
    editor(page).focus()
    page.keyboard.press("Control+Home")
    expect(part(page, "readout").first).to_contain_text("The negative")
    page.keyboard.press("Control+ArrowRight")
    expect(page.locator("#announcer")).to_contain_text("positive")


def test_the_odds_are_told(visit: Visit, server: httpx.Client) -> None:
    page = visit(state("classify", text=TEXT))
    settle(page)
    logits = classified(server, TEXT, evidence=True)["evidence"]["logits"]
    expect(part(page, "prediction")).to_contain_text(f"{signed(logits['positive'] - logits['negative'])} for positive")


def test_while_a_text_is_written_on_its_beginning_keeps_its_colours(visit: Visit) -> None:
    page = visit(state("classify", text=TEXT))
    settle(page)
    before = shades(page)
    page.route("**/classify", lambda route: None)  # no answer comes
    editor(page).press("Control+End")
    editor(page).press_sequentially(" Really")
    assert shades(page) == before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_every_shade(visit: Visit, scheme: str) -> None:
    page = visit(state("classify", text=TEXT), color_scheme=scheme)
    settle(page)
    ink = editor(page).evaluate("area => getComputedStyle(area).color")
    page.locator("#classify .editor .words").evaluate("(box, ink) => (box.style.color = ink)", ink)
    ratio, text = faintest(page.locator("#classify .editor .word"))
    assert ratio >= 4.5, text


def test_attention_of_a_classifier_is_shown(visit: Visit) -> None:
    page = visit(state("classify", text=TEXT, attention="encoder.1.0"))
    part(page, "heads").get_by_role("button").first.wait_for()
    assert part(page, "kind").locator("option").all_text_contents() == ["Encoder: text to itself"]
    page.get_by_role("application").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):  # past the special token before the text
        page.keyboard.press(key)
    assert page.locator("#classify .lit").all_text_contents() == ["The", "story"]
