"""The routes. A handler validates, submits, awaits and shapes; errors and metrics are not its business."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from fastapi import APIRouter, Request, Response

from service.base.errors import NotReady
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.glossaries.store import Glossaries
from service.http import compression, event_stream
from service.http.access import Guards
from service.http.event_stream import EventStream
from service.http.json_route import json_route
from service.http.limits import within_limits
from service.http.problems import documented
from service.http.stores import Stores
from service.models import dispatch
from service.models.serving import Serving
from service.schemas.answers import (
    ClassificationUsage,
    ClassifyResponse,
    DetectResponse,
    EmbedResponse,
    EmbedUsage,
    LanguagesResponse,
    ModelCard,
    ModelsResponse,
    Status,
    StreamedPiece,
    TranslateResponse,
)
from service.schemas.requests import ClassifyRequest, DetectRequest, EmbedRequest, TranslateRequest
from service.schemas.timing import Timing
from service.tasks.classification import Classifier
from service.tasks.embedding import Embedder
from service.tasks.translation import Translator
from service.text.languages import Languages

Reload = Callable[[], Awaitable[None]]
"""Loads the models anew, and replaces those that serve. Raises ReloadRefused."""


def model_routes(serving: Serving, settings: Settings, guards: Guards, reload: Reload, stores: Stores) -> APIRouter:
    """The routes that run models or tell about them; behind keys and rates where these are configured."""
    router = APIRouter(route_class=json_route(guards), dependencies=guards.described)
    of_work = documented(*guards.statuses, 400, 404, 408, 413, 415, 422, 500, 503, 504)

    @router.post("/translate", responses=of_work, response_model_exclude_none=True)
    async def translate(request: TranslateRequest, http: Request) -> TranslateResponse:
        """Translate texts: each is split into sentences, translated and joined with its own white space."""
        timeout_s = within_limits(request, settings)
        if (media_type := event_stream.wanted(http)) is not None:
            pieces = _in_pieces(serving, request, timeout_s, http.state.timing, stores.glossaries)
            return EventStream(await anext(pieces), pieces, media_type, http)  # type: ignore[return-value]
        with serving.use() as models:
            return await dispatch.translate(models, request, timeout_s, http.state.timing, glossaries=stores.glossaries)

    @router.post("/detect", responses=of_work, response_model_exclude_none=True)
    async def detect(request: DetectRequest, http: Request) -> DetectResponse:
        """Tell the languages of texts, of those that are translated here."""
        timeout_s = within_limits(request, settings)
        with serving.use() as models:
            return await dispatch.detect(models, request, timeout_s, http.state.timing)

    @router.post("/classify", responses=of_work, response_model_exclude_none=True)
    async def classify(request: ClassifyRequest, http: Request) -> ClassifyResponse:
        """Label texts: a text longer than the model's window is read in windows, nothing is cut off."""
        timeout_s = within_limits(request, settings)
        with serving.use() as models:
            classifier = models.classifier(request.model)
            predictions = await classifier.classify(request, timeout_s, http.state.timing)
        usage = ClassificationUsage(tokens=sum(prediction.tokens for prediction in predictions))
        return ClassifyResponse(model=classifier.manifest.name, predictions=predictions, usage=usage)

    @router.post("/embed", responses=of_work, response_model_exclude_none=True)
    async def embed(request: EmbedRequest, http: Request) -> EmbedResponse:
        """Turn texts into vectors: one for each text, or the encoder's state of each token."""
        timeout_s = within_limits(request, settings)
        with serving.use() as models:
            embedder = models.embedder(request.model, request.source)
            embeddings, dimensions, n_tokens = await embedder.embed(request, timeout_s, http.state.timing)
        return EmbedResponse(
            model=embedder.manifest.name,
            embeddings=embeddings,
            dimensions=dimensions,
            usage=EmbedUsage(tokens=n_tokens),
        )

    @router.get("/languages", responses=documented(*guards.statuses, 503), response_model_exclude_none=True)
    async def list_languages(_: Request) -> LanguagesResponse:
        """Which languages are translated into which, by one model or by two."""
        with serving.use() as models:
            return LanguagesResponse(languages=models.directions(None).reachable())

    @router.get("/models", responses=documented(*guards.statuses, 503), response_model_exclude_none=True)
    async def list_models(_: Request) -> ModelsResponse:
        """What serves here."""
        with serving.use() as models:
            return ModelsResponse(models=[_card(model) for model in models])

    @router.post("/models/reload", responses=documented(*guards.statuses, 409, 503), response_model_exclude_none=True)
    async def reload_models(http: Request) -> ModelsResponse:
        """Load the models anew from their folder. They take over once each has proved itself by a forward pass, and
        requests go on meanwhile. If one is not as it should be, the models stay as they are."""
        await reload()
        return await list_models(http)

    return router


def operations_routes(serving: Serving, metrics: Metrics) -> APIRouter:
    """The routes for those who run the service."""
    router = APIRouter()

    @router.get("/health/live")
    async def live() -> Status:
        """The process answers."""
        return Status(status="live")

    @router.get("/health/ready", responses=documented(503))
    async def ready() -> Status:
        """Every model's last forward pass succeeded and is recent, and requests are taken."""
        reason = serving.unready_reason()
        if reason is not None:
            raise NotReady(f"Not ready: {reason}")
        return Status(status="ready")

    @router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def scrape(request: Request) -> Response:
        """Prometheus metrics."""
        return await compression.answer(metrics.render(), request, metrics.MEDIA_TYPE)

    return router


async def _in_pieces(
    serving: Serving, request: TranslateRequest, timeout_s: float, timing: Timing, glossaries: Glossaries
) -> AsyncGenerator[StreamedPiece | TranslateResponse, None]:
    with serving.use() as models:
        async with aclosing(dispatch.stream(models, request, timeout_s, timing, glossaries)) as pieces:
            async for piece in pieces:
                yield piece


def _card(model: Translator | Classifier | Embedder) -> ModelCard:
    languages = Languages(model.manifest.sources, model.manifest.targets)
    return ModelCard.of(model.manifest, model.provider, languages.sources.by_name, languages.targets.by_name)
