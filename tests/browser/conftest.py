"""The playground in a real browser, before the shipped artifacts behind a real server.

Each page is watched: unless a test says that it expects them, errors, violations of the content security policy and
requests to other hosts fail it.
"""

import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE_MS = 30_000

Visit = Callable[..., "Page"]


@pytest.fixture(scope="package")
def browser() -> Iterator["Browser"]:
    """Chromium. It ends with this package's tests: its event loop would be in the way of asynchronous ones."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install playwright)")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    sync_api.expect.set_options(timeout=PATIENCE_MS)
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def complaints() -> list[str]:
    """What went wrong on the pages of a test; a test that expects it clears the list."""
    return []


@pytest.fixture
def visit(
    request: pytest.FixtureRequest, browser: "Browser", server: httpx.Client, complaints: list[str]
) -> Iterator[Visit]:
    """Opens the playground, with a state in its address, in a browser context with the options given."""
    assert request.node.get_closest_marker("browser"), "`make test-fast` runs what has no mark"
    contexts: list[BrowserContext] = []

    def open_page(state: str = "", *, before: Callable[["Page"], object] | None = None, **options: Any) -> "Page":
        context = browser.new_context(base_url=str(server.base_url), **options)
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        _watch(page, str(server.base_url), complaints)
        if before is not None:
            before(page)
        page.goto(f"/#{state}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def _watch(page: "Page", home: str, complaints: list[str]) -> None:
    def on_console(message: "ConsoleMessage") -> None:
        if message.type in {"error", "warning"}:
            complaints.append(f"console: {message.text}")

    def on_request(request: "Request") -> None:
        if not request.url.startswith((home, "data:")):
            complaints.append(f"another host: {request.url}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("request", on_request)
    page.add_init_script(
        "addEventListener('securitypolicyviolation', e => console.error('CSP', e.violatedDirective, e.blockedURI))"
    )
