"""DeepL's documents: sent as a form, asked for until they are translated, fetched as a file."""

import math
import time
from pathlib import PurePath
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request, Response, UploadFile
from pydantic import BaseModel, Field

from service.base.errors import InvalidFields, UnsupportedMediaType
from service.base.settings import Settings
from service.dialects.deepl.fields import DeepLFields
from service.dialects.deepl.translate import glossary_id_of, languages
from service.http.bodies import form_or_json
from service.http.files import FILE_ANSWER, TRANSLATE_FILE, file_response, name_of
from service.http.json_route import validate
from service.http.stores import stores_of
from service.jobs.job import Job
from service.models.models import Models
from service.schemas.requests import TranslateRequest


class DeepLDocument(DeepLFields):
    file: UploadFile
    filename: str | None = Field(default=None, description="In place of that of the file.")
    output_format: str | None = Field(default=None, description="That of the file, if it is given.")
    _data: bytes = b""
    """Of the file."""


class DeepLDocumentKey(BaseModel):
    document_key: str


class DeepLDocumentHandle(BaseModel):
    document_id: str
    document_key: str = Field(description="What asks for the document; told once.")


class DeepLDocumentStatus(BaseModel):
    document_id: str
    status: Literal["queued", "translating", "done", "error"]
    seconds_remaining: int | None = Field(default=None, description="As it goes so far.")
    billed_characters: int | None = Field(default=None, description="Once it is done.")
    error_message: str | None = None

    @classmethod
    def of(cls, job: Job) -> "DeepLDocumentStatus":
        remaining_s = job.remaining_s(time.time())
        return cls(
            document_id=job.id,
            status=job.status,
            seconds_remaining=None if remaining_s is None else math.ceil(remaining_s),
            billed_characters=job.n_characters if job.status == "done" else None,
            error_message=job.error,
        )


async def read_form(_: type[Any], request: Request) -> DeepLDocument:
    """Raises BadRequest, InvalidFields."""
    try:
        form = await form_or_json(DeepLDocument, request)
        form._data = await form.file.read()
    finally:
        await request.close()
    return form


def add_documents(router: APIRouter, uploads: APIRouter, models: Models, settings: Settings) -> None:
    """A document is known by its id and its key alone.

    Args:
        uploads: a router whose bodies are read by `read_form`.
    """

    @uploads.post("/v2/document", description=TRANSLATE_FILE)
    async def translate_document(form: Annotated[DeepLDocument, Form()], http: Request) -> DeepLDocumentHandle:
        """Translate a file. Its formatting stays."""
        name = name_of(form.filename or form.file.filename)
        _refuse_other_format(form, name)
        source, target = languages(form, models.catalog.directions(None))
        given = {"text": "-", "source": source, "target": target, "glossary_id": glossary_id_of(form)}
        native = validate(TranslateRequest, given)
        try:
            job, key = await stores_of(http).documents.submit(name, form._data, native, settings.document_timeout_s)
        except UnsupportedMediaType as error:
            raise InvalidFields([(("file",), str(error))]) from None
        return DeepLDocumentHandle(document_id=job.id, document_key=key)

    @router.post("/v2/document/{document_id}", response_model_exclude_none=True)
    async def document_status(request: DeepLDocumentKey, http: Request, document_id: str) -> DeepLDocumentStatus:
        """How far it is."""
        return DeepLDocumentStatus.of(await stores_of(http).documents.get(document_id, request.document_key))

    @router.post("/v2/document/{document_id}/result", response_class=Response, responses=FILE_ANSWER)
    async def document_result(request: DeepLDocumentKey, http: Request, document_id: str) -> Response:
        """The translated file."""
        return file_response(*await stores_of(http).documents.result(document_id, request.document_key))


def _refuse_other_format(form: DeepLDocument, name: str) -> None:
    """Raises InvalidFields: it is to be written as another kind of file."""
    ending = PurePath(name).suffix.removeprefix(".").lower()
    if form.output_format and form.output_format.lower() != ending:
        raise InvalidFields([(("output_format",), f"must be {ending}, as the file")])
