"""The panel that shows who attended to whom, against the numbers that the service gives."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.browser.asking import editor, part, settle, state, translated
from tests.browser.conftest import Visit

pytest.importorskip("playwright", reason="playwright is not installed (pip install playwright)")

from playwright.sync_api import Page, Request, Route, expect

pytestmark = [pytest.mark.browser, pytest.mark.process]

TEXT = "Two dogs play in the snow."
OPENED = state("translate", text=TEXT, attention="cross.1.2")

Weights = list[list[float]]


def weights_of(server: httpx.Client, kind: str, layer: int, head: int | str) -> Weights:
    options = {"kinds": [kind], "layers": [layer], "heads": "mean" if head == "mean" else [head]}
    weights: Weights = translated(server, TEXT, attention=options)["attention"]["matrices"][0]["weights"]
    return weights


def picture(page: Page) -> str:
    pixels: str = part(page, "map").locator("canvas").evaluate("canvas => canvas.toDataURL()")
    return pixels


def table(page: Page) -> list[list[str]]:
    rows: list[list[str]] = part(page, "table-box").evaluate(
        """box => [...box.querySelectorAll("tbody tr")]
          .map(row => [...row.querySelectorAll("td")].map(cell => cell.innerText))"""
    )
    return rows


def written(weights: Weights) -> list[list[str]]:
    return [[f"{weight:.2f}" for weight in row] for row in weights]


def watched(bodies: list[dict[str, Any]]) -> Callable[[Page], None]:
    def watch(request: Request) -> None:
        if request.url.endswith("/translate"):
            bodies.append(json.loads(request.post_data or "{}"))

    return lambda page: page.on("request", watch)


def test_attention_is_asked_for_only_while_the_panel_is_open(visit: Visit) -> None:
    bodies: list[dict[str, Any]] = []
    page = visit(state("translate", text=TEXT), before=watched(bodies))
    settle(page)
    assert ["attention" in body for body in bodies] == [False]
    part(page, "attention").locator("summary").first.click()
    part(page, "map").locator("canvas").wait_for()
    expect(part(page, "views")).to_be_visible()
    assert ["attention" in body for body in bodies] == [False, True]
    part(page, "attention").locator("summary").first.click()
    editor(page).fill(TEXT + " Where is the station?")
    settle(page)
    expect(part(page, "translation")).to_contain_text("gare")
    assert ["attention" in body for body in bodies] == [False, True, False]


def test_kind_layer_and_head_each_give_another_picture(visit: Visit) -> None:
    page = visit(OPENED)
    part(page, "heads").get_by_role("button").first.wait_for()
    seen = [picture(page)]
    for name, value in (("layer", "0"), ("head", "mean"), ("kind", "encoder"), ("layer", "3"), ("kind", "decoder")):
        part(page, name).select_option(value)
        seen.append(picture(page))
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize(("kind", "layer", "head"), [("cross", 1, 2), ("encoder", 4, 0), ("decoder", 0, "mean")])
def test_the_numbers_are_those_of_the_service(
    visit: Visit, server: httpx.Client, kind: str, layer: int, head: int | str
) -> None:
    page = visit(state("translate", text=TEXT, attention=f"{kind}.{layer}.{head}"))
    part(page, "table").locator("summary").click()
    part(page, "table-box").locator("tbody").wait_for()
    assert table(page) == written(weights_of(server, kind, layer, head))


def test_cells_are_walked_by_keyboard_and_read_out(visit: Visit, server: httpx.Client) -> None:
    page = visit(OPENED)
    part(page, "heads").get_by_role("button").first.wait_for()
    weights = weights_of(server, "cross", 1, 2)
    page.get_by_role("application").focus()
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(part(page, "readout")).to_have_text(f"jouent to dogs {weights[2][1]:.3f}")
    assert page.locator("#translate .lit").all_text_contents() == ["dogs", "jouent"]
    page.keyboard.press("End")
    expect(part(page, "readout")).to_have_text(f"jouent to </s> {weights[2][-1]:.3f}")


def test_a_cell_is_pointed_at_where_its_colour_is(visit: Visit, server: httpx.Client) -> None:
    page = visit(OPENED)
    part(page, "heads").get_by_role("button").first.wait_for()
    weights = weights_of(server, "cross", 1, 2)
    frame = page.get_by_role("application")
    frame.scroll_into_view_if_needed()
    frame.focus()
    page.keyboard.press("ArrowDown")  # row 1, column 0
    ring = page.locator("#translate .ring").bounding_box()
    assert ring is not None
    for row, column in ((0, 0), (1, 1), (4, 3)):
        x = ring["x"] + (column + 0.5) * ring["width"]
        y = ring["y"] + (row - 1 + 0.5) * ring["height"]
        page.mouse.move(x, y)
        expect(part(page, "readout")).to_contain_text(f"{weights[row][column]:.3f}")


def test_all_heads_are_shown_and_a_click_enlarges_one(visit: Visit) -> None:
    page = visit(OPENED)
    heads = part(page, "heads").get_by_role("button")
    heads.first.wait_for()
    assert heads.count() == 2 * (4 + 1)
    page.get_by_role("button", name="Layer 0, head 3").click()
    expect(part(page, "layer")).to_have_value("0")
    expect(part(page, "head")).to_have_value("3")
    expect(page.get_by_role("button", name="Layer 0, head 3")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("button", name="Layer 0, mean of its heads")).to_be_focused()
    expect(part(page, "head")).to_have_value("mean")
    assert "attention=cross.0.mean" in page.url


def test_each_sentence_has_its_matrix(visit: Visit) -> None:
    page = visit(state("translate", text=f"{TEXT}\nWhere is the station?", attention="cross.1.mean"))
    part(page, "heads").get_by_role("button").first.wait_for()
    first = picture(page)
    part(page, "sentence").select_option("1")
    assert picture(page) != first
    page.get_by_role("application").focus()
    expect(part(page, "readout")).to_contain_text("Où to Where")


def test_the_picture_has_a_pixel_of_its_own_for_each_of_the_screen(visit: Visit) -> None:
    page = visit(OPENED, device_scale_factor=2)
    canvas = part(page, "map").locator("canvas")
    canvas.wait_for()
    sizes = canvas.evaluate("canvas => [canvas.width, canvas.getBoundingClientRect().width]")
    assert sizes[0] == 2 * sizes[1]


def test_long_texts_are_asked_about_a_layer_at_a_time(visit: Visit) -> None:
    bodies: list[dict[str, Any]] = []
    page = visit(OPENED, before=watched(bodies))
    settle(page)
    editor(page).fill(f"{TEXT} " * 30)
    settle(page)
    expect(part(page, "sentence").locator("option")).to_have_count(30)
    assert bodies[-1]["attention"] == {"kinds": ["cross"], "layers": [1], "heads": "all", "encoding": "base64"}
    part(page, "layer").select_option("0")
    expect(page.get_by_role("button", name="Layer 0, head 0")).to_be_visible()
    assert bodies[-1]["attention"]["layers"] == [0]


def test_without_attention_the_translation_is_shown_all_the_same(
    visit: Visit, server: httpx.Client, complaints: list[str]
) -> None:
    def refuse(route: Route) -> None:
        body = json.loads(route.request.post_data or "{}")
        if "attention" not in body:
            route.continue_()
            return
        detail = "`attention` is missing: this artifact was exported without it"
        problem = {"code": "unsupported_option", "status": 422, "detail": detail, "request_id": "r"}
        route.fulfill(status=422, content_type="application/problem+json", body=json.dumps(problem))

    page = visit(OPENED, before=lambda page: page.route("**/translate", refuse))
    expect(part(page, "translation")).to_have_text(translated(server, TEXT)["text"])
    expect(part(page, "empty")).to_contain_text("exported without it")
    expect(part(page, "notice")).to_be_hidden()
    assert all("422" in complaint for complaint in complaints)
    complaints.clear()
