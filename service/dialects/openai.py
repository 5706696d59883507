"""OpenAI's embeddings, and the list of models that make them."""

import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, BeforeValidator, Field

from service.base.errors import KeyMissing, KeyWrong, QuotaExceeded, RateLimited, RequestError, UnknownModel
from service.http.dialect import Backend, Dialect, ErrorBody
from service.http.json_route import validate
from service.schemas.answers import EmbedResponse, TextEmbedding
from service.schemas.requests import EmbedRequest, Texts
from service.schemas.sent import SentJson

CODES = {
    KeyMissing: "invalid_api_key",
    KeyWrong: "invalid_api_key",
    RateLimited: "rate_limit_exceeded",
    QuotaExceeded: "insufficient_quota",
    UnknownModel: "model_not_found",
}


class Reason(BaseModel):
    message: str
    type: str
    param: str | None = Field(description="The invalid field.")
    code: str | None


class OpenAIError(ErrorBody):
    error: Reason

    @classmethod
    def of(cls, error: RequestError) -> "OpenAIError":
        kind = "server_error" if error.status >= 500 else "invalid_request_error"
        param = str(error.fields[0][0][0]) if error.fields else None
        return cls(error=Reason(message=str(error), type=kind, param=param, code=CODES.get(type(error))))


def _no_token_ids(value: object) -> object:
    if isinstance(value, list) and any(isinstance(item, int | list) for item in value):
        raise ValueError("must be texts; token ids are not supported")
    return value


class EmbeddingsRequest(SentJson):
    model: str = Field(min_length=1, description="A name from /v1/models.")
    input: Annotated[Texts, BeforeValidator(_no_token_ids)] = Field(examples=["A dog runs."])
    encoding_format: Literal["float", "base64"] = Field(
        default="float", description="base64: little-endian float32, as OpenAI's clients ask for unless told otherwise."
    )
    dimensions: int | None = Field(
        default=None, description="The model's own number, or one to which it was trained to have embeddings cut."
    )


class OpenAIEmbedding(BaseModel):
    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str = Field(description="A vector of length 1.")


class OpenAIUsage(BaseModel):
    prompt_tokens: int
    total_tokens: int


class EmbeddingsAnswer(BaseModel):
    object: Literal["list"] = "list"
    data: list[OpenAIEmbedding] = Field(description="One embedding for each text, in order.")
    model: str
    usage: OpenAIUsage


class OpenAIModel(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int = Field(description="When the service started.")
    owned_by: Literal["attend"] = "attend"


class OpenAIModels(BaseModel):
    object: Literal["list"] = "list"
    data: list[OpenAIModel]


def routers(backend: Backend) -> list[APIRouter]:
    models = backend.models
    router = OPENAI.router(backend.access.guards())
    started_at = int(time.time())

    @router.post("/v1/embeddings")
    async def create_embeddings(request: EmbeddingsRequest, http: Request) -> EmbeddingsAnswer:
        """Turn texts into vectors, by models made for that and by the encoders of other models."""
        return from_native(await models.embed(to_native(request), http.state.context))

    @router.get("/v1/models")
    async def list_models(_: Request) -> OpenAIModels:
        """List the models, each of which makes embeddings."""
        names = [embedder.manifest.name for embedder in models.catalog.embedders]
        return OpenAIModels(data=[OpenAIModel(id=name, created=started_at) for name in names])

    @router.get("/v1/models/{id:path}")
    async def retrieve_model(_: Request, id: str) -> OpenAIModel:  # noqa: A002  The name of the parameter in the path.
        """Return one model."""
        return OpenAIModel(id=models.catalog.embedder(id, None).manifest.name, created=started_at)

    return [router]


def to_native(request: EmbeddingsRequest) -> EmbedRequest:
    encoding: Literal["base64", "json"] = "base64" if request.encoding_format == "base64" else "json"
    options = {"normalize": True, "encoding": encoding, "dimensions": request.dimensions}
    return validate(EmbedRequest, {"text": request.input, "model": request.model, **options})


def from_native(answer: EmbedResponse) -> EmbeddingsAnswer:
    data: list[Any] = [
        OpenAIEmbedding.model_construct(index=i, embedding=text.embedding)
        for i, text in enumerate(answer.embeddings)
        if isinstance(text, TextEmbedding)  # always true, as no request asks for embeddings of tokens
    ]
    usage = OpenAIUsage(prompt_tokens=answer.usage.tokens, total_tokens=answer.usage.tokens)
    return EmbeddingsAnswer.model_construct(data=data, model=answer.model, usage=usage)


OPENAI = Dialect(
    name="openai",
    about="Embeddings for OpenAI's clients; their base URL is /v1.",
    paths=("/v1",),
    error=OpenAIError,
    routers=routers,
    statuses={"key_wrong": 401, 422: 400},
    client_fields={"text": ("input",), "encoding": ("encoding_format",)},
)
