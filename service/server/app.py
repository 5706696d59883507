"""The application: models in, ASGI out."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from fastapi.routing import APIRoute
from opentelemetry.trace import TracerProvider
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from service import __version__
from service.access.guards import Access
from service.access.keys import Keys
from service.access.usage import Usage
from service.base.garbage import keep_objects
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.dialects import enabled
from service.front.models import Models
from service.front.serving import Serving
from service.glossaries.store import Glossaries
from service.http.dialect import Backend, Dialects, Native
from service.http.documents import BATCH_PATH, DOCUMENT_PATH, document_routes
from service.http.glossaries import GLOSSARY_FILE_PATH, glossary_routes
from service.http.identity import Identity
from service.http.limits import Limits
from service.http.live import LIVE_PATH, live_route
from service.http.memories import MEMORY_FILE_PATH, memory_routes
from service.http.origins import Origins
from service.http.problems import TAGS, Problem, openapi_of, raise_not_routed
from service.http.root_path import RootPath
from service.http.routes import Reload, model_routes, operations_routes
from service.http.spans import telemetry
from service.http.stores import Stores
from service.jobs.worker import DocumentJobs
from service.memories.store import Memories
from service.pages.api_docs import api_docs_routes
from service.pages.playground import playground_routes
from service.storage.database import database_of


class Application(FastAPI):
    """FastAPI without its own layers around ours: `Limits` answers every error, and limits every body."""

    def build_middleware_stack(self) -> ASGIApp:
        stack = super().build_middleware_stack()
        while not isinstance(stack, RootPath | Origins | Identity):
            stack = stack.app  # type: ignore[attr-defined]  # each layer of FastAPI has the next one
        return stack


def create_app(
    settings: Settings,
    serving: Serving,
    metrics: Metrics,
    keys: Keys,
    reload: Reload,
    rates: Path | None = None,
    traces: TracerProvider | None = None,
) -> FastAPI:
    """Return the application. Its lifespan starts the models, and ends when all accepted requests are answered.

    Args:
        reload: loads the models anew, and replaces the models that serve.
        rates: the socket where requests are counted for several servers; None if this is the only one.
        traces: makes and sends the spans of requests; None if they are not traced.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        serving.start()
        stores.start()
        keep_objects()
        yield
        await stores.stop()
        await serving.stop(settings.drain_timeout_s)

    database = database_of(settings, metrics.database_failures.inc)
    glossaries = Glossaries(database)
    memories = Memories(database)
    models = Models(serving, settings, glossaries, memories)
    usage = Usage(database, lambda: keys.have_names)
    documents = DocumentJobs(models, settings, database, memories)
    stores = Stores(database, glossaries, memories, documents, usage)
    access = Access(settings, keys, usage, metrics, rates)
    of_models = model_routes(models, access.guards(), reload)
    of_glossaries = glossary_routes(stores.glossaries, access.guards())
    of_memories = memory_routes(memories, documents, access.guards())
    of_documents = document_routes(documents, settings, access.guards())
    live = live_route(models, access, settings, metrics)
    page = playground_routes(settings.max_text_characters)
    docs = api_docs_routes(lambda: app.openapi())
    native = (of_models, of_glossaries, of_memories, of_documents, operations_routes(models, metrics), page, docs)
    dialects = Dialects(enabled(settings), {route.path for router in native for route in _plain(router.routes)})
    backend = Backend(models, stores, settings, access)
    tags = TAGS | {dialect.name: dialect.about for dialect in dialects}
    of_dialects = [router for dialect in dialects for router in dialect.routers(backend)]
    app = Application(
        title="attend",
        version=__version__,
        description="Translation, classification and embeddings by encoder-decoder Transformers on ONNX Runtime.",
        lifespan=lifespan,
        servers=[{"url": settings.root_path}] if settings.root_path else None,
        openapi_url=None,
        openapi_tags=[{"name": name, "description": about} for name, about in tags.items()],
        redirect_slashes=False,
        telemetry=telemetry(traces, settings.root_path),
        exception_handlers={HTTPException: raise_not_routed},
        # Routes of the application itself: FastAPI matches each request twice against those of an included router.
        routes=[live, *(route for router in (*native, *of_dialects) for route in router.routes)],
    )
    paths_of_documents = [path for dialect in dialects for path in dialect.paths_of_documents]
    metrics.watch(serving.states, lambda: serving.unready_reason() is None, serving.devices)
    for route in _plain(app.routes):
        metrics.expect(dialects.of(route.path).name, route.path_format)
    metrics.expect(Native.name, LIVE_PATH)
    app.add_middleware(
        Limits,
        serving=serving,
        direct_handlers={
            route.path: route.get_route_handler()
            for router in (of_models, of_glossaries, of_memories, of_documents, *of_dialects)
            for route in router.routes
            if isinstance(route, APIRoute) and route.methods == {"POST"} and not route.param_convertors
        },
        max_body_bytes=settings.max_body_bytes,
        max_bytes_at=dict.fromkeys(
            [DOCUMENT_PATH, BATCH_PATH, GLOSSARY_FILE_PATH, MEMORY_FILE_PATH, *paths_of_documents],
            settings.max_document_bytes,
        ),
        body_timeout_s=settings.client_timeout_s,
    )
    tracer = traces.get_tracer("attend", __version__) if traces is not None else None
    app.add_middleware(Identity, metrics=metrics, dialects=dialects, access_log=settings.access_log, tracer=tracer)
    if settings.allowed_origins or dialects.open_to_all:  # outside of what answers errors: pages may read these
        app.add_middleware(Origins, allowed=settings.allowed_origins, dialects=dialects)
    if settings.root_path:
        app.add_middleware(RootPath, root_path=settings.root_path)
    errors: list[type[BaseModel]] = [Problem, *(dialect.error for dialect in dialects)]
    app.openapi = openapi_of(app, errors, TAGS)  # type: ignore[method-assign]  # FastAPI's documented way
    return app


def _plain(routes: Sequence[BaseRoute]) -> list[Route]:
    return [route for route in routes if isinstance(route, Route)]
