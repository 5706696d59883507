"""Takes the pictures of the playground that the documentation shows, from the shipped artifacts: `make screenshots`.

Needs Playwright and a Chromium (Debian: apt-get install chromium fonts-inter). The page is set in Inter where a machine
has it, and in the system's own type elsewhere.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
PATIENCE_S = 60

LANGUAGES = {"source": "en", "target": "fr"}
SENTENCES = "A little girl in a red dress is feeding the ducks by the lake. Where is her mother?"
REVIEW = "The story is weak, but the music is beautiful and I loved the ending."


@dataclass(frozen=True)
class Shot:
    """A picture of the page in one state.

    Args:
        height: of the window; None for one that shows the whole page.
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
    """Writes docs/images/*.png."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        sys.exit("no Chromium is installed (Debian: apt-get install chromium)")
    IMAGES.mkdir(exist_ok=True)
    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for shot in SHOTS:
            take(browser, address, shot)
        browser.close()


@contextmanager
def served() -> Iterator[str]:
    """The address of a server of the shipped artifacts."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ATTEND_")}
    environment |= {"ATTEND_PORT": "0", "ATTEND_PROVIDER": "cpu"}
    with tempfile.NamedTemporaryFile() as log:
        command = [sys.executable, "-m", "service"]
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=log)  # noqa: S603
        try:
            yield announced_address(server, Path(log.name))
        finally:
            server.terminate()
            server.wait(PATIENCE_S)


def announced_address(server: "subprocess.Popen[bytes]", log: Path) -> str:
    """Where the server says that it listens."""
    deadline = time.monotonic() + PATIENCE_S
    while "Uvicorn running on " not in (said := log.read_text(encoding="utf-8")):
        if server.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"the server did not start: {said}")
        time.sleep(0.05)
    return said.split("Uvicorn running on ")[1].split()[0]


def take(browser: Browser, address: str, shot: Shot) -> None:
    context = browser.new_context(
        viewport={"width": shot.width, "height": shot.height or 800}, device_scale_factor=1.5, color_scheme=shot.scheme
    )
    page = context.new_page()
    page.goto(f"{address}/#{shot.address}")
    page.locator("[role=tabpanel]:not([hidden]) .head").first.wait_for()
    if shot.height is None:
        page.set_viewport_size({"width": shot.width, "height": page.evaluate("document.documentElement.scrollHeight")})
    point(page, shot.pointed)
    page.screenshot(path=IMAGES / f"{shot.name}.png")
    context.close()


def point(page: Page, selector: str) -> None:
    """Puts the pointer there, and lets what it changes come to rest."""
    box = page.locator(selector).bounding_box()
    assert box is not None, f"there is no {selector}"
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.evaluate("Promise.all(document.getAnimations().map(animation => animation.finished)).then(() => null)")


if __name__ == "__main__":
    main()
