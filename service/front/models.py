"""The front door of the models, for all interfaces.

A call holds its request to the limits, chooses the model or the two models that serve it, keeps them in use until it is
answered, and passes deadline, timing and glossaries on.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TypeVar

from manifest.schema import NO_LANGUAGE
from service.access.ownership import Requester
from service.access.usage import spending
from service.base.errors import (
    GlossaryMismatch,
    InvalidFields,
    LanguageNotDetected,
    MemoryMismatch,
    NotReady,
    TextTooLong,
    TooManyTexts,
    UnsupportedOption,
)
from service.base.settings import Settings
from service.front.attributes import Answer, attributes_of
from service.front.catalog import Catalog
from service.front.directions import AUTO, Directions, PlannedRoute, some
from service.front.serving import Serving
from service.glossaries.store import Glossaries
from service.glossaries.terms import TermTable
from service.memories.recall import Recall
from service.memories.store import Memories
from service.pool.pool import admission_of
from service.schemas.answers import (
    ClassificationUsage,
    ClassifyResponse,
    DetectedLanguage,
    Detection,
    DetectResponse,
    EmbedResponse,
    EmbedUsage,
    Pivot,
    RerankResponse,
    StreamedPiece,
    TranslateResponse,
    Translation,
    TranslationUsage,
)
from service.schemas.requests import ClassifyRequest, DetectRequest, EmbedRequest, RerankRequest, TranslateRequest
from service.tasks.context import Context
from service.tasks.detection import detect_languages
from service.tasks.reranking import ranked
from service.tasks.translation import pivot
from service.tasks.translation.beginning import refuse_other_beginning
from service.tasks.translation.leg import OnPiece
from service.tasks.translation.pivot import Route
from service.text.identification import MIN_OTHER, IdentifiedLanguage
from service.text.languages import MANY, are_same, english_name

MIN_CONFIDENCE = 0.01
"""Languages that are less probable than this are listed only where nothing is more probable."""
MIN_UNCHANGED = 0.3
"""A text that is in the target language with less confidence is not left as it is."""
AnyRequest = TranslateRequest | DetectRequest | ClassifyRequest | EmbedRequest
Result = TypeVar("Result")
AnyAnswer = TypeVar("AnyAnswer", bound=Answer)


class Models:
    """The models of one server, for every interface and for documents.

    Args:
        serving: holds the models that are loaded.
        settings: the limits of one request.
        glossaries, memories: what requests may name.
    """

    def __init__(self, serving: Serving, settings: Settings, glossaries: Glossaries, memories: Memories) -> None:
        self._serving = serving
        self._settings = settings
        self._glossaries = glossaries
        self._memories = memories

    @property
    def catalog(self) -> Catalog:
        """The models that serve now, to be described. Work goes through the methods below. Raises Starting, Draining:
        there are no models."""
        return self._serving.catalog

    @property
    def is_draining(self) -> bool:
        return self._serving.draining

    def is_ready(self, name: str) -> bool:
        """Whether a model takes requests, for each of its tasks."""
        return all(state.ready for state in self._serving.states() if state.model == name)

    def refuse_unready(self) -> None:
        """Raises NotReady: this server should get no requests now."""
        if (reason := self._serving.unready_reason()) is not None:
            raise NotReady(f"Not ready: {reason}")

    def lost_devices(self) -> dict[str, str]:
        """Return why each GPU takes no requests, of the chosen GPUs that take none."""
        return {device: reason for device, reason in self._serving.devices().items() if reason is not None}

    def refuse_unready_model(self, name: str) -> None:
        """Raises UnknownModel, NotReady: the model takes no requests."""
        self.catalog.named(name)
        if not self.is_ready(name):
            raise NotReady(f"Model {name} is not ready; /health/ready says why")

    async def translate(
        self, request: TranslateRequest, context: Context, on_piece: OnPiece | None = None
    ) -> TranslateResponse:
        """Translate each text with the model for its language, or with two. `on_piece` receives each piece of a
        translation as soon as it and all pieces before it are done. Raises UnknownModel, UnprocessableRequest: nothing
        here translates the request. Raises UnknownGlossary, UnknownMemory: nothing has this id. Raises RequestError:
        what translators raise."""
        with (
            self._in_use(request, context) as (catalog, context),
            admission_of(
                catalog.translation_metrics, context.background, context.caller, context.client
            ) as context.admission,
        ):
            directions = catalog.directions(request.model)
            answer = await self._translated(directions, request, context, on_piece)
        catalog.metrics.characters.inc(answer.usage.characters)
        return _traced(answer, context)

    async def stream(
        self, request: TranslateRequest, context: Context
    ) -> AsyncGenerator[StreamedPiece | TranslateResponse, None]:
        """Translate as `translate` does, piece by piece; the whole answer comes last. Raises what `translate`
        raises."""
        if request.attention:
            raise UnsupportedOption("`attention` is not supported in a streamed answer")
        pieces: asyncio.Queue[tuple[int, str] | None] = asyncio.Queue()
        work = asyncio.create_task(self.translate(request, context, lambda *piece: pieces.put_nowait(piece)))
        work.add_done_callback(lambda _: pieces.put_nowait(None))
        waiting: dict[int, list[str]] = defaultdict(list)
        index = 0
        try:
            while (arrived := await pieces.get()) is not None:
                waiting[arrived[0]].append(arrived[1])
                while waiting[index]:
                    piece = waiting[index].pop(0)
                    if piece:
                        if context.account is not None:
                            context.account.has_answer = True
                        yield StreamedPiece(index=index, piece=piece)
                    else:
                        index += 1
            yield await work
        finally:
            work.cancel()

    async def detect(self, request: DetectRequest, context: Context) -> DetectResponse:
        """Tell the languages that each text may be in, of those that translators read. Raises UnknownModel: no
        translator has this name, or there are none. Raises DeadlinePassed: it took too long."""
        with self._in_use(request, context) as (catalog, context), context.timing.tokenizing():
            sources = catalog.directions(request.model).sources()
            ranked_languages = await detect_languages(request.text, request.format, sources, context.left_s)
        detections = [Detection(languages=[*_listed(ranked)]) for ranked in ranked_languages]
        return _traced(DetectResponse(detections=detections), context)

    async def classify(self, request: ClassifyRequest, context: Context) -> ClassifyResponse:
        """Label each text. Raises UnknownModel, UnprocessableRequest: no classifier does that, or several could. Raises
        RequestError: what classifiers raise."""
        with self._in_use(request, context) as (catalog, context):
            classifier = catalog.classifier(request.model, pairs=request.text_pair is not None)
            predictions = await classifier.classify(request, context)
        usage = ClassificationUsage(tokens=sum(prediction.tokens for prediction in predictions))
        answer = ClassifyResponse(model=classifier.manifest.name, predictions=predictions, usage=usage)
        return _traced(answer, context)

    async def rerank(self, request: RerankRequest, context: Context) -> RerankResponse:
        """Rank texts by how well they answer a query. Raises UnknownModel, UnprocessableRequest: no model does that, or
        several could. Raises RequestError: what classifiers raise."""
        pairs = request.as_pairs()
        with self._in_use(pairs, context) as (catalog, context):
            reranker = catalog.reranker(request.model)
            predictions = await reranker.classify(pairs, context)
        answer = RerankResponse(
            model=reranker.manifest.name,
            ranked=ranked(predictions, request),
            usage=ClassificationUsage(tokens=sum(prediction.tokens for prediction in predictions)),
        )
        return _traced(answer, context)

    async def embed(self, request: EmbedRequest, context: Context) -> EmbedResponse:
        """Turn each text into a vector, or into one for each of its tokens. Raises UnknownModel, UnprocessableRequest:
        no model does that, or several could. Raises RequestError: what embedders raise."""
        with self._in_use(request, context) as (catalog, context):
            embedder = catalog.embedder(request.model, request.source)
            embeddings, dimensions, n_tokens = await embedder.embed(request, context)
        answer = EmbedResponse(
            model=embedder.manifest.name,
            embeddings=embeddings,
            dimensions=dimensions,
            usage=EmbedUsage(tokens=n_tokens),
        )
        return _traced(answer, context)

    async def languages(self, request: TranslateRequest, timeout_s: float, requester: Requester) -> tuple[str, str]:
        """Return the languages from which and into which the first text is translated; both are the same if it is not.
        Raises UnknownModel, UnprocessableRequest: nothing here translates it, or the glossary is of other languages.
        Raises UnknownGlossary, UnknownMemory: nothing has this id. Raises DeadlinePassed: it took longer than
        `timeout_s`."""
        plan = await planned_route(self.catalog.directions(request.model), request, timeout_s)
        if plan.route:
            context = Context(requester=requester)
            await self._terms(request, plan.source, plan.target, context)
            await self._recall(request, plan.source, plan.target, context)
        return plan.source, plan.target

    def refuse_uncalibrated(self, request: TranslateRequest, source: str, target: str) -> None:
        """Raises UnsupportedOption: a model that translates between these languages has no calibrated confidence."""
        plan = self.catalog.directions(request.model).plan(source, target, request.pivot)
        for translator, _ in plan.route if plan is not None else ():
            if translator.manifest.confidence is None:
                name = translator.manifest.name
                raise UnsupportedOption(f"`fuzzy_below` needs a model with a calibrated confidence; {name} has none")

    @contextmanager
    def _in_use(self, request: AnyRequest, context: Context) -> Iterator[tuple[Catalog, Context]]:
        """Keep the models in use for a request that is within its limits, and give it its deadline.

        Raises:
            TextTooLong, TooManyTexts, InvalidFields: the request is beyond its limits.
            Starting, Draining: there are no models.
            QuotaExceeded: the client may not use so many characters in this month.
        """
        settings = self._settings
        longest = max(map(len, request.all_texts))
        if longest > settings.max_text_characters and not context.background:
            raise TextTooLong(f"A text has {longest} characters; the limit is {settings.max_text_characters}")
        if len(request.text) > settings.max_texts:
            raise TooManyTexts(f"The request has {len(request.text)} texts; the limit is {settings.max_texts}")
        timeout_s = request.timeout_s or min(settings.default_timeout_s, settings.max_timeout_s)
        if timeout_s > settings.max_timeout_s:
            raise InvalidFields(
                [(("timeout_s",), f"must be at most {settings.max_timeout_s:g} s, not {timeout_s:g} s")]
            )
        catalog = self.catalog
        catalog.n_users += 1
        try:
            with spending(context.account, sum(map(len, request.all_texts))):
                yield catalog, replace(context, deadline=time.monotonic() + timeout_s)
        finally:
            catalog.n_users -= 1

    async def _translated(
        self, directions: Directions, request: TranslateRequest, context: Context, on_piece: OnPiece | None
    ) -> TranslateResponse:
        if request.prompt is not None:
            return await self._prompted(directions, request, context, on_piece)
        plan = directions.plan(request.source, request.target, request.pivot)
        if plan is None:
            return await self._translate_detected(directions, request, context, on_piece)
        source, target, route = plan
        if not route:
            unchanged = [_unchanged(i, request, on_piece) for i in range(len(request.text))]
            return _answer(request, unchanged, source, target)
        terms = await self._terms(request, source, target, context)
        recall = await self._recall(request, source, target, context)
        translations = await pivot.translate(route, request, context, on_piece, terms, recall)
        return _answer(request, translations, source, target, route)

    async def _prompted(
        self, directions: Directions, request: TranslateRequest, context: Context, on_piece: OnPiece | None
    ) -> TranslateResponse:
        for field in ("source", "target"):
            if getattr(request, field) is not None:
                raise InvalidFields([((field,), "must be left out, as `prompt` says what to do")])
        assert request.prompt is not None, "the caller has seen it"
        route = [directions.prompted(request.prompt)]
        translations = await pivot.translate(route, request, context, on_piece)
        return _answer(request, translations, MANY, NO_LANGUAGE, route)

    async def _translate_detected(
        self, directions: Directions, request: TranslateRequest, context: Context, on_piece: OnPiece | None
    ) -> TranslateResponse:
        target = directions.target(request.target)
        languages = await _languages_of_texts(directions, request, target, context)
        routes: dict[str, Route] = {}
        terms: dict[str, TermTable | None] = {}
        recalls: dict[str, Recall | None] = {}
        places: dict[str, list[int]] = defaultdict(list)
        unchanged = []
        for i, language in enumerate(languages):
            if language is None or are_same(language.language, target):
                unchanged.append(i)
                continue
            name = language.language
            if name not in routes:
                routes[name] = directions.route(name, target, request.pivot)
                with suppress(GlossaryMismatch):  # the glossary is of other languages than this text
                    terms[name] = await self._terms(request, name, target, context)
                with suppress(MemoryMismatch):  # as above
                    recalls[name] = await self._recall(request, name, target, context)
            places[name].append(i)
        translations = {i: _unchanged(i, request, on_piece) for i in unchanged}
        parts = [_with_texts(request, places[name]) for name in routes]
        answers = await gather(
            pivot.translate(
                routes[name],
                part,
                context,
                _on_piece_of(places[name], on_piece),
                terms.get(name),
                recalls.get(name),
            )
            for name, part in zip(routes, parts, strict=True)
        )
        for name, answer in zip(routes, answers, strict=True):
            for i, translation in zip(places[name], answer, strict=True):
                translation.model, translation.pivot = _made_by(routes[name])
                translations[i] = translation
        for i, language in enumerate(languages):
            translations[i].detected = _answered_language(language) if language is not None else None
        return _answer(request, [translations[i] for i in range(len(languages))], AUTO, target)

    async def _terms(self, request: TranslateRequest, source: str, target: str, context: Context) -> TermTable | None:
        """Return the terms of the glossary that a request names. Raises UnknownGlossary: no glossary has this id.
        Raises GlossaryMismatch: it has no dictionary for these languages."""
        if request.glossary_id is None:
            return None
        return await self._glossaries.table(context.requester, request.glossary_id, source, target)

    async def _recall(self, request: TranslateRequest, source: str, target: str, context: Context) -> Recall | None:
        """Return what finds texts in the memories that a request names. A document lists no similar ones. Raises
        UnknownMemory: no memory has this id. Raises MemoryMismatch: a memory is of other languages."""
        if request.memory_id is None:
            return None
        named = self._memories, context.requester, request.memory_id
        return await Recall.of(*named, (source, target), request.memory_threshold, exact_only=context.background)


async def planned_route(directions: Directions, request: TranslateRequest, timeout_s: float) -> PlannedRoute:
    """Find the models that translate the first text, whose language is detected if the request does not tell it. Raises
    UnprocessableRequest: nothing here translates it. Raises DeadlinePassed: it took longer than `timeout_s`."""
    if (plan := directions.plan(request.source, request.target, request.pivot)) is not None:
        return plan
    target = directions.target(request.target)
    context = Context(deadline=time.monotonic() + timeout_s)
    [language, *_] = await _languages_of_texts(directions, request, target, context)
    if language is None or are_same(language.language, target):
        return PlannedRoute(target, target, [])
    plan = directions.plan(language.language, target, request.pivot)
    assert plan is not None, "the source is known"
    return plan


def _traced(answer: AnyAnswer, context: Context) -> AnyAnswer:
    if context.attributes is not None:
        context.attributes |= attributes_of(answer)
    return answer


def _on_piece_of(places: list[int], on_piece: OnPiece | None) -> OnPiece | None:
    """Return a callback for some texts of a request, by their places among all of them."""
    return on_piece and (lambda i, piece: on_piece(places[i], piece))


async def _languages_of_texts(
    directions: Directions, request: TranslateRequest, target: str, context: Context
) -> list[IdentifiedLanguage | None]:
    """Detect the language of each text, among those that are translated into the target, and the target itself; None
    for a text without words. Raises LanguageNotDetected: a text is in another language. Raises DeadlinePassed."""
    sources = directions.sources(target, request.pivot)
    with context.timing.tokenizing():
        served = [*dict.fromkeys([*sources, target])]
        of_texts = await detect_languages(request.text, request.format, served, context.left_s, request.tags)
    languages = [_language_of_text(ranked, target) if ranked else None for ranked in of_texts]
    for i, language in enumerate(languages):
        if language is not None and not language.is_served and not are_same(language.language, target):
            which = "The text" if len(languages) == 1 else f"Text {i} of {len(languages)}"
            name = f"{english_name(language.language)} ({language.language})"
            verdict = f"is probably in {name}" if language.confidence else "is in letters of no known language"
            offer = f"which is not translated to {english_name(target)}; `source` may be: {some(sources)}"
            raise LanguageNotDetected(f"{which} {verdict}, {offer}")
    return languages


def _language_of_text(ranked: list[IdentifiedLanguage], target: str) -> IdentifiedLanguage:
    """A text that is hardly in the target language, and so would not be translated, is in another language: in one that
    is not served, if that is probable, or else in the next one that is."""
    if not are_same(ranked[0].language, target) or ranked[0].confidence >= MIN_UNCHANGED:
        return ranked[0]
    others = [language for language in ranked if not are_same(language.language, target)]
    strange = [language for language in others if language.confidence >= MIN_OTHER]
    return [*strange, *(language for language in others if language.is_served), ranked[0]][0]


async def gather(awaitables: Iterable[Awaitable[Result]]) -> list[Result]:
    """Await all. As soon as one fails, the others are cancelled."""
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _answer(
    request: TranslateRequest, translations: list[Translation], source: str, target: str, route: Route | None = None
) -> TranslateResponse:
    model, through = _made_by(route) if route else (None, None)
    usage = TranslationUsage(
        characters=sum(map(len, request.text)),
        source_tokens=sum(translation.source_tokens for translation in translations),
        target_tokens=sum(translation.target_tokens for translation in translations),
    )
    return TranslateResponse(
        model=model, pivot=through, source=source, target=target, translations=translations, usage=usage
    )


def _made_by(route: Route) -> tuple[str | None, Pivot | None]:
    """Return the name of the model, or the language between two models and their names."""
    if len(route) == 1:
        return route[0][0].manifest.name, None
    (first, into), (second, _) = route
    return None, Pivot(language=into.target, models=(first.manifest.name, second.manifest.name))


def _with_texts(request: TranslateRequest, places: list[int]) -> TranslateRequest:
    texts, prefixes = ([of[i] for i in places] if of else of for of in (request.text, request.target_prefix))
    return request.model_copy(update={"text": texts, "target_prefix": prefixes})


def _unchanged(i: int, request: TranslateRequest, on_piece: OnPiece | None) -> Translation:
    text = request.text[i]
    refuse_other_beginning(text, request.target_prefix[i] if request.target_prefix else None)
    if on_piece is not None:
        on_piece(i, text)
        on_piece(i, "")
    return Translation(text=text, score=0, finish_reason="eos", source_tokens=0, target_tokens=0)


def _listed(ranked: list[IdentifiedLanguage]) -> Iterator[DetectedLanguage]:
    served = [language for language in ranked if language.is_served]
    probable = served[:1] + [language for language in served[1:] if language.confidence >= MIN_CONFIDENCE]
    return map(_answered_language, probable)


def _answered_language(language: IdentifiedLanguage) -> DetectedLanguage:
    return DetectedLanguage(language=language.language, confidence=round(language.confidence, 3))
