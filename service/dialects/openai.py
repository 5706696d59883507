"""OpenAI's embeddings, and the list of models that make them."""

import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, BeforeValidator, Field

from service.base.errors import InvalidFields, KeyMissing, KeyWrong, RateLimited, RequestError, UnknownModel
from service.base.settings import Settings
from service.http.access import Access
from service.http.dialect import Dialect, ErrorBody, Sent
from service.models.models import Models
from service.schemas.answers import TextEmbedding
from service.schemas.requests import EmbedRequest, Texts
from service.tasks.embedding import Embedder

CODES = {KeyMissing: "invalid_api_key", KeyWrong: "invalid_api_key", RateLimited: "rate_limit_exceeded"} | {
    UnknownModel: "model_not_found"
}


class Reason(BaseModel):
    message: str
    type: str
    param: str | None = Field(description="The field that is not acceptable.")
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


class EmbeddingsRequest(Sent):
    model: str = Field(min_length=1, description="A name from /v1/models.")
    input: Annotated[Texts, BeforeValidator(_no_token_ids)] = Field(examples=["A dog runs."])
    encoding_format: Literal["float", "base64"] = Field(
        default="float", description="base64: little-endian float32, as OpenAI's clients ask for unless told otherwise."
    )
    dimensions: int | None = Field(default=None, description="The model's own, if it is given.")


class OpenAIEmbedding(BaseModel):
    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str = Field(description="Of length 1.")


class OpenAIUsage(BaseModel):
    prompt_tokens: int
    total_tokens: int


class EmbeddingsAnswer(BaseModel):
    object: Literal["list"] = "list"
    data: list[OpenAIEmbedding] = Field(description="One for each text, in order.")
    model: str
    usage: OpenAIUsage


class OpenAIModel(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int = Field(description="When the service began.")
    owned_by: Literal["attend"] = "attend"


class OpenAIModels(BaseModel):
    object: Literal["list"] = "list"
    data: list[OpenAIModel]


def routers(models: Models, _: Settings, access: Access) -> list[APIRouter]:
    router = OPENAI.router(access.guards())
    began = int(time.time())

    @router.post("/v1/embeddings")
    async def create_embeddings(request: EmbeddingsRequest, http: Request) -> EmbeddingsAnswer:
        """Turn texts into vectors, by models made for that and by the encoders of others."""
        native = EmbedRequest(
            text=request.input,
            model=request.model,
            normalize=True,
            encoding="base64" if request.encoding_format == "base64" else "json",
        )
        _refuse_other_dimensions(request, models.catalog.embedder(request.model, None))
        answer = await models.embed(native, http.state.context)
        data: list[Any] = [
            OpenAIEmbedding.model_construct(index=i, embedding=made.embedding)
            for i, made in enumerate(answer.embeddings)
            if isinstance(made, TextEmbedding)  # all are, as the request does not ask for those of tokens
        ]
        usage = OpenAIUsage(prompt_tokens=answer.usage.tokens, total_tokens=answer.usage.tokens)
        return EmbeddingsAnswer.model_construct(data=data, model=answer.model, usage=usage)

    @router.get("/v1/models")
    async def list_models(_: Request) -> OpenAIModels:
        """What can make embeddings here."""
        names = [embedder.manifest.name for embedder in models.catalog.embedders]
        return OpenAIModels(data=[OpenAIModel(id=name, created=began) for name in names])

    @router.get("/v1/models/{id:path}")
    async def retrieve_model(_: Request, id: str) -> OpenAIModel:  # noqa: A002  The name of the parameter in the path.
        """One of them."""
        return OpenAIModel(id=models.catalog.embedder(id, None).manifest.name, created=began)

    return [router]


def _refuse_other_dimensions(request: EmbeddingsRequest, embedder: Embedder) -> None:
    if request.dimensions not in (None, embedder.dimensions):
        own = f"must be {embedder.dimensions} for {embedder.manifest.name}, not {request.dimensions}"
        raise InvalidFields([(("dimensions",), own)])


OPENAI = Dialect(
    name="openai",
    about="Embeddings, as OpenAI's clients ask for them: base URL /v1.",
    paths=("/v1",),
    error=OpenAIError,
    routers=routers,
    statuses={403: 401, 422: 400},
)
