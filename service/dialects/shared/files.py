"""Translate a file while its client waits."""

from base64 import b64decode
from contextlib import suppress

from service.base.errors import InvalidFields, UnknownDocument, UnsupportedFileType
from service.documents.kinds import KINDS
from service.http.dialect import Backend
from service.jobs.job import Job
from service.schemas.requests import TranslateRequest
from service.tasks.context import Context


async def translated_file(
    backend: Backend, name: str, data: bytes, native: TranslateRequest, context: Context, keep: bool = False
) -> tuple[Job, str, bytes]:
    """Translate a file. Return its job, the key of the job and the translated file.

    Args:
        native: languages and options of its texts.
        keep: whether the translated file can be fetched again.

    Raises:
        RequestError: what `DocumentJobs` raises.
    """
    documents = backend.stores.documents
    timeout_s = backend.settings.document_timeout_s
    job, key = await documents.submit(name, data, native, timeout_s, account=context.account)
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


def decoded(content: str, field: str) -> bytes:
    """Return the bytes of a file in base64. Raises InvalidFields."""
    try:
        return b64decode(content, validate=True)
    except ValueError:
        raise InvalidFields([((field,), "must be base64")]) from None


def name_of_type(media_type: str) -> str:
    """Return a name for a file of this media type. Raises UnsupportedFileType."""
    for kind in KINDS:
        if kind.media_type == media_type.partition(";")[0].strip().lower() and kind.written_as is None:
            return f"document{kind.endings[0]}"
    raise UnsupportedFileType(f"Files of type {media_type} are not translated here")
