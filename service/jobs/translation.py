"""Translate a document portion by portion, so that long ones are not refused, and other requests get their turn."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from operator import itemgetter

from service.access.ownership import Requester
from service.base.errors import (
    Broken,
    DeadlinePassed,
    QueueFull,
    Silent,
    Starting,
    TextTooLong,
    UnsupportedOption,
    WorkerEnded,
)
from service.base.settings import Settings
from service.documents.kinds import KINDS_BY_NAME
from service.documents.wrapping import visible_text
from service.front.models import Models
from service.jobs.reading import DocumentTexts
from service.schemas.answers import Translation
from service.schemas.requests import TranslateRequest
from service.tasks.context import Context

PORTION_CHARACTERS = 4_000
"""Most characters of a portion, unless one text is longer: about as many sentences as a request queues at first."""
MAX_RUNNING_PORTIONS = 2
"""Number of portions translated at a time: models are not idle while the last sentences of a portion are written."""
MAX_TRIES = 6
"""Maximum number of attempts for a portion while its model is broken: the model may be loaded some seconds later."""
MAX_PAUSE_S = 5.0
"""Maximum time before a portion is tried again, since the work before it may be done much sooner than predicted."""
SAMPLE_CHARACTERS = 5_000
"""Length of the beginning from which the language of a document is detected."""
MAX_LEAST_SURE, MAX_SHOWN_CHARACTERS = 10, 300
"""Number of passages of a document that are listed as its least sure ones, and what is shown of each."""
OnProgress = Callable[[int], None]
"""Receives the number of characters translated so far."""


@dataclass(frozen=True)
class DocumentTranslator:
    models: Models
    settings: Settings

    async def languages(
        self, document: DocumentTexts, request: TranslateRequest, timeout_s: float, requester: Requester
    ) -> tuple[str, str]:
        """Return the source and target language of a document. The beginning decides for all of it, since a single
        table cell is too short to detect its language. Raises RequestError: no model translates between these
        languages."""
        return await self.models.languages(sample_of(document, request), timeout_s, requester)

    async def texts(
        self, document: DocumentTexts, options: TranslateRequest, ends_at: float, on_progress: OnProgress
    ) -> "TranslatedTexts":
        """Return a translation of each text. Equal texts are translated once.

        Args:
            options: the languages and the options of every text.
            ends_at: the deadline on the event loop's clock.

        Raises:
            RequestError: a translation failed. A full queue or a busy model is waited for.
        """
        known: dict[str, Translation] = {}
        n_translated = 0
        portions = iter([*_portions([*dict.fromkeys(document.texts)], self.settings.max_texts)])

        async def work() -> None:
            nonlocal n_translated
            for portion in portions:
                request = options.model_copy(update={"text": portion, "format": document.format})
                known.update(zip(portion, await self._portion(request, ends_at), strict=True))
                n_translated += sum(map(len, portion))
                on_progress(n_translated)

        workers = [asyncio.create_task(work()) for _ in range(MAX_RUNNING_PORTIONS)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
        return TranslatedTexts(document, known)

    async def _portion(self, request: TranslateRequest, ends_at: float) -> list[Translation]:
        n_tries = 0
        needs_keys = bool(self.settings.api_keys or self.settings.api_keys_file)
        caller = None if needs_keys else ""  # a document does not tell whose key it came with
        while True:
            left_s = ends_at - asyncio.get_running_loop().time()
            if left_s <= 0:
                raise DeadlinePassed("The deadline passed before the whole document was translated")
            try:
                timeout_s = min(left_s, self.settings.max_timeout_s)
                answer = await self.models.translate(
                    request.model_copy(update={"timeout_s": timeout_s}), Context(background=True, caller=caller)
                )
            except (QueueFull, Starting, Silent) as error:
                await asyncio.sleep(min(error.retry_after_s, MAX_PAUSE_S, left_s))
            except Broken as error:
                n_tries += 1
                # The worker may have died of this portion; a second death would disable the model for everybody.
                if isinstance(error, WorkerEnded) or n_tries == MAX_TRIES:
                    raise
                await asyncio.sleep(error.retry_after_s)
            else:
                return answer.translations


@dataclass(frozen=True)
class TranslatedTexts:
    """The texts of a document, and the translation of each different one."""

    document: DocumentTexts
    known: dict[str, Translation]

    @property
    def texts(self) -> list[str]:
        """A translation of each text, in order."""
        return [self.known[text].text for text in self.document.texts]

    def below(self, confidence: float | None) -> list[str]:
        """Return the texts whose translations have less confidence; none if no confidence is given."""
        return [text for text, value in self._confidences() if confidence is not None and value < confidence]

    def least_sure(self) -> list[dict[str, str | float]]:
        """Return the passages with the least confidence, and their translations, the least sure first."""
        least = nsmallest(MAX_LEAST_SURE, self._confidences(), key=itemgetter(1))
        show = visible_text if self.document.format == "html" else str
        return [
            {
                "text": show(text)[:MAX_SHOWN_CHARACTERS],
                "translation": show(self.known[text].text)[:MAX_SHOWN_CHARACTERS],
                "confidence": round(value, 4),
            }
            for text, value in least
            if value < 1
        ]

    def _confidences(self) -> Iterator[tuple[str, float]]:
        for text, translation in self.known.items():
            if translation.confidence is not None:
                yield text, translation.confidence


def sample_of(document: DocumentTexts, request: TranslateRequest) -> TranslateRequest:
    """Return a request for the beginning of a document, whose language is that of all of it."""
    sample: list[str] = []
    for text in document.texts:
        sample.append(text if document.format != "html" else f"<p>{text}</p>")
        if sum(map(len, sample)) >= SAMPLE_CHARACTERS:
            break
    return request.model_copy(update={"text": ["\n\n".join(sample) or " "], "format": document.format})


def refuse_long_texts(document: DocumentTexts, max_characters: int) -> None:
    """Raise TextTooLong if a paragraph is longer than a text may be, without the tags that stand for its marks."""
    texts = map(visible_text, document.texts) if document.format == "html" else document.texts
    longest = max(map(len, texts), default=0)
    if longest > max_characters:
        raise TextTooLong(f"A paragraph of the document has {longest} characters; the limit is {max_characters}")


def refuse_without_states(kind: str) -> None:
    """Raise UnsupportedOption if a kind of file cannot mark translations by `fuzzy_below`."""
    if "fuzzy_below" not in KINDS_BY_NAME[kind].options:
        able = ", ".join(f".{name}" for name, other in KINDS_BY_NAME.items() if "fuzzy_below" in other.options)
        raise UnsupportedOption(
            f"`fuzzy_below` can only be used with {able}, whose translations have states, not .{kind}"
        )


def _portions(texts: Sequence[str], max_texts: int) -> Iterator[list[str]]:
    portion: list[str] = []
    length = 0
    for text in texts:
        if portion and (length + len(text) > PORTION_CHARACTERS or len(portion) == max_texts):
            yield portion
            portion, length = [], 0
        portion.append(text)
        length += len(text)
    if portion:
        yield portion
