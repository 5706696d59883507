"""The routes of documents: upload a file or many texts, ask for the progress, get the translation, delete it."""

import asyncio
import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request, Response, UploadFile
from pydantic import BaseModel, Field

from service.access.guards import Guards
from service.base.errors import InvalidFields, NotStored, UnknownDocument
from service.base.settings import Settings
from service.documents.json_lines import MAX_TEXTS
from service.http.bodies import FileForm, file_or_json
from service.http.files import FILE_ANSWER, TRANSLATE_FILE, file_response, name_of, translated_name
from service.http.json_route import json_route
from service.http.problems import document_errors
from service.jobs.job import Job, Status
from service.jobs.worker import NO_OPTIONS, DocumentJobs
from service.schemas.requests import DocumentOptions, TranslateRequest, TranslationOptions

DOCUMENT_PATH, BATCH_PATH = "/translate/document", "/translate/batch"
STRINGS = {"source", "target", "model", "glossary_id", "memory_id", "callback_url"}
"""Fields of the form that are plain strings; others are JSON."""
BATCH_NAME = "batch.jsonl"
MAX_KEY_CHARACTERS = 255
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "maxLength": MAX_KEY_CHARACTERS},
    "description": "A name of the request. Sent again with it, the request has the same answer and does nothing.",
}


class _InBackground(TranslationOptions):
    model: str | None = Field(
        default=None,
        min_length=1,
        description="A name from /models; by default the first translator for the languages.",
    )
    timeout_s: float | None = Field(
        default=None, gt=0, description="Seconds until the translation is given up, waiting included."
    )
    callback_url: str | None = Field(
        default=None,
        description="Address that gets a signed POST once the document is finished, at a host of "
        "ATTEND_CALLBACK_HOSTS.",
    )


class BatchRequest(_InBackground):
    """Many texts, and options as in /translate."""

    texts: list[str] = Field(
        min_length=1, max_length=MAX_TEXTS, description="Texts to translate.", examples=[["A dog runs."]]
    )


class DocumentForm(_InBackground, DocumentOptions, FileForm):
    """The file, and options as in /translate. Options that are not strings there are JSON here."""

    file: UploadFile = Field(description="The document; the ending of its name tells its kind.")
    wait: bool = Field(
        default=False,
        description="Answer with the translated file, which is not kept, instead of with the document's id.",
    )

    @classmethod
    def value_of(cls, name: str, sent: Any) -> Any:
        if name in STRINGS or name not in cls.model_fields or not isinstance(sent, str):
            return sent
        if name == "file":
            raise InvalidFields([((name,), "must be a file, with its name, not text")])
        try:
            return json.loads(sent)
        except (ValueError, RecursionError):
            raise InvalidFields([((name,), f"must be JSON, not {sent[:40]}")]) from None


class UnsurePassage(BaseModel):
    """A passage of a document, and its translation; of long ones the beginning."""

    text: str
    translation: str
    confidence: float = Field(description="As in /translate.")


class DocumentCard(BaseModel):
    id: str
    key: str | None = Field(default=None, description="Needed to ask for the document; only the first answer has it.")
    status: Status
    file_name: str = Field(description="Name of the translated file.")
    source: str
    target: str
    characters: int = Field(description="Characters to translate.")
    progress: float = Field(description="0 to 1.")
    seconds_remaining: float | None = Field(default=None, description="Estimate, while the document is translated.")
    error: str | None = Field(default=None, description="Why the translation failed, in one sentence.")
    code: str | None = Field(default=None, description="The code of this error.")
    least_sure: list[UnsurePassage] | None = Field(
        default=None, description="If `confidence` is requested: passages of a finished document, the least sure first."
    )
    created_at: datetime
    expires_at: datetime | None = Field(default=None, description="When the document is deleted, once it is finished.")


def document_routes(jobs: DocumentJobs, settings: Settings, guards: Guards) -> APIRouter:
    """Return the routes. A client needs the id and the key of a document, which only its sender receives."""
    router = APIRouter(
        tags=["documents"],
        route_class=json_route(guards, file_or_json),
        dependencies=guards.described,
        responses=document_errors(*guards.statuses, 404, 500),
    )

    async def submit(
        sent: _InBackground,
        file_name: str,
        data: bytes,
        http: Request,
        document_options: DocumentOptions = NO_OPTIONS,
        is_waited_for: bool = False,
    ) -> tuple[Job, str]:
        limit = settings.max_timeout_s if is_waited_for else settings.document_timeout_s
        timeout_s = sent.timeout_s or limit
        key = _idempotency_key(http)
        for name, value in (("callback_url", sent.callback_url), ("Idempotency-Key", key)):
            if is_waited_for and value is not None:
                raise InvalidFields([((name,), "cannot be used with `wait`")])
        if timeout_s > limit:
            raise InvalidFields([(("timeout_s",), f"must be at most {limit:g} s, not {timeout_s:g} s")])
        options = sent.model_dump(include={*TranslationOptions.model_fields, "model"}, exclude_unset=True)
        request = TranslateRequest(text=["-"], **options)
        return await jobs.submit(
            file_name, data, request, timeout_s, http.state.context, document_options, sent.callback_url, key
        )

    @router.post(
        DOCUMENT_PATH,
        description=TRANSLATE_FILE,
        status_code=202,
        response_model_exclude_none=True,
        responses={**document_errors(400, 408, 413, 415, 422, 503, 504), **FILE_ANSWER},
        openapi_extra={"parameters": [IDEMPOTENCY_KEY]},
    )
    async def translate_document(form: Annotated[DocumentForm, Form()], http: Request) -> DocumentCard:
        """Translate a file. Its formatting stays."""
        of_document = DocumentOptions(**form.model_dump(include={*DocumentOptions.model_fields}, exclude_unset=True))
        job, key = await submit(form, name_of(form.file.filename), form.data, http, of_document, form.wait)
        if not form.wait:
            return _card(job, settings, key)
        try:
            await jobs.wait_until_finished(job, key)
            return file_response(*await jobs.result(job.id, key))  # type: ignore[return-value]
        finally:
            with suppress(UnknownDocument, NotStored):
                await jobs.delete(job.id, key)

    @router.post(
        BATCH_PATH,
        status_code=202,
        response_model_exclude_none=True,
        responses=document_errors(400, 408, 413, 415, 422, 503, 504),
        openapi_extra={"parameters": [IDEMPOTENCY_KEY]},
    )
    async def translate_batch(request: BatchRequest, http: Request) -> DocumentCard:
        """Translate many texts in the background. They are a document from then on: a line of JSON for each text."""
        data = await asyncio.to_thread(lambda: "\n".join(map(json.dumps, request.texts)).encode())
        job, key = await submit(request, BATCH_NAME, data, http)
        return _card(job, settings, key)

    @router.get("/translate/document/{document_id}", response_model_exclude_none=True, responses=document_errors(422))
    async def get_document(_: Request, document_id: str, key: str) -> DocumentCard:
        """Return the state of a document."""
        return _card(await jobs.get(document_id, key), settings)

    @router.get(
        "/translate/document/{document_id}/result",
        response_class=Response,
        responses={**document_errors(409, 422), **FILE_ANSWER},
    )
    async def get_result(_: Request, document_id: str, key: str) -> Response:
        """Return the translated file."""
        return file_response(*await jobs.result(document_id, key))

    @router.delete("/translate/document/{document_id}", status_code=204, responses=document_errors(422, 503))
    async def delete_document(_: Request, document_id: str, key: str) -> Response:
        """Stop the translation of a document, and delete it."""
        await jobs.delete(document_id, key)
        return Response(status_code=204)

    return router


def _idempotency_key(http: Request) -> str | None:
    """Raises InvalidFields."""
    key = http.headers.get("idempotency-key")
    if key is not None and not 1 <= len(key) <= MAX_KEY_CHARACTERS:
        raise InvalidFields([(("Idempotency-Key",), f"must have 1 to {MAX_KEY_CHARACTERS} characters")])
    return key


def _card(job: Job, settings: Settings, key: str | None = None) -> DocumentCard:
    remaining_s = job.remaining_s
    return DocumentCard(
        id=job.id,
        key=key,
        status=job.status,
        file_name=translated_name(job),
        source=job.source,
        target=job.target,
        characters=job.n_characters,
        progress=round(job.progress, 3),
        seconds_remaining=None if remaining_s is None else round(remaining_s, 1),
        error=job.error,
        code=job.code,
        least_sure=json.loads(job.least_sure) if job.least_sure else None,
        created_at=datetime.fromtimestamp(job.created_at, UTC),
        expires_at=job.finished_at and datetime.fromtimestamp(job.finished_at + settings.documents_kept_s, UTC),
    )
