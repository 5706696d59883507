"""The native routes: each passes its request to `Models`. The middleware maps errors to HTTP and counts requests."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request, Response

from service.access.guards import Guards
from service.base.metrics import Metrics
from service.front.catalog import Catalog, Model
from service.front.models import Models
from service.http import event_stream
from service.http.compression import compressed_response
from service.http.event_stream import EventStream
from service.http.json_route import json_route
from service.http.problems import document_errors
from service.schemas.answers import (
    ClassifyResponse,
    DetectResponse,
    EmbedResponse,
    LanguagesResponse,
    ModelCard,
    ModelsResponse,
    Ranked,
    Readiness,
    Status,
    TranslateResponse,
)
from service.schemas.requests import ClassifyRequest, DetectRequest, EmbedRequest, RerankRequest, TranslateRequest
from service.text.languages import TranslatorLanguages

Reload = Callable[[], Awaitable[None]]
"""Loads the models again, and replaces the serving ones. Raises ReloadRefused."""


def model_routes(models: Models, guards: Guards, reload: Reload) -> APIRouter:
    """Return the routes that run models or describe them, with the checks of keys and rates."""
    router = APIRouter(route_class=json_route(guards), dependencies=guards.described)
    statuses = guards.statuses
    of_work = document_errors(*statuses, 400, 404, 408, 413, 415, 422, 500, 503, 504)

    @router.post("/translate", tags=["translate"], responses=of_work, response_model_exclude_none=True)
    async def translate(request: TranslateRequest, http: Request) -> TranslateResponse:
        """Translate texts: each is split into sentences, translated and joined with its own white space."""
        if (media_type := event_stream.accepted_stream(http)) is not None:
            pieces = models.stream(request, http.state.context)
            return EventStream(await anext(pieces), pieces, media_type, http)  # type: ignore[return-value]
        return await models.translate(request, http.state.context)

    @router.post("/detect", tags=["translate"], responses=of_work, response_model_exclude_none=True)
    async def detect(request: DetectRequest, http: Request) -> DetectResponse:
        """Detect the languages of texts, among those that are translated here."""
        return await models.detect(request, http.state.context)

    @router.post("/classify", tags=["classify"], responses=of_work, response_model_exclude_none=True)
    async def classify(request: ClassifyRequest, http: Request) -> ClassifyResponse:
        """Label texts, or pairs of texts. A text longer than the model's window is read in several windows, and nothing
        is cut off; of a pair that is too long the longer text is cut."""
        return await models.classify(request, http.state.context)

    @router.post("/rerank", tags=["classify"], responses=of_work, response_model_exclude_none=True)
    async def rerank(request: RerankRequest, http: Request) -> list[Ranked]:
        """Rank texts by how well they answer a query, the best one first."""
        return (await models.rerank(request, http.state.context)).ranked

    @router.post("/embed", tags=["embed"], responses=of_work, response_model_exclude_none=True)
    async def embed(request: EmbedRequest, http: Request) -> EmbedResponse:
        """Turn texts into vectors: one for each text, or the encoder's state of each token."""
        return await models.embed(request, http.state.context)

    described: dict[str, Any] = {"tags": ["models"], "response_model_exclude_none": True}

    @router.get("/languages", responses=document_errors(*statuses, 503), **described)
    async def list_languages(_: Request) -> LanguagesResponse:
        """List the languages that are translated, with their targets, by one model or by two."""
        return LanguagesResponse(languages=models.catalog.directions(None).reachable())

    @router.get("/models", responses=document_errors(*statuses, 503), **described)
    async def list_models(_: Request) -> ModelsResponse:
        """List the models that serve."""
        return ModelsResponse(models=[_card(model, models.catalog) for model in models.catalog])

    @router.post("/models/reload", responses=document_errors(*statuses, 409, 503), **described)
    async def reload_models(http: Request) -> ModelsResponse:
        """Load the models again from their folder. They replace the serving models after each has passed a forward
        pass; requests continue meanwhile. If one fails, the models stay unchanged."""
        await reload()
        return await list_models(http)

    return router


def operations_routes(models: Models, metrics: Metrics) -> APIRouter:
    """Return the routes for operators."""
    router = APIRouter(tags=["operations"])

    @router.get("/health/live")
    async def live() -> Status:
        """Answer as long as the process lives."""
        return Status(status="live")

    @router.get("/health/ready", responses=document_errors(503), response_model_exclude_none=True)
    async def ready() -> Readiness:
        """Answer 200 if every model's last forward pass succeeded, every worker had one recently, and requests are
        taken."""
        models.refuse_unready()
        ages = {name: round(age_s, 1) for name, age_s in models.catalog.proof_ages().items()}
        return Readiness(status="ready", proof_ages_s=ages, lost_devices=models.lost_devices() or None)

    @router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def scrape(request: Request) -> Response:
        """Return the metrics for Prometheus."""
        return await compressed_response(metrics.render(), request, metrics.MEDIA_TYPE)

    return router


def _card(model: Model, catalog: Catalog) -> ModelCard:
    languages = TranslatorLanguages(model.manifest.sources, model.manifest.targets)
    names = languages.sources.by_name, languages.targets.by_name
    return ModelCard.of(model.manifest, model.provider, *names, catalog.default_for(model))
