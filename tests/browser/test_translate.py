"""Writing a text and reading its translation, and which words became which."""

import json
import re
from pathlib import Path

import httpx
import pytest

from service.text.languages import canonical
from tests.browser.asking import editor, part, settle, state, translated
from tests.browser.conftest import Visit

pytest.importorskip("playwright", reason="playwright is not installed (pip install playwright)")

from playwright.sync_api import Page, Route, expect

pytestmark = [pytest.mark.browser, pytest.mark.process]

CODES = Path(__file__).parents[1] / "service" / "text" / "language_codes.json"
TEXT = "Two dogs play in the snow."
DETECT = "Detect the language"
AS_ASKED = {"alternatives": 2}
"""What the page asks for too: a search for more than the best drops fewer hypotheses, and may find a better one."""
LINES = "Two dogs play in the snow. Where is the station?\n\n  He is reading a book.\n"


def test_the_translation_follows_the_text_as_it_is_written(visit: Visit, server: httpx.Client) -> None:
    page = visit(state("translate"))
    editor(page).press_sequentially(TEXT)
    expect(part(page, "translation")).to_have_text(translated(server, TEXT)["text"])
    expect(part(page, "timing")).to_contain_text("tokenize")
    expect(part(page, "examples")).to_be_hidden()


def test_white_space_and_lines_are_kept(visit: Visit, server: httpx.Client) -> None:
    page = visit(state("translate", text=LINES))
    settle(page)
    shown = part(page, "translation").evaluate("box => box.innerText.replace('\\u200b', '')")
    assert shown == translated(server, LINES, **AS_ASKED)["text"]


def test_what_is_superseded_is_given_up(visit: Visit, server: httpx.Client) -> None:
    held: list[Route] = []

    def hold_first(route: Route) -> None:
        held.append(route) if not held else route.continue_()

    page = visit(state("translate"), before=lambda page: page.route("**/translate", hold_first))
    with page.expect_event("requestfailed") as failed:
        with page.expect_request("**/translate"):
            editor(page).fill("Two dogs")
        editor(page).fill(TEXT)
    assert failed.value.failure == "net::ERR_ABORTED"
    expect(part(page, "translation")).to_have_text(translated(server, TEXT)["text"])


@pytest.mark.parametrize(
    ("target", "best", "other", "differ"),
    [
        ("ja", "私は犬が好きです。", "私は猫が好きです！", ["猫"]),
        ("fr", "Le chien dort.", "Le chat dort !", ["chat"]),
        ("no_language", "The dog.", "The cat.", ["cat"]),
    ],
)
def test_words_of_other_wordings_stand_out(visit: Visit, target: str, best: str, other: str, differ: list[str]) -> None:
    def as_if_to_target(route: Route) -> None:
        models = route.fetch().json()
        [model] = [model for model in models["models"] if model["name"] == "translate-en-fr"]
        model["sources"], model["targets"] = ["en"], [target]
        route.fulfill(json={"models": [model]})

    def answer(route: Route) -> None:
        route.fulfill(json={"translations": [{"text": best, "alternatives": [{"text": other}]}]})

    def before(page: Page) -> None:
        page.route("**/models", as_if_to_target)
        page.route("**/translate", answer)

    page = visit(state("translate", target=target, text=TEXT), before=before)
    expect(part(page, "alternatives")).to_have_text(other)
    assert part(page, "alternatives").locator("em").all_text_contents() == differ


def test_an_example_can_be_clicked(visit: Visit) -> None:
    page = visit(state("translate"))
    part(page, "examples").get_by_role("button").first.click()
    settle(page)
    expect(editor(page)).to_be_focused()
    expect(part(page, "translation")).to_contain_text("fille")


@pytest.mark.parametrize("text", [TEXT, LINES, "A dog \N{DOG FACE} runs. Two dogs play in the snow."])
def test_pointing_at_a_word_lights_its_words_on_the_other_side(visit: Visit, server: httpx.Client, text: str) -> None:
    page = visit(state("translate", text=text))
    settle(page)
    words = translated(server, text, alignment=True, **AS_ASKED)["alignment"]["words"]
    links = [tuple(map(int, pair.split("-"))) for pair in words["pairs"].split()]
    lines = {"source": page.locator("#translate .editor .words"), "target": part(page, "translation")}
    for side, other in (("source", "target"), ("target", "source")):
        for i in {link[side == "target"] for link in links}:
            box = lines[side].locator(".word").nth(i).bounding_box()
            assert box is not None
            page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            linked = sorted({link[other == "target"] for link in links if link[side == "target"] == i})
            assert lines[side].locator(".pointed").all_text_contents() == [words[side][i]["token"]]
            assert lines[other].locator(".lit").all_text_contents() == [words[other][j]["token"] for j in linked]
    page.mouse.move(0, 0)
    expect(page.locator(".lit")).to_have_count(0)


def test_words_are_walked_by_keyboard_on_both_sides(visit: Visit, server: httpx.Client) -> None:
    page = visit(state("translate", text=TEXT))
    settle(page)
    words = translated(server, TEXT, alignment=True)["alignment"]["words"]
    links = [tuple(map(int, pair.split("-"))) for pair in words["pairs"].split()]
    translation, source = part(page, "translation"), page.locator("#translate .editor .words")
    editor(page).focus()
    page.keyboard.press("Control+Home")
    for place, word in enumerate(words["source"]):
        assert source.locator(".pointed").all_text_contents() == [word["token"]]
        expected = [words["target"][t]["token"] for s, t in links if s == place]
        assert translation.locator(".lit").all_text_contents() == expected
        if place + 1 < len(words["source"]):
            for _ in range(words["source"][place + 1]["span"][0] - word["span"][0]):
                page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    while not translation.evaluate("box => box === document.activeElement"):
        page.keyboard.press("Tab")
    for place, word in enumerate(words["target"]):
        assert translation.locator(".pointed").all_text_contents() == [word["token"]]
        expected = [words["source"][s]["token"] for s, t in links if t == place]
        assert source.locator(".lit").all_text_contents() == expected
        expect(page.locator("#announcer")).to_have_text(f"{word['token']}: {' '.join(expected) or 'no counterpart'}")
        page.keyboard.press("ArrowRight")


def test_the_words_lie_under_those_of_the_text_area(visit: Visit) -> None:
    page = visit(state("translate"))
    for text in ("word " * 60, "one\ntwo\n", "a" * 300, "", "\N{DOG FACE} שלום\nword"):
        editor(page).fill(text)
        sizes = page.evaluate(
            """() => {
              const area = document.querySelector("#translate .editor textarea");
              const words = document.querySelector("#translate .editor .words");
              return [area.clientWidth, words.clientWidth, area.clientHeight, words.clientHeight, area.scrollHeight];
            }"""
        )
        assert sizes[0] == sizes[1]
        assert sizes[2] == sizes[3]
        assert sizes[4] <= sizes[2]


def test_the_words_are_those_of_the_text_area_after_every_change(visit: Visit) -> None:
    page = visit(state("translate", text=LINES))
    settle(page)
    page.route("**/translate", lambda route: None)  # no answer comes: what is there is changed, not made anew
    layer = page.locator("#translate .editor .words")
    words = layer.locator(".word").count()
    for caret, keys in [(3, "x y"), (0, "A "), (9, "Backspace"), (60, "Enter"), (7, "Delete")]:
        editor(page).evaluate("(area, caret) => area.setSelectionRange(caret, caret)", caret)
        page.keyboard.press(keys) if keys.isalpha() and len(keys) > 1 else editor(page).press_sequentially(keys)
        assert layer.evaluate("box => box.textContent.replace('\u200b', '')") == editor(page).input_value()
    assert 0 < layer.locator(".word").count() < words
    editor(page).fill("Quite another text.")
    assert layer.evaluate("box => box.textContent") == "Quite another text."


def test_the_address_keeps_text_and_task(visit: Visit) -> None:
    page = visit(state("translate"))
    editor(page).fill(TEXT)
    settle(page)
    page.reload()
    settle(page)
    expect(editor(page)).to_have_value(TEXT)
    page.evaluate("location.hash = 'classify?text=Wonderful.'")
    settle(page)
    expect(page.get_by_role("tab", name="Classify")).to_have_attribute("aria-selected", "true")
    expect(part(page, "prediction")).to_contain_text("positive")


def test_what_is_written_before_the_models_are_known_stays(visit: Visit) -> None:
    held: list[Route] = []
    page = visit(state("translate"), before=lambda page: page.route("**/models", lambda route: held.append(route)))
    editor(page).fill(TEXT)
    while not held:
        page.wait_for_timeout(10)
    for route in held:
        route.continue_()
    settle(page)
    expect(editor(page)).to_have_value(TEXT)
    expect(part(page, "translation")).not_to_be_empty()


def test_languages_are_swapped_where_a_model_can(visit: Visit) -> None:
    def both_ways(route: Route) -> None:
        answer = route.fetch()
        there = next(m for m in answer.json()["models"] if (m["sources"], m["targets"]) == (["en"], ["fr"]))
        back = there | {"name": "back", "sources": ["fr"], "targets": ["en"]}
        route.fulfill(response=answer, json={"models": [there, back]})

    def prepared(page: Page) -> None:
        page.route("**/models", both_ways)

    page = visit(state("translate", text=TEXT), before=prepared)
    settle(page)
    translation = part(page, "translation").inner_text()
    page.route("**/translate", lambda route: None)  # no answer comes: there is no such model
    with page.expect_request("**/translate") as asked:
        page.get_by_role("button", name="Swap the languages").click()
    body = json.loads(asked.value.post_data or "")
    assert (body["text"], body["source"], body["target"], body["model"]) == (translation, "fr", "en", "back")


@pytest.mark.parametrize(("locale", "target"), [("fr-CA", "French"), ("de-DE", "German")])
def test_the_first_direction_is_from_any_language_to_the_visitors(visit: Visit, locale: str, target: str) -> None:
    page = visit(locale=locale)
    expect_chosen(page, "Detect the language", target)


def expect_chosen(page: Page, source: str, target: str) -> None:
    for name, language in (("source", source), ("target", target)):
        expect(part(page, name).locator("option:checked")).to_have_text(language)


def expect_offered(page: Page, name: str, names: list[str]) -> None:
    expect(part(page, name).locator("option")).to_have_text(names)


def test_source_and_target_are_chosen_one_after_the_other(visit: Visit) -> None:
    page = visit(state("translate", text="Zwei Hunde spielen im Schnee."))
    expect_offered(page, "source", [DETECT, "English", "French", "German", "Japanese", "Russian"])
    expect_offered(page, "target", ["French", "German", "Japanese", "Russian"])
    expect(part(page, "model")).to_be_hidden()
    with page.expect_request("**/translate") as asked:
        part(page, "source").select_option(label="German")
    assert "model" not in json.loads(asked.value.post_data or "")
    expect_chosen(page, "German", "French")
    expect_offered(page, "target", ["English", "French", "Japanese", "Russian"])
    expect(part(page, "about")).to_contain_text("translate-de-en and translate-en-fr, through English")
    expect(part(page, "attention")).to_be_hidden()
    with page.expect_request("**/translate") as asked:
        part(page, "target").select_option(label="English")
    assert json.loads(asked.value.post_data or "")["model"] == "translate-de-en"
    part(page, "source").select_option(label="English")
    expect_chosen(page, "English", "German")  # the language read before
    part(page, "target").select_option(label="Japanese")
    expect(page).to_have_url(re.compile("target=ja"))
    page.reload()
    expect_chosen(page, "English", "Japanese")


def test_a_language_is_detected_and_swapped_with_the_target(visit: Visit, server: httpx.Client) -> None:
    page = visit(state("translate", source="auto", target="en"))
    expect_chosen(page, DETECT, "English")
    editor(page).fill("Zwei Hunde spielen im Schnee.")
    expect_chosen(page, "Detected: German", "English")
    expect(part(page, "about")).to_contain_text("translate-de-en")
    expect(part(page, "attention")).to_be_visible()
    expect(part(page, "alternatives").locator("li").first).to_be_visible()
    translation = part(page, "translation").inner_text()
    page.reload()
    expect_chosen(page, "Detected: German", "English")
    page.get_by_role("button", name="Swap the languages").click()
    expect_chosen(page, "English", "German")
    expect(editor(page)).to_have_value(translation)
    part(page, "source").select_option(label=DETECT)
    expect_chosen(page, "Detected: English", "German")
    editor(page).fill("42")
    expect_chosen(page, DETECT, "German")
    expect(part(page, "translation")).to_have_text("42")
    expect(page.get_by_role("button", name="Swap the languages")).to_be_hidden()


def test_terms_of_a_glossary_are_written_as_it_says(visit: Visit, server: httpx.Client) -> None:
    page = visit(state("translate", text=TEXT))
    settle(page)
    page.locator("#translate summary", has_text="Glossary").click()
    part(page, "terms").fill("dogs = clebs\nsnow=")
    glossary = {"dogs": "clebs"}
    expect(part(page, "translation")).to_have_text(translated(server, TEXT, glossary=glossary)["text"])
    expect(part(page, "command")).to_contain_text('"glossary":{"dogs":"clebs"}')
    page.reload()
    expect(part(page, "terms")).to_have_value("dogs = clebs\nsnow=")
    expect(part(page, "translation")).to_contain_text("clebs")


def test_markup_in_a_text_stays_text(visit: Visit) -> None:
    attack = '<img src=x onerror="document.title=1"><script>document.title=1</script>'
    page = visit(state("translate", text=f"The dogs run. {attack}"))
    settle(page)
    page.locator("#translate summary", has_text="Glossary").click()
    part(page, "terms").fill(f"dogs = {attack}")
    expect(part(page, "translation")).to_contain_text(attack)
    assert page.title() != "1"
    assert page.locator("main :is(img, script)").count() == 0


def test_a_long_translation_is_shown_as_it_comes(visit: Visit, server: httpx.Client) -> None:
    text = f"{TEXT} " * 20
    page = visit(state("translate"))
    with page.expect_request("**/translate") as asked:
        editor(page).fill(text)
    assert asked.value.headers["accept"] == "application/x-ndjson"
    settle(page)
    expect(part(page, "translation")).to_have_text(translated(server, text)["text"])
    assert part(page, "translation").locator(".word").count() > 20, "the last event has the alignment"


def test_what_has_come_of_a_long_translation_is_shown(visit: Visit) -> None:
    lines = [{"index": 0, "piece": "Un"}, {"index": 0, "piece": " deux"}, {"status": 504, "detail": "Too late"}]

    def in_pieces(route: Route) -> None:
        route.fulfill(body="".join(f"{json.dumps(line)}\n" for line in lines), content_type="application/x-ndjson")

    page = visit(state("translate"), before=lambda page: page.route("**/translate", in_pieces))
    editor(page).fill(f"{TEXT} " * 20)
    expect(part(page, "translation")).to_have_text("Un deux")
    expect(part(page, "notice")).to_contain_text("Too late")


def test_a_model_of_hundreds_of_languages_has_a_menu_for_each_side(visit: Visit) -> None:
    codes = json.loads(CODES.read_text())["NLLB-200"]
    tags = [canonical(code) for code in codes]

    def as_if_there_were_one(route: Route) -> None:
        models = route.fetch().json()["models"]
        [model] = [model for model in models if model["name"] == "translate-en-fr"]
        route.fulfill(json={"models": [model, model | {"name": "all", "sources": tags, "targets": tags}]})

    def before(page: Page) -> None:
        page.route("**/models", as_if_there_were_one)
        page.route("**/translate", lambda route: None)  # no answer comes: there is no such model

    page = visit(state("translate", text=TEXT), before=before)
    expect_chosen(page, "English", "French")
    assert len(tags) == 202
    expect(part(page, "target").locator("option")).to_have_count(201)
    names = part(page, "source").locator("option").all_text_contents()[1:]
    assert len({*names}) == len(names) == 202, "each has a name of its own"
    expect_offered(page, "model", ["all", "translate-en-fr"])
    with page.expect_request("**/translate") as asked:
        part(page, "target").select_option(label="Traditional Chinese")
    body = json.loads(asked.value.post_data or "")
    assert (body["source"], body["target"], body["model"]) == ("en", "zh-Hant", "all")
    expect(part(page, "model")).to_be_hidden()
    with page.expect_request("**/translate") as asked:
        page.get_by_role("button", name="Swap the languages").click()
    body = json.loads(asked.value.post_data or "")
    assert (body["source"], body["target"], body["model"]) == ("zh-Hant", "en", "all")


def test_a_translation_is_copied(visit: Visit) -> None:
    page = visit(state("translate", text=TEXT), permissions=["clipboard-read", "clipboard-write"])
    settle(page)
    button = page.locator("#translate .result").get_by_role("button", name="Copy")
    button.click()
    expect(page.locator("#translate .result").get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == part(page, "translation").inner_text()


def test_a_word_is_replaced_and_the_rest_is_translated_anew(visit: Visit, server: httpx.Client) -> None:
    page = visit(state("translate", text=TEXT))
    settle(page)
    first = translated(server, TEXT)["text"]
    word = part(page, "translation").locator(".word").nth(1)
    prefix = first[: first.index(word.inner_text())]
    word.click()
    offered = part(page, "choices").locator("button")
    offered.first.wait_for()
    other = offered.nth(1).locator("bdi").inner_text()
    offered.nth(1).click()
    expect(part(page, "translation")).to_contain_text(prefix + other)
    assert part(page, "translation").inner_text() == translated(server, TEXT, target_prefix=prefix + other)["text"]
    expect(part(page, "choices")).to_be_hidden()
    editor(page).fill(TEXT + " ")  # another text, of which nothing was chosen
    expect(part(page, "translation")).to_contain_text(first)


def test_other_words_are_offered_and_chosen_by_keyboard(visit: Visit) -> None:
    page = visit(state("translate", text=TEXT))
    settle(page)
    part(page, "translation").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(part(page, "choices").locator("button").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(part(page, "choices")).to_be_hidden()
    expect(part(page, "translation")).to_be_focused()


def test_the_translation_is_shown_while_the_text_is_written(visit: Visit, server: httpx.Client) -> None:
    """Without a pause no answer of POST comes, so what is shown came by the WebSocket."""
    asked: list[str] = []
    page = visit(state("translate"), before=lambda page: page.route("**/translate", lambda route: asked.append("")))
    editor(page).press_sequentially("The little dog plays in the snow and the cat sleeps in the house ", delay=50)
    expect(part(page, "translation")).to_contain_text("Le petit chien")
    expect(part(page, "translation")).to_have_class(re.compile("pending"))
