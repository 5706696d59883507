"""Translate a file while its client waits."""

from base64 import b64decode, b64encode
from contextlib import suppress
from typing import Any

from service.base.errors import InvalidFields, UnknownDocument, UnsupportedFileType
from service.dialects.shared.languages import native_source, native_target
from service.documents.kinds import KINDS
from service.http.dialect import Backend
from service.http.json_route import validate
from service.jobs.job import Job
from service.schemas.requests import TranslateRequest
from service.tasks.context import Context


async def translated_file(
    backend: Backend, name: str, data: bytes, native: TranslateRequest, context: Context, keep: bool = False
) -> tuple[Job, str, bytes]:
    """Translate a file. Return its job, the key of the job and the translated file. Raises RequestError: what
    `DocumentJobs` raises.

    Args:
        native: languages and options of its texts.
        keep: whether the translated file can be fetched again.
    """
    documents = backend.stores.documents
    timeout_s = backend.settings.document_timeout_s
    job, key = await documents.submit(name, data, native, timeout_s, context)
    is_done = False
    try:
        await documents.wait_until_finished(job, key)
        job, translated = await documents.result(job.id, key)
        is_done = True
        return job, key, translated
    finally:
        if not (keep and is_done):
            with suppress(UnknownDocument):
                await documents.delete(job.id, key)


async def translated_content(
    backend: Backend,
    field: str,
    content: str,
    name: str,
    source: str | None,
    target: str,
    context: Context,
    **options: Any,
) -> tuple[str, str]:
    """Translate a file that is sent in base64. Return the native code of its source, and the translation in base64.

    Args:
        field: path of the content in the client's request.
        source, target: the client's codes.
        options: fields of the native request.

    Raises:
        InvalidFields: a language is not translated, or the content is not base64.
        RequestError: what `DocumentJobs` raises.
    """
    directions = backend.models.catalog.directions(None)
    languages = {"source": native_source(source, directions), "target": native_target(target, directions)}
    native = validate(TranslateRequest, {"text": "-", **languages, **options})
    try:
        data = b64decode(content, validate=True)
    except ValueError:
        raise InvalidFields([((field,), "must be base64")]) from None
    job, _, translated = await translated_file(backend, name, data, native, context)
    return job.source, b64encode(translated).decode()


def name_of_type(media_type: str) -> str:
    """Return a name for a file of a media type. Raises UnsupportedFileType."""
    for kind in KINDS:
        if kind.media_type == media_type.partition(";")[0].strip().lower() and kind.written_as is None:
            return f"document{kind.endings[0]}"
    raise UnsupportedFileType(f"Files of type {media_type} are not translated here")
