"""Takes the pictures of the playground for the documentation, with the shipped artifacts: `make screenshots`.

Needs Playwright and a Chromium (Debian: apt-get install chromium fonts-inter). Without the font Inter the page has the
system's own font.
"""

import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

import httpx
from playwright.sync_api import Browser, Page, sync_playwright

from tests.running_service import ROOT, running_service

IMAGES = ROOT / "docs" / "images"

LANGUAGES = {"source": "en", "target": "fr"}
SENTENCES = "A little girl in a red dress is feeding the ducks by the lake. Where is her mother?"
REVIEW = "The story is weak, but the music is beautiful and I loved the ending."


@dataclass(frozen=True)
class Shot:
    """A picture of the page in one state.

    Attributes:
        height: height of the window; None shows the whole page.
        pointed: selector of the word that the pointer is at.
    """

    name: str
    address: str
    width: int
    height: int | None
    scheme: Literal["light", "dark"]
    pointed: str


SHOTS = [
    Shot(
        name="playground-translate",
        address=f"translate?{urlencode(LANGUAGES | {'text': SENTENCES, 'attention': 'cross.1.2'})}",
        width=1280,
        height=None,
        scheme="light",
        pointed="#translate [data-part=translation] .word:nth-of-type(5)",
    ),
    Shot(
        name="playground-classify",
        address=f"classify?{urlencode({'text': REVIEW, 'attention': 'encoder.1.mean'})}",
        width=1280,
        height=None,
        scheme="dark",
        pointed="#classify .editor .word:nth-of-type(13)",
    ),
    Shot(
        name="playground-phone",
        address=f"translate?{urlencode(LANGUAGES | {'text': SENTENCES, 'attention': 'cross.1.mean'})}",
        width=360,
        height=780,
        scheme="light",
        pointed="#translate [data-part=translation] .word:nth-of-type(6)",
    ),
]


def main() -> None:
    """Write docs/images/*.png."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        sys.exit("no Chromium is installed (Debian: apt-get install chromium)")
    IMAGES.mkdir(exist_ok=True)
    with (
        tempfile.NamedTemporaryFile() as log,
        running_service(Path(log.name), {"ATTEND_PROVIDER": "cpu"}) as client,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for shot in SHOTS:
            take(browser, client.base_url, shot)
        browser.close()


def take(browser: Browser, address: httpx.URL, shot: Shot) -> None:
    context = browser.new_context(
        viewport={"width": shot.width, "height": shot.height or 800}, device_scale_factor=1.5, color_scheme=shot.scheme
    )
    page = context.new_page()
    page.goto(str(address.join(f"/#{shot.address}")))
    page.locator("[role=tabpanel]:not([hidden]) .head").first.wait_for()
    if shot.height is None:
        page.set_viewport_size({"width": shot.width, "height": page.evaluate("document.documentElement.scrollHeight")})
    point(page, shot.pointed)
    page.screenshot(path=IMAGES / f"{shot.name}.png")
    context.close()


def point(page: Page, selector: str) -> None:
    """Move the pointer to an element, and wait until all animations have ended."""
    box = page.locator(selector).bounding_box()
    assert box is not None, f"there is no {selector}"
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.evaluate("Promise.all(document.getAnimations().map(animation => animation.finished)).then(() => null)")


if __name__ == "__main__":
    main()
