"""Accept documents, translate a few at a time, and report their progress."""

import asyncio
import json
import logging
import secrets
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from service.access.usage import spending
from service.base.errors import DeadlinePassed, Draining, InferenceFailed, NotStored, RequestError
from service.base.settings import Settings
from service.documents.contents import ReadOptions
from service.front.models import Models
from service.jobs import imports
from service.jobs.callbacks import Callbacks
from service.jobs.job import Job
from service.jobs.reading import DocumentReader
from service.jobs.store import AlreadyQueuedError, JobStore, Repeatable
from service.jobs.translation import DocumentTranslator, refuse_long_texts, refuse_without_states
from service.memories.store import Memories
from service.schemas.requests import DocumentOptions, TranslateRequest
from service.storage.database import Database
from service.storage.database_threads import in_thread
from service.tasks.context import Context

logger = logging.getLogger(__name__)
T = TypeVar("T")

MAX_RUNNING = 2
"""Number of documents that one server translates at the same time."""
REPORT_S = 0.5
"""Seconds between progress reports; a report also shows whether the document was deleted."""
CHECK_S = 2.0
"""Seconds between checks for jobs of dead servers, and between attempts to use a database that is down."""
USUAL_SWITCH_S, SWITCH_S = sys.getswitchinterval(), 0.0005
"""Seconds after which a thread gives Python's lock to another one, usually and while documents are translated. Threads
read parts of documents, and a request that needs the lock several times would take twice as long. Without documents the
usual time is better: large requests lose a tenth with the short one."""
MAX_UNPACKED_RATIO = 4
"""A document may unpack to this many times the maximum file size."""
EXCLUDED = {"text", "format", "source", "target", "timeout_s", "alternatives", "alignment", "attention"}
"""Fields of a request that `Job.options` leaves out: a job has them elsewhere, or documents do not use them."""
NO_OPTIONS = DocumentOptions()


class DocumentJobs:
    """The documents of one server, which shares them with other servers, and files for memories."""

    def __init__(self, models: Models, settings: Settings, database: Database, memories: Memories) -> None:
        self._memories = memories
        self._store = JobStore(database, settings.documents_kept_s, settings.max_documents)
        self._models = models
        self._settings = settings
        self._callbacks = Callbacks(self._store, settings)
        self._translator = DocumentTranslator(models, settings)
        self._owner = secrets.token_hex(8)
        self._reader = DocumentReader(MAX_UNPACKED_RATIO * settings.max_document_bytes)
        self._wake = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._running: dict[asyncio.Task[None], str] = {}
        """The running translations, and the id of each one's job."""

    def start(self) -> None:
        """Begin to translate, as a task of the running event loop."""
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Stop translating. Other servers, or the next start, continue with the remaining documents."""
        tasks = [*self._running, *([self._watching] if self._watching else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._callbacks.stop()
        await self._reader.stop()

    async def submit(
        self,
        file_name: str,
        data: bytes,
        request: TranslateRequest,
        timeout_s: float,
        context: Context,
        document_options: DocumentOptions = NO_OPTIONS,
        callback_url: str | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[Job, str]:
        """Queue a document, and return the job with the key by which its client asks for it.

        Args:
            request: the options for each text of the document.
            timeout_s: seconds after which the translation is given up.
            context: who asks, and whose characters count, once the document is queued.
            document_options: how to read the document.
            callback_url: an address that is called once the document is finished.
            idempotency_key: names the request for its client. If it was sent before, its job of that time is returned.

        Raises:
            InvalidFields: the address may not be called.
            KeyReused: the key named another request before.
            UnsupportedFileType, InvalidDocument, TooLarge: the document cannot be read.
            UnsupportedOption: the kind of file has no states, or the model no calibrated confidence, for `fuzzy_below`.
            RequestError: no model translates between its languages.
            QuotaExceeded: the client may not use so many characters in this month.
            QueueFull: there are too many documents.
            NotStored: the document cannot be written.
            DeadlinePassed: reading took too long.
        """
        ends_at = time.monotonic() + timeout_s
        self._callbacks.check(callback_url)
        own_options = document_options.model_dump(exclude_unset=True)
        repeatable = None
        if idempotency_key is not None:
            sent = request.model_dump_json(exclude_unset=True), json.dumps([file_name, own_options, callback_url])
            repeatable = await asyncio.to_thread(Repeatable.of, idempotency_key, context.caller, "\n".join(sent), data)
            if known := await in_thread(self._store.repeated, repeatable):
                return known
        read_options = ReadOptions(source=request.source, target=request.target, **own_options)
        try:
            async with asyncio.timeout(timeout_s):
                read = await self._reader.read(file_name, data, options=read_options)
        except TimeoutError:
            raise DeadlinePassed(f"The document was not read within {timeout_s:g} s") from None
        if request.source is None:
            request = request.model_copy(update={"source": read.source})
        if document_options.fuzzy_below is not None:
            refuse_without_states(read.kind)
            request = request.model_copy(update={"confidence": True})
        refuse_long_texts(read, self._settings.max_text_characters)
        left_s = min(ends_at - time.monotonic(), self._settings.max_timeout_s)
        languages = await self._translator.languages(read, request, left_s, context.requester)
        if document_options.fuzzy_below is not None:
            self._models.refuse_uncalibrated(request, *languages)
        options = json.dumps(request.model_dump(exclude=EXCLUDED, exclude_unset=True) | own_options)
        n_characters = sum(map(len, dict.fromkeys(read.texts)))
        left_s = ends_at - time.monotonic()
        arguments = data, file_name, read.kind, languages, options, n_characters, left_s, callback_url, repeatable
        try:
            with spending(context.account, n_characters):
                job = await in_thread(self._store.add, *arguments)
        except AlreadyQueuedError as before:  # it was queued while this one was read
            return await self.get(before.job_id, before.key), before.key
        self._wake.set()
        return job

    async def submit_import(self, file_name: str, data: bytes, memory_id: str, languages: tuple[str, str]) -> Job:
        """Queue a file for a memory. Raises QueueFull, NotStored."""
        timeout_s = self._settings.document_timeout_s
        options = json.dumps({"memory_id": memory_id})
        arguments = data, file_name, imports.KIND, languages, options, len(data), timeout_s
        job, _ = await in_thread(self._store.add, *arguments)
        self._wake.set()
        return job

    async def await_client(self, kind: str, file_name: str, n_bytes: int, options: dict[str, str | None]) -> Job:
        """Let a client send or fetch a file for some time. `kind` is `imports.UPLOAD` or `imports.DOWNLOAD`. Raises
        QueueFull, NotStored."""
        arguments = None, file_name, kind, ("", ""), json.dumps(options), n_bytes, imports.ADDRESS_S
        job, _ = await in_thread(self._store.add, *arguments)
        return job

    async def supply(self, job_id: str, data: bytes) -> None:
        """Queue an import with its file. Raises UnknownDocument: it does not wait for one. Raises NotStored."""
        await in_thread(self._store.supply, job_id, data, self._settings.document_timeout_s)
        self._wake.set()

    async def n_skipped(self, job_id: str) -> int:
        """Return how many segments a finished import has skipped. Raises UnknownDocument, NotStored."""
        return int(await in_thread(self._store.source, job_id))

    async def state(self, job_id: str) -> Job | None:
        """Return a job, for whoever may know of it; None if it is gone."""
        return await in_thread(self._store.state, job_id)

    async def get(self, job_id: str, key: str) -> Job:
        """Return a job. Raises UnknownDocument."""
        return await in_thread(self._store.get, job_id, key)

    async def result(self, job_id: str, key: str) -> tuple[Job, bytes]:
        """Return a job and its translated document. Raises UnknownDocument, DocumentNotReady, DocumentFailed."""
        return await in_thread(self._store.result, job_id, key)

    async def delete(self, job_id: str, key: str) -> None:
        """Delete a document, and stop its translation. Raises UnknownDocument."""
        await in_thread(self._store.delete, job_id, key)

    async def wait_until_finished(self, job: Job, key: str) -> Job:
        """Wait until a job has finished, at most until its deadline. Raises UnknownDocument: the job was deleted.
        Raises DeadlinePassed: the job has not finished in time. Raises Draining: the service stops."""
        pause_s = 0.02
        late = DeadlinePassed("The document was not translated before its deadline")
        try:
            async with asyncio.timeout(job.left_s):
                while not job.is_finished:
                    if self._models.is_draining:
                        raise Draining("The service stopped before the document was translated", retry_after_s=5)
                    await asyncio.sleep(pause_s)
                    pause_s = min(REPORT_S, pause_s * 1.5)
                    with suppress(NotStored):  # the next look may succeed
                        job = await self.get(job.id, key)
        except TimeoutError:
            raise late from None
        if job.code == late.code:
            raise late
        return job

    async def _watch(self) -> None:
        """Documents of dead servers are translated too."""
        checked_at = time.monotonic()
        while True:
            self._wake.clear()
            try:
                if time.monotonic() - checked_at >= CHECK_S:
                    checked_at = time.monotonic()
                    await in_thread(self._store.queue_again, self._owner, [*self._running.values()])
                await in_thread(self._store.sweep)
                while len(self._running) < MAX_RUNNING and not self._models.is_draining:
                    job = await in_thread(self._store.claim, self._owner)
                    if job is None:
                        break
                    self._begin(job)
                await self._callbacks.begin_due()
            except NotStored:
                pass  # the database has logged it
            except Exception:
                logger.exception("the queue of documents cannot be checked")
            with suppress(TimeoutError):  # wait_for may lose a cancellation
                async with asyncio.timeout(CHECK_S):
                    await self._wake.wait()

    def _begin(self, job: Job) -> None:
        sys.setswitchinterval(SWITCH_S)
        task = asyncio.create_task(self._translate(job))
        self._running[task] = job.id
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        if not self._running:
            sys.setswitchinterval(USUAL_SWITCH_S)
        self._wake.set()

    async def _translate(self, job: Job) -> None:
        n_translated = 0
        ends_at = asyncio.get_running_loop().time() + job.left_s

        def on_progress(n: int) -> None:
            nonlocal n_translated
            n_translated = min(n, job.n_characters)  # some tables have more texts once their language is known

        def on_share(n_bytes: int, share: float) -> None:
            on_progress(int(share * n_bytes))

        async def work() -> tuple[bytes, str | None]:
            data = await self._stored(ends_at, lambda: in_thread(self._store.source, job.id))
            if job.kind == imports.KIND:
                n_skipped = await self._stored(
                    ends_at, lambda: imports.import_of(self._memories, job, data, partial(on_share, len(data)))
                )
                return str(n_skipped).encode(), None
            read = await self._reader.read(job.file_name, data, job.kind, job.read_options)
            translated = await self._translator.texts(read, job.request, ends_at, on_progress)
            reading = replace(job.read_options, unsure=translated.below(job.read_options.fuzzy_below))
            least_sure = translated.least_sure()
            result = await self._reader.write(job.kind, data, translated.texts, reading)
            return result, json.dumps(least_sure, ensure_ascii=False) if least_sure else None

        async def report() -> None:
            try:
                while True:
                    with suppress(NotStored):  # the next report may succeed
                        if not await in_thread(self._store.report_progress, job.id, self._owner, n_translated):
                            return
                    await asyncio.sleep(REPORT_S)
            finally:
                working.cancel()  # the document was deleted, or another server has it

        working, reporting = asyncio.create_task(work()), asyncio.create_task(report())
        try:
            result = await working
            await self._stored(ends_at, lambda: in_thread(self._store.finish, job.id, self._owner, *result))
        except (asyncio.CancelledError, Draining):
            with suppress(NotStored):
                await in_thread(self._store.release, job.id, self._owner)  # has no effect on a deleted job
        except RequestError as error:
            await self._fail(job, str(error), error.code)
        except Exception as error:
            logger.error("document %s failed", job.id, exc_info=error)
            await self._fail(job, f"Unexpected error; the log has it under {job.id}", InferenceFailed.code)
        finally:
            working.cancel()
            reporting.cancel()

    async def _stored(self, ends_at: float, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try until the deadline. Raises NotStored: the database could not be used."""
        while True:
            try:
                return await attempt()
            except NotStored:
                if asyncio.get_running_loop().time() > ends_at:
                    raise
            await asyncio.sleep(CHECK_S)

    async def _fail(self, job: Job, error: str, code: str | None) -> None:
        with suppress(NotStored):
            await in_thread(self._store.fail, job.id, self._owner, error, code)
