"""The models of a server that is alone: it loads them itself."""

import asyncio
import logging

from service.base.errors import ReloadRefused, StartRefused
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.models.catalog import load_models
from service.models.serving import Serving, in_daemon_thread
from service.workers.loader import Loader

logger = logging.getLogger(__name__)


class OwnModels:
    """Loads the models that the settings name.

    Args:
        loader: of the first models; None where they run in this process.
    """

    def __init__(self, settings: Settings, metrics: Metrics, serving: Serving, loader: Loader | None) -> None:
        self._settings = settings
        self._metrics = metrics
        self._serving = serving
        self._loader = loader
        self._loading: asyncio.Task[None] | None = None

    async def may_listen(self) -> None:
        """At once."""

    async def run(self) -> None:
        """Raises StartRefused: they cannot be loaded."""
        self._loading = asyncio.create_task(self._load(self._loader))
        await self._loading

    async def reload(self) -> None:
        """Replace the models that serve; that goes on when whoever asks for it is cancelled.

        Raises:
            ReloadRefused: they cannot be, or are being loaded.
        """
        if self._loading is not None and not self._loading.done():
            logger.warning("Models are being loaded already")
            raise ReloadRefused("Models are being loaded already")
        logger.info("loading the models anew")
        self._loading = asyncio.create_task(self._load_anew())
        await asyncio.shield(self._loading)

    async def _load_anew(self) -> None:
        """Raises ReloadRefused; the log has it too, as who asked may have left."""
        try:
            await self._load(None)
        except StartRefused as error:
            logger.error("the models stay as they are: %s", error)
            raise ReloadRefused(f"The models stay as they are: {error}") from None
        except Exception:
            logger.exception("the models stay as they are")
            raise ReloadRefused("The models stay as they are: unexpected error; the log has it") from None

    async def _load(self, loader: Loader | None) -> None:
        models = await in_daemon_thread(lambda: load_models(self._settings, self._metrics, loader))
        await self._serving.replace(models)
