"""What tests of the page need again and again: writing, waiting, and the service's own answer to compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

if TYPE_CHECKING:
    import httpx
    from playwright.sync_api import Locator, Page


def state(view: str, **parts: str) -> str:
    """As the page keeps it in its address; translations are from English to French."""
    languages = {"source": "en", "target": "fr"} if view == "translate" else {}
    return f"{view}?{urlencode(languages | parts)}"


def part(page: Page, name: str) -> Locator:
    """A part of the task that is open."""
    return page.locator(f"[role=tabpanel]:not([hidden]) [data-part={name}]")


def editor(page: Page) -> Locator:
    return page.locator("[role=tabpanel]:not([hidden]) .editor textarea")


def settle(page: Page) -> None:
    """Waits until an answer is shown and belongs to the text."""
    page.locator(
        "[role=tabpanel]:not([hidden]) :is(.words, .prediction):not(.pending):not(.stale):visible"
    ).last.wait_for()
    part(page, "timing").locator("strong").wait_for()


def translated(server: httpx.Client, text: str, **options: Any) -> dict[str, Any]:
    """What the service says of a text that the page has."""
    answer = server.post("/translate", json={"text": text, "target": "fr"} | options).raise_for_status().json()
    translation: dict[str, Any] = answer["translations"][0]
    return translation


def classified(server: httpx.Client, text: str, **options: Any) -> dict[str, Any]:
    answer = server.post("/classify", json={"text": text} | options).raise_for_status().json()
    prediction: dict[str, Any] = answer["predictions"][0]
    return prediction


def faintest(texts: Locator) -> tuple[float, str]:
    """The lowest contrast ratio (WCAG 2.2) of texts and the nearest opaque backgrounds behind them, and which it is."""
    ratio, text = texts.evaluate_all(
        """(elements) => {
          const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
          const rgba = (color) => {
            canvas.clearRect(0, 0, 1, 1);
            canvas.fillStyle = color;
            canvas.fillRect(0, 0, 1, 1);
            return canvas.getImageData(0, 0, 1, 1).data;
          };
          const linear = (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
          const luminance = (color) => {
            const [r, g, b] = [...rgba(color)].map((channel) => linear(channel / 255));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const opaque = (box) => rgba(getComputedStyle(box).backgroundColor)[3] === 255;
          const contrast = (element) => {
            let behind = element;
            while (behind.parentElement && !opaque(behind)) behind = behind.parentElement;
            const [a, b] = [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor].map(luminance);
            return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
          };
          return elements.map((element) => [contrast(element), element.outerHTML]).sort(([a], [b]) => a - b)[0];
        }"""
    )
    return ratio, text
