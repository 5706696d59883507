"""LibreTranslate's files: they are translated while the client waits, then fetched from a URL."""

from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel
from starlette.datastructures import UploadFile

from service.base.errors import BadRequest, UnprocessableRequest, UnsupportedFileType
from service.dialects.libretranslate.translate import native_source, refuse_languages
from service.dialects.shared.files import translated_file
from service.documents.kinds import LISTED_KINDS
from service.http.bodies import fields_of
from service.http.dialect import Backend
from service.http.files import FILE_ANSWER, file_response, name_of, translated_name
from service.http.json_route import validate
from service.http.root_path import address_of
from service.schemas.requests import TranslateRequest


class TranslatedFile(BaseModel):
    translatedFileUrl: str  # noqa: N815


def add_files(keyed: APIRouter, free: APIRouter, backend: Backend) -> None:
    """Add the routes. The URL of a translated file contains the file's key, so whoever knows the URL may fetch the
    file, as in LibreTranslate."""
    documents, settings = backend.stores.documents, backend.settings

    @keyed.post(
        "/libretranslate/translate_file",
        description=f"Translate a file, sent as a form with source and target: {LISTED_KINDS}.",
    )
    async def translate_file(http: Request) -> TranslatedFile:
        """Translate a file, sent as a form with source and target."""
        try:
            file, source, target = _wanted(await fields_of(http))
            data = await file.read()
        finally:
            await http.close()
        native = validate(TranslateRequest, {"text": "-", "source": source, "target": target})
        try:
            job, key, _ = await translated_file(
                backend, name_of(file.filename), data, native, http.state.context, keep=True
            )
        except UnsupportedFileType:
            raise BadRequest("Invalid request: file format not supported") from None
        except UnprocessableRequest:
            refuse_languages(source, target, backend.models)
            raise
        base, name = address_of(http, settings.root_path), quote(translated_name(job), safe="")
        return TranslatedFile(translatedFileUrl=f"{base}/libretranslate/download_file/{job.id}/{key}/{name}")

    @free.get(
        "/libretranslate/download_file/{document_id}/{key}/{file_name}", response_class=Response, responses=FILE_ANSWER
    )
    async def download_file(_: Request, document_id: str, key: str, file_name: str) -> Response:  # noqa: ARG001
        """Return a translated file."""
        return file_response(*await documents.result(document_id, key))


def _wanted(fields: dict[str, object]) -> tuple[UploadFile, str, str]:
    """Raises BadRequest, in LibreTranslate's words: a field is missing."""
    file, source, target = (fields.get(name) for name in ("file", "source", "target"))
    if not isinstance(file, UploadFile):
        raise BadRequest("Invalid request: missing file parameter")
    for name, value in (("source", source), ("target", target)):
        if not isinstance(value, str) or not value:
            raise BadRequest(f"Invalid request: missing {name} parameter")
    if not file.filename:
        raise BadRequest("Invalid request: empty file")
    return file, native_source(str(source)), str(target)
