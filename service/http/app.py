"""The application: models in, ASGI out."""

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from service import __version__
from service.api_docs import api_docs_routes
from service.http.keys import Keys
from service.http.middleware import Middleware
from service.http.problems import openapi_of, routing_problem
from service.http.root_path import RootPath
from service.http.routes import Reload, model_routes, operations_routes
from service.metrics import Metrics
from service.playground import playground_routes
from service.serving import Serving
from service.settings import Settings


def create_app(
    settings: Settings,
    serving: Serving,
    metrics: Metrics,
    keys: Keys,
    reload: Reload,
    rates: Path | None = None,
) -> FastAPI:
    """An application whose lifespan starts the models, and ends when they have answered what they accepted.

    Args:
        reload: loads the models anew, and replaces those that serve.
        rates: where requests are counted for several servers, if so.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        serving.start()
        gc.collect()
        gc.freeze()
        yield
        await serving.stop(settings.drain_timeout_s)

    of_models = model_routes(serving, settings, keys, reload, rates)
    docs = api_docs_routes(lambda: app.openapi())
    routers = of_models, operations_routes(serving, metrics), playground_routes(), docs
    app = FastAPI(
        title="attend",
        version=__version__,
        description="Translation, classification and embeddings by encoder-decoder Transformers on ONNX Runtime.",
        lifespan=lifespan,
        servers=[{"url": settings.root_path}] if settings.root_path else None,
        openapi_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},
        exception_handlers={HTTPException: routing_problem},
        # The application's own routes: it matches each request twice against those of an included router.
        routes=[route for router in routers for route in router.routes],
    )
    metrics.watch(serving.states, lambda: serving.unready_reason() is None)
    metrics.expect(route.path for route in app.routes if isinstance(route, Route))
    app.add_middleware(
        Middleware,
        metrics=metrics,
        serving=serving,
        at_once={
            route.path: route.get_route_handler()
            for route in of_models.routes
            if isinstance(route, APIRoute) and route.methods == {"POST"}
        },
        max_body_bytes=settings.max_body_bytes,
        body_timeout_s=settings.body_timeout_s,
        access_log=settings.access_log,
    )
    if settings.root_path:
        app.add_middleware(RootPath, root_path=settings.root_path)
    if settings.allowed_origins:  # around all others, so that errors too can be read
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.allowed_origins,
            allow_methods=["GET", "HEAD", "POST"],
            allow_headers=["Authorization", "Content-Type", "traceparent", "X-Request-ID"],
            expose_headers=["Retry-After", "Server-Timing", "traceparent", "X-Request-ID"],
        )
    app.openapi = openapi_of(app)  # type: ignore[method-assign]  # FastAPI's documented way
    return app
