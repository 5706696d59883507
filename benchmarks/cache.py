"""What a cache of sentences gains: `python -m benchmarks.cache FILE.mo ...`.

The messages of compiled gettext files are translated in their order, without a cache, with one that is empty, and with
one that has them all. They are measured in turns.
"""

import asyncio
import gettext
import statistics
import sys
import time
from pathlib import Path

from benchmarks.models import SHIPPED, BenchmarkModel
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.front.assembly import load_catalog
from service.front.models import Models
from service.front.serving import Serving
from service.schemas.requests import TranslateRequest
from service.tasks.context import Context

TEXTS_OF_A_REQUEST = 64
KINDS = {"no cache": "0", "empty cache": "64MB", "full cache": "64MB"}


async def main(files: list[Path], turns: int = 3, n_texts: int = 3000) -> None:
    texts = [text for file in files for text in _messages(file)][:n_texts]
    print(f"{len(texts)} messages, of which {1 - len(set(texts)) / len(texts):.0%} repeat others")
    rates: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(turns):
        for kind, size in KINDS.items():
            rates[kind].append(await _rate(texts, size, n_passes=1 + (kind == "full cache")))
    without = statistics.median(rates["no cache"])
    for kind, rates_of_kind in rates.items():
        median = statistics.median(rates_of_kind)
        print(f"{kind}: {median:,.0f} texts/s, {median / without:.2f} of that without a cache")


def _messages(file: Path) -> list[str]:
    with file.open("rb") as opened:
        catalog: dict[str | tuple[str, int], str] = gettext.GNUTranslations(opened)._catalog  # type: ignore[attr-defined]
    return [text for key in catalog if (text := key if isinstance(key, str) else key[0]).strip()]


async def _rate(texts: list[str], size: str, n_passes: int) -> float:
    """Return the texts per second of the last pass over the texts."""
    settings = Settings(
        artifacts=BenchmarkModel(SHIPPED).artifacts("int8"), provider="cpu", workers=1, cache=size, log_level="error"
    )
    catalog = await asyncio.to_thread(load_catalog, settings, Metrics())
    serving = Serving(settings.probe_interval_s, catalog)
    serving.start()
    while serving.unready_reason() is not None:
        await asyncio.sleep(0.05)
    models = Models(serving, settings, None, None)  # type: ignore[arg-type]
    for _ in range(n_passes):
        began = time.monotonic()
        for start in range(0, len(texts), TEXTS_OF_A_REQUEST):
            await models.translate(TranslateRequest(text=texts[start : start + TEXTS_OF_A_REQUEST]), Context())
        seconds = time.monotonic() - began
    await serving.stop(1)
    return len(texts) / seconds


if __name__ == "__main__":
    asyncio.run(main([Path(file) for file in sys.argv[1:]]))
