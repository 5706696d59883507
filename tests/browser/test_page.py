"""The page for everyone: by keyboard, by ear, on a phone, in the dark."""

import json
import re
import shlex

import pytest

from tests.browser.asking import editor, faintest, part, settle, state
from tests.browser.conftest import Visit

pytest.importorskip("playwright", reason="playwright is not installed (pip install playwright)")

from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.process]

TEXT = "A little girl in a red dress is feeding the ducks by the lake. Where is the station?"
STATES = {
    "empty": state("translate"),
    "translate": state("translate", text=TEXT, attention="encoder.5.mean"),
    "classify": state("classify", text="I loved the beautiful ending.", attention="encoder.1.0"),
}


def opened(visit: Visit, name: str, **options: object) -> Page:
    """With everything open that can be."""
    page = visit(STATES[name], **options)
    if name != "empty":
        settle(page)
        part(page, "heads").get_by_role("button").first.wait_for()
        part(page, "table").locator("summary").click()
    part(page, "curl").locator("summary").click()
    return page


@pytest.mark.parametrize("name", STATES)
def test_a_phone_scrolls_in_one_direction(visit: Visit, name: str) -> None:
    page = opened(visit, name, viewport={"width": 360, "height": 640}, device_scale_factor=2)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.evaluate(
        "[...document.querySelectorAll('.pane, .card')].every(box => box.getBoundingClientRect().right <= 360)"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", STATES)
def test_texts_stand_out_from_what_is_behind_them(visit: Visit, name: str, scheme: str) -> None:
    page = opened(visit, name, color_scheme=scheme)
    texts = page.locator(
        ":is(h1, h2, h3, p, li, label, summary, button, a, td, th, strong, select, code, textarea)"
        ":visible:not(.editor .words *, [aria-hidden=true])"
    )
    ratio, text = faintest(texts)
    assert ratio >= 4.5, text


def test_dark_is_dark(visit: Visit) -> None:
    page = visit(color_scheme="dark")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert max(background) < 60


@pytest.mark.parametrize("name", STATES)
def test_everything_that_is_used_has_a_name(visit: Visit, name: str) -> None:
    page = opened(visit, name)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, select, textarea, input, a, [tabindex], [role=group], section")]
          .filter(e => e.checkVisibility())
          .filter(e => !e.getAttribute("aria-label") && !e.getAttribute("aria-labelledby"))
          .filter(e => !e.labels?.length && !e.textContent.trim())
          .map(e => e.outerHTML)"""
    )
    duplicate = page.evaluate(
        "() => [...document.querySelectorAll('[id]')].map(e => e.id).filter((id, i, all) => all.indexOf(id) !== i)"
    )
    assert (nameless, duplicate) == ([], [])
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator("main").count() == page.locator("h1").count() == 1


def test_tasks_are_chosen_by_arrow_keys(visit: Visit) -> None:
    page = visit()
    page.get_by_role("tab", name="Translate").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Classify")).to_be_focused()
    expect(page.get_by_role("tabpanel", name="Classify")).to_be_visible()
    expect(page.get_by_role("tabpanel", name="Translate")).to_be_hidden()
    assert page.url.endswith("#classify")


def test_the_whole_way_is_walked_by_keyboard_alone(visit: Visit) -> None:
    page = visit()
    part(page, "examples").get_by_role("button").first.wait_for()
    for _ in range(5):  # the tabs, the documentation, perhaps the languages and their swap
        page.keyboard.press("Tab")
        if editor(page).evaluate("area => area === document.activeElement"):
            break
    expect(editor(page)).to_be_focused()
    page.keyboard.type("Two dogs play in the snow.")
    settle(page)
    seen = []
    for _ in range(10):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            """() => {
              const focused = document.activeElement;
              const { outlineStyle, outlineWidth } = getComputedStyle(focused);
              return [focused.ariaLabel ?? focused.innerText, outlineStyle === "none" ? 0 : parseFloat(outlineWidth)];
            }"""
        )
        seen.append(re.split(r"[;\s]", name)[0])
        assert outline >= 2, f"{name} has the focus, and does not show it"
    assert " ".join(seen) == "Glossary Clear Translate Language Translation Other Correct Copy Attention Request"


def test_a_result_is_announced(visit: Visit) -> None:
    page = visit()
    editor(page).fill("Two dogs play in the snow.")
    settle(page)
    expect(page.locator("#announcer")).to_have_text(f"Translation: {part(page, 'translation').inner_text()}")


def test_nothing_moves_for_those_who_want_no_motion(visit: Visit) -> None:
    page = visit(reduced_motion="reduce")
    part(page, "examples").get_by_role("button").first.wait_for()
    durations = page.evaluate("[...document.querySelectorAll('*')].map(e => getComputedStyle(e).transitionDuration)")
    assert set(durations) == {"0s"}


@pytest.mark.parametrize(
    "text", ['It\'s "here" for $5 and `that`!', "one\\two\n\ttab %s", "'; rm -rf / #", "caf\xe9 \N{DOG FACE} שלום"]
)
def test_the_command_says_the_same_to_a_shell(visit: Visit, text: str) -> None:
    page = visit(state("classify", text=text))
    settle(page)
    part(page, "curl").locator("summary").click()
    words = shlex.split(part(page, "command").inner_text())
    assert words[:3] == ["curl", "-s", page.url.split("#")[0] + "classify"]
    body = json.loads(words[words.index("-d") + 1])
    assert body == {"text": text, "model": "sentiment-imdb", "evidence": True}


def test_the_command_is_copied(visit: Visit) -> None:
    page = visit(state("classify", text="Wonderful."), permissions=["clipboard-read", "clipboard-write"])
    settle(page)
    part(page, "curl").locator("summary").click()
    panel = page.locator("#classify [data-part=curl]")
    panel.get_by_role("button", name="Copy").click()
    expect(panel.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == part(page, "command").inner_text()
