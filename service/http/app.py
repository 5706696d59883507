"""The application: models in, ASGI out."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from service.http import problems
from service.http.middleware import BodyLimit, Bookkeeping, CancelOnDisconnect
from service.http.routes import model_routes, operations_routes
from service.metrics import Metrics
from service.playground import playground_routes
from service.registry import Models
from service.settings import Settings


def create_app(settings: Settings, models: Models, metrics: Metrics) -> FastAPI:
    """An application whose lifespan starts the models, and ends when they have answered what they accepted."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        models.start()
        gc.collect()
        gc.freeze()
        yield
        await asyncio.to_thread(models.stop, settings.drain_timeout_s)

    app = FastAPI(
        title="attend",
        version="1",
        description="Translation, classification and embeddings by encoder-decoder Transformers on ONNX Runtime.",
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.models = models
    metrics.watch(models.states)
    problems.install(app)
    app.include_router(playground_routes())
    app.include_router(model_routes(models, settings))
    app.include_router(operations_routes(models, metrics))
    # The last one added is the outermost.
    app.add_middleware(BodyLimit, max_bytes=settings.max_body_bytes, timeout_s=settings.body_timeout_s)
    app.add_middleware(CancelOnDisconnect)
    app.add_middleware(Bookkeeping, metrics=metrics)
    app.openapi = problems.openapi_of(app)  # type: ignore[method-assign]  # FastAPI's documented way
    return app
