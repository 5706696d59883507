"""DeepL's documents: a client uploads a file, asks until it is translated, and fetches the translation."""

import math
from pathlib import PurePath
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request, Response, UploadFile
from pydantic import BaseModel, Field

from service.base.errors import InvalidFields, UnsupportedFileType
from service.dialects.deepl.fields import DeepLFields
from service.dialects.deepl.translate import glossary_id_of, native_languages
from service.documents.kinds import KINDS_BY_ENDING
from service.front.directions import Directions
from service.http.bodies import form_or_json
from service.http.dialect import Backend
from service.http.files import FILE_ANSWER, TRANSLATE_FILE, file_response, name_of
from service.http.json_route import validate
from service.jobs.job import Job
from service.schemas.requests import TranslateRequest
from service.schemas.sent import Sent


class DeepLDocument(DeepLFields):
    file: UploadFile
    filename: str | None = Field(default=None, description="Name of the file, in place of its own.")
    output_format: str | None = Field(default=None, description="If given, it must be that of the translated file.")
    _data: bytes = b""
    """Content of the file."""


class DeepLDocumentKey(Sent):
    document_key: str


class DeepLDocumentHandle(BaseModel):
    document_id: str
    document_key: str = Field(description="Needed to ask for the document; only this answer has it.")


class DeepLDocumentStatus(BaseModel):
    document_id: str
    status: Literal["queued", "translating", "done", "error"]
    seconds_remaining: int | None = Field(default=None, description="Estimate, while the document is translated.")
    billed_characters: int | None = Field(
        default=None, description="Characters of the document, once it is translated."
    )
    error_message: str | None = None

    @classmethod
    def of(cls, job: Job) -> "DeepLDocumentStatus":
        remaining_s = job.remaining_s
        return cls(
            document_id=job.id,
            status=job.status,
            seconds_remaining=None if remaining_s is None else math.ceil(remaining_s),
            billed_characters=job.n_characters if job.status == "done" else None,
            error_message=job.error,
        )


async def read_form(_: type[Any], request: Request) -> DeepLDocument:
    try:
        form = await form_or_json(DeepLDocument, request)
        form._data = await form.file.read()
    finally:
        await request.close()
    return form


def add_documents(router: APIRouter, uploads: APIRouter, backend: Backend) -> None:
    """Add the routes. A client needs the id and the key of a document, which only its sender gets. `uploads` is a
    router whose bodies are read by `read_form`."""
    documents = backend.stores.documents

    @uploads.post("/v2/document", description=TRANSLATE_FILE)
    async def translate_document(form: Annotated[DeepLDocument, Form()], http: Request) -> DeepLDocumentHandle:
        """Translate a file. Its formatting stays."""
        name = name_of(form.filename or form.file.filename)
        _refuse_other_format(form, name)
        native = to_native(form, backend.models.catalog.directions(None))
        try:
            job, key = await documents.submit(
                name, form._data, native, backend.settings.document_timeout_s, http.state.context
            )
        except UnsupportedFileType as error:
            raise InvalidFields([(("file",), str(error))]) from None
        return DeepLDocumentHandle(document_id=job.id, document_key=key)

    @router.post("/v2/document/{document_id}", response_model_exclude_none=True)
    async def document_status(request: DeepLDocumentKey, _: Request, document_id: str) -> DeepLDocumentStatus:
        """Return how far a document is."""
        return DeepLDocumentStatus.of(await documents.get(document_id, request.document_key))

    @router.post("/v2/document/{document_id}/result", response_class=Response, responses=FILE_ANSWER)
    async def document_result(request: DeepLDocumentKey, _: Request, document_id: str) -> Response:
        """Return the translated file."""
        return file_response(*await documents.result(document_id, request.document_key))


def to_native(form: DeepLDocument, directions: Directions) -> TranslateRequest:
    """Return the options of the translation as a native request, whose text stands for those of the document."""
    source, target = native_languages(form, directions)
    options = {"text": "-", "source": source, "target": target, "glossary_id": glossary_id_of(form)}
    options["memory_id"] = form.translation_memory_id or None
    return validate(TranslateRequest, options)


def _refuse_other_format(form: DeepLDocument, name: str) -> None:
    """Raises InvalidFields: the output format differs from that of the translated file."""
    ending = PurePath(name).suffix.lower()
    kind = KINDS_BY_ENDING.get(ending)
    written = kind.written_as if kind and kind.written_as else ending
    wanted = f".{form.output_format.lower()}" if form.output_format else written
    if wanted != written and (kind is None or KINDS_BY_ENDING.get(wanted) is not KINDS_BY_ENDING.get(written)):
        message = f"must be {written.removeprefix('.')}, like the translated file"
        raise InvalidFields([(("output_format",), message)])
