"""Hugging Face's inference endpoints: each model, and each task of a model, has an address."""

from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, BeforeValidator, Discriminator, Field, Tag
from pydantic_core import to_json

from service import __version__
from service.base.errors import InvalidFields, RequestError, UnknownPath, UnprocessableRequest
from service.front.models import Models
from service.http.compression import compressed_response
from service.http.dialect import Backend, Dialect, ErrorBody
from service.http.json_route import validate
from service.schemas.answers import EmbedResponse, Prediction, Ranked, Score, Status
from service.schemas.requests import (
    AnyTexts,
    ClassifyRequest,
    EmbedRequest,
    NonEmptyText,
    RerankRequest,
    TranslateRequest,
    WrittenText,
)
from service.schemas.sent import SentJson
from service.tasks.classification import Classifier
from service.tasks.context import Context
from service.tasks.reranking import only_logit
from service.tasks.scores import scores_of

MODEL = "/models/{name:path}"
GENERATE = {"num_beams": "beam_size", "length_penalty": "length_penalty", "max_new_tokens": "max_target_tokens"}
"""Native fields by transformers' parameters of generation."""
CLIENT_FIELDS = {
    "text": ("inputs",),
    "text_pair": ("inputs",),
    "source": ("parameters", "src_lang"),
    "target": ("parameters", "tgt_lang"),
    "prompt": ("prompt_name",),
    **{native: ("parameters", "generate_parameters", name) for name, native in GENERATE.items()},
}


class HuggingFaceError(ErrorBody):
    error: str

    @classmethod
    def of(cls, error: RequestError) -> "HuggingFaceError":
        return cls(error=str(error))


class EmbeddingParameters(SentJson):
    normalize: bool | None = Field(default=None, description="Whether embeddings have length 1; true by default.")
    prompt_name: NonEmptyText | None = Field(default=None, description="A prompt that the model has.")
    dimensions: int | None = Field(
        default=None, description="The model's own number, or one to which it was trained to have embeddings cut."
    )
    encoding_format: Literal["float"] | None = None


class Parameters(EmbeddingParameters):
    src_lang: str | None = None
    tgt_lang: str | None = None
    generate_parameters: dict[str, Any] | None = Field(default=None, examples=[{"num_beams": 4}])
    top_k: Annotated[int, Field(ge=1)] | None = Field(default=None, description="Number of labels; all by default.")
    function_to_apply: Literal["softmax", "sigmoid", "none"] | None = Field(
        default=None, description="The model's own function, or none for logits."
    )
    candidate_labels: Any = Field(default=None, description="Refused: a model has its own labels.")


class Similarity(SentJson):
    source_sentence: WrittenText
    sentences: Annotated[list[WrittenText], Field(min_length=1)]


Inputs = Annotated[
    Annotated[AnyTexts, Tag("text")] | Annotated[Similarity, Tag("similarity")],
    Discriminator(lambda value: "similarity" if isinstance(value, dict | Similarity) else "text"),
]


class PipelineRequest(EmbeddingParameters):
    """Fields that a task does not have are ignored. Parameters of embeddings may also be outside of `parameters`."""

    inputs: Inputs
    parameters: Parameters | None = None


def _texts_or_pairs(value: object) -> object:
    is_batch = isinstance(value, list) and value != [] and all(map(_is_text_or_pair, value))
    if not (isinstance(value, str) or _is_text_or_pair(value) or is_batch):
        raise ValueError("must be a text, a list of two texts, which are a pair, or a list of such lists")
    return value


def _is_text_or_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) in (1, 2) and all(isinstance(text, str) for text in value)


Direction = Annotated[
    Literal["left", "right"], BeforeValidator(lambda side: side.lower() if isinstance(side, str) else side)
]
"""Some clients write "Left" and "Right". Generators of clients take no enumeration of both."""


class PredictRequest(SentJson):
    """As text-embeddings-inference has it. In a batch all are single texts, or all are pairs."""

    inputs: Annotated[str | list[str] | list[list[str]], BeforeValidator(_texts_or_pairs)]
    raw_scores: bool = Field(default=False, description="Return logits.")
    truncate: bool = True
    truncation_direction: Direction = "right"

    @property
    def batch(self) -> list[list[str]]:
        """The texts of each input."""
        if isinstance(self.inputs, str):
            return [[self.inputs]]
        if not self.is_batch:
            return [[*self.inputs]]
        return [texts if isinstance(texts, list) else [texts] for texts in self.inputs]

    @property
    def is_batch(self) -> bool:
        """Whether the answer is a list for each input."""
        return isinstance(self.inputs[0], list)


class RankRequest(SentJson):
    """As text-embeddings-inference has it."""

    query: str
    texts: list[str]
    raw_scores: bool = False
    return_text: bool = False
    truncate: bool = True
    truncation_direction: Direction = "right"


class Translated(BaseModel):
    translation_text: str


class Scored(BaseModel):
    label: str
    score: Score


PipelineAnswer: TypeAlias = list[Translated] | list[list[Scored]] | list[list[float]] | list[float]
"""For each text: its translation, its labels with the highest score first, its embedding, or its similarity."""


class EndpointInfo(BaseModel):
    model_id: str
    model_dtype: str
    model_pipeline_tag: str
    max_input_length: int = Field(description="Tokens of a sentence or window; longer texts are split, never cut off.")
    max_client_batch_size: int
    version: str = __version__


def routers(backend: Backend) -> list[APIRouter]:
    models = backend.models
    guards = backend.access.guards()
    router = HUGGING_FACE.router(guards)

    async def check_name(http: Request) -> None:
        """Raises UnknownModel: no model has this name. Every unknown path is taken for a model's name."""
        models.catalog.named(http.path_params["name"])

    guards.checks.append(check_name)

    @router.get(f"{MODEL}/info")
    async def info(_: Request, name: str) -> EndpointInfo:
        """Describe a model and its limits."""
        model = models.catalog.named(name)
        return EndpointInfo(
            model_id=name,
            model_dtype=model.manifest.precision,
            model_pipeline_tag=OWN_TASKS[model.manifest.task],
            max_input_length=model.manifest.limits.max_source_tokens,
            max_client_batch_size=backend.settings.max_texts,
        )

    @router.get(f"{MODEL}/health")
    async def health(_: Request, name: str) -> Status:
        """Say whether the model takes requests."""
        models.refuse_unready_model(name)
        return Status(status="ready")

    @router.post(f"{MODEL}/pipeline/{{task}}/", include_in_schema=False)
    @router.post(f"{MODEL}/pipeline/{{task}}", response_model=PipelineAnswer)
    async def run_task(request: PipelineRequest, http: Request, name: str, task: str) -> Response:
        """Do one of the tasks of a model."""
        if task not in TASKS:
            raise UnknownPath(f"No task is named {task!r}; available: {', '.join(TASKS)}")
        answer = await TASKS[task](models, name, request, http.state.context)
        return await compressed_response(to_json(answer), http, "application/json")

    @router.post(f"{MODEL}/predict")
    async def predict(request: PredictRequest, http: Request, name: str) -> list[Scored] | list[list[Scored]]:
        """Label texts or pairs of texts."""
        answer = await models.classify(prediction_to_native(request, name), http.state.context)
        scored = [_scored(_in_range(prediction), request.raw_scores) for prediction in answer.predictions]
        return scored if request.is_batch else scored[0]

    @router.post(f"{MODEL}/rerank", response_model_exclude_none=True)
    async def rerank(request: RankRequest, http: Request, name: str) -> list[Ranked]:
        """Rank texts by how well they answer a query."""
        native = validate(RerankRequest, {**request.model_dump(), "model": name})
        return (await models.rerank(native, http.state.context)).ranked

    @router.post(MODEL, response_model=PipelineAnswer)
    @router.post(f"{MODEL}/", include_in_schema=False)  # tried first: a name may have slashes
    async def run_own_task(request: PipelineRequest, http: Request, name: str) -> Response:
        """Do the task that the model was made for. If that is embeddings, a source sentence asks for similarities."""
        task = OWN_TASKS[models.catalog.named(name).manifest.task]
        if task == "feature-extraction" and isinstance(request.inputs, Similarity):
            task = "sentence-similarity"
        return await run_task(request, http, name, task)

    return [router]


async def _translate(models: Models, name: str, request: PipelineRequest, context: Context) -> list[Translated]:
    answer = await models.translate(translation_to_native(request, name), context)
    return [Translated(translation_text=translation.text) for translation in answer.translations]


async def _classify(models: Models, name: str, request: PipelineRequest, context: Context) -> list[list[Scored]]:
    native = classification_to_native(request, models.catalog.classifier(name))
    answer = await models.classify(native, context)
    return [_scored(prediction, native.logits)[: _parameters(request).top_k] for prediction in answer.predictions]


async def _embed(models: Models, name: str, request: PipelineRequest, context: Context) -> list[list[float]]:
    native = embedding_to_native(_texts(request), _parameters(request), name)
    return embeddings_from_native(await models.embed(native, context))


async def _compare(models: Models, name: str, request: PipelineRequest, context: Context) -> list[float]:
    if not isinstance(request.inputs, Similarity):
        raise InvalidFields([(("inputs",), "must be an object with source_sentence and sentences")])
    texts = [request.inputs.source_sentence, *request.inputs.sentences]
    parameters = _parameters(request).model_copy(update={"normalize": True})
    native = embedding_to_native(texts, parameters, name)
    rows = np.array(embeddings_from_native(await models.embed(native, context)))
    return [float(cosine) for cosine in (rows[1:] @ rows[0]).round(7)]


TASKS = {
    "translation": _translate,
    "text-classification": _classify,
    "feature-extraction": _embed,
    "sentence-similarity": _compare,
}
OWN_TASKS = {"translation": "translation", "classification": "text-classification", "embedding": "feature-extraction"}
"""Hugging Face's name of the task that a model was made for."""


def translation_to_native(request: PipelineRequest, name: str) -> TranslateRequest:
    parameters = _parameters(request)
    generate = parameters.generate_parameters or {}
    for key in generate.keys() - GENERATE.keys():
        raise UnprocessableRequest(
            f"`parameters.generate_parameters.{key}` is not supported; available: {', '.join(GENERATE)}"
        )
    options = {GENERATE[key]: value for key, value in generate.items()}
    options |= {"source": parameters.src_lang, "target": parameters.tgt_lang}
    return validate(TranslateRequest, {"text": _texts(request), "model": name, **options})


def classification_to_native(request: PipelineRequest, classifier: Classifier) -> ClassifyRequest:
    parameters, manifest = _parameters(request), classifier.manifest
    name, activation, asked = manifest.name, manifest.label_activation, parameters.function_to_apply
    if parameters.candidate_labels is not None:
        raise UnprocessableRequest(f"`parameters.candidate_labels` is not supported; {name} has its own labels")
    if asked not in (None, "none", activation):
        raise UnprocessableRequest(f"`parameters.function_to_apply` must be {activation} for {name}, not {asked}")
    return validate(ClassifyRequest, {"text": _texts(request), "model": name, "logits": asked == "none"})


def prediction_to_native(request: PredictRequest, name: str) -> ClassifyRequest:
    if len({len(texts) for texts in request.batch}) > 1:
        raise InvalidFields([(("inputs",), "must be single texts or pairs of texts, not both")])
    firsts, *seconds = ([*texts] for texts in zip(*request.batch, strict=True))
    options = request.model_dump(include={"truncate", "truncation_direction"})
    texts = {"text": firsts, "text_pair": seconds[0] if seconds else None}
    return validate(ClassifyRequest, {**texts, "model": name, "logits": True, **options})


def _in_range(prediction: Prediction) -> Prediction:
    """A single label gets a score from 0 to 1."""
    if len(prediction.scores) > 1:
        return prediction
    score = float(scores_of(np.array(only_logit(prediction)), "sigmoid"))
    return prediction.model_copy(update={"scores": {prediction.label: score}})


def _scored(prediction: Prediction, raw: bool) -> list[Scored]:
    scores = prediction.logits if raw and prediction.logits is not None else prediction.scores
    ranked = sorted(scores.items(), key=lambda item: -item[1])
    return [Scored(label=label, score=score) for label, score in ranked]


def embedding_to_native(texts: list[str], parameters: Parameters, name: str) -> EmbedRequest:
    normalize, prompt, dimensions = parameters.normalize is not False, parameters.prompt_name, parameters.dimensions
    options = {"normalize": normalize, "prompt": prompt, "dimensions": dimensions}
    return validate(EmbedRequest, {"text": texts, "model": name, **options})


def embeddings_from_native(answer: EmbedResponse) -> list[list[float]]:
    return [text.embedding for text in answer.embeddings]  # type: ignore[union-attr, misc]  # a vector for each text


def _texts(request: PipelineRequest) -> list[str]:
    if isinstance(request.inputs, Similarity):
        raise InvalidFields([(("inputs",), "must be a text or a list of texts")])
    return request.inputs


def _parameters(request: PipelineRequest) -> Parameters:
    """Parameters may stand in `parameters` or beside it."""
    outside = {name: getattr(request, name) for name in EmbeddingParameters.model_fields}
    given = {name: value for name, value in outside.items() if value is not None}
    return (request.parameters or Parameters()).model_copy(update=given)


HUGGING_FACE = Dialect(
    name="hugging_face",
    about="Hugging Face's inference endpoints, one for each model and task.",
    paths=("/models",),
    error=HuggingFaceError,
    routers=routers,
    client_fields=CLIENT_FIELDS,
)
