"""Ranking of texts for clients of Cohere, and of others with the same form: Jina, vLLM, LiteLLM."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, BeforeValidator, Field

from service.base.errors import RequestError
from service.http.dialect import Backend, Dialect, ErrorBody
from service.http.json_route import validate
from service.schemas.answers import RerankResponse, Score
from service.schemas.requests import NonEmptyText, RerankRequest
from service.schemas.sent import SentJson


class CohereError(ErrorBody):
    message: str

    @classmethod
    def of(cls, error: RequestError) -> "CohereError":
        return cls(message=str(error))


def _text(document: object) -> object:
    if isinstance(document, dict) and isinstance(document.get("text"), str):
        return document["text"]
    return document


Document = Annotated[str, BeforeValidator(_text, json_schema_input_type=str | dict[str, str])]


class CohereRequest(SentJson):
    query: str
    documents: list[Document] = Field(description="Texts, or objects with `text`.")
    model: NonEmptyText | None = Field(default=None, description="A name from /models.")
    top_n: int | None = Field(default=None, description="Number of documents in the answer; all by default.")
    return_documents: bool = Field(default=False, description="Return each document with its score.")


class CohereDocument(BaseModel):
    text: str


class CohereResult(BaseModel):
    index: int = Field(description="Number of the document in the request, from 0.")
    relevance_score: Score = Field(description="From 0 to 1.")
    document: CohereDocument | None = None


class CohereUsage(BaseModel):
    total_tokens: int


class CohereAnswer(BaseModel):
    id: str = Field(description="The request's id.")
    model: str
    results: list[CohereResult] = Field(description="The most relevant document first.")
    usage: CohereUsage


def routers(backend: Backend) -> list[APIRouter]:
    router = COHERE.router(backend.access.guards())

    @router.post("/v2/rerank", response_model_exclude_none=True)
    @router.post("/v1/rerank", response_model_exclude_none=True)
    async def rerank(request: CohereRequest, http: Request) -> CohereAnswer:
        """Rank documents by how relevant they are to a query."""
        return from_native(await backend.models.rerank(to_native(request), http.state.context), http)

    return [router]


def to_native(request: CohereRequest) -> RerankRequest:
    options = {"model": request.model, "top_n": request.top_n, "return_text": request.return_documents}
    return validate(RerankRequest, {"query": request.query, "texts": request.documents, **options})


def from_native(answer: RerankResponse, http: Request) -> CohereAnswer:
    results = [
        CohereResult(
            index=text.index,
            relevance_score=text.score,
            document=CohereDocument(text=text.text) if text.text is not None else None,
        )
        for text in answer.ranked
    ]
    usage = CohereUsage(total_tokens=answer.usage.tokens)
    return CohereAnswer(id=http.state.request_id, model=answer.model, results=results, usage=usage)


COHERE = Dialect(
    name="cohere",
    about="Ranking of documents for clients of Cohere, Jina and others with the same form.",
    paths=("/v1/rerank", "/v2/rerank"),
    error=CohereError,
    routers=routers,
    statuses={"key_wrong": 401, 422: 400},
    client_fields={"texts": ("documents",), "return_text": ("return_documents",)},
)
