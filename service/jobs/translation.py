"""One document through the models: part by part, so that a long one is not refused, and others have their turn."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from service.base.errors import Broken, DeadlinePassed, QueueFull, Silent, Starting, TooLarge, WorkerEnded
from service.base.settings import Settings
from service.glossaries.store import Glossaries
from service.jobs.job import Job
from service.jobs.reading import Texts
from service.models import dispatch
from service.models.serving import Serving
from service.models.sources import languages_of
from service.schemas.requests import TranslateRequest
from service.schemas.timing import Timing

PART_CHARACTERS = 4_000
"""Of a part, or of its only text: about as many sentences as wait in line with others at once."""
PARTS_AT_ONCE = 2
"""So that models are not idle while the last sentences of a part are written."""
MOST_TRIES = 6
"""Of a part whose model is broken: one that cannot be loaded now may be in some seconds."""
SAMPLE_CHARACTERS = 5_000
"""By which the language of a document is detected."""


@dataclass(frozen=True)
class Translating:
    """What translates documents.

    Args:
        glossaries: that requests may name.
    """

    serving: Serving
    glossaries: Glossaries
    settings: Settings

    async def languages(self, document: Texts, request: TranslateRequest, timeout_s: float) -> tuple[str, str]:
        """From which language into which a document is translated. A document is in one language, by what it begins
        with: a cell of a table is too short to tell.

        Raises:
            RequestError: nothing here does that.
        """
        sample: list[str] = []
        for text in document.texts:
            sample.append(text if document.format != "html" else f"<p>{text}</p>")
            if sum(map(len, sample)) >= SAMPLE_CHARACTERS:
                break
        asked = request.model_copy(update={"text": ["\n\n".join(sample) or " "], "format": document.format})
        with self.serving.use() as models:
            source, target = await languages_of(models, asked, timeout_s)
        if request.glossary_id is not None and source != target:
            await self.glossaries.table(request.glossary_id, source, target)
        return source, target

    async def texts(self, document: Texts, job: Job, ends_at: float, tell: Callable[[int], None]) -> list[str]:
        """A translation for each text of a document; texts that are the same are translated once.

        Args:
            ends_at: in seconds of the event loop's clock.
            tell: gets the number of characters whenever some more are translated.

        Raises:
            RequestError: what translations raise; but a full queue, or a model that does not answer now, is waited for.
        """
        known: dict[str, str] = {}
        n_translated = 0
        parts = iter([*_parts([*dict.fromkeys(document.texts)], self.settings.max_texts)])
        options = TranslateRequest(text=["-"], source=job.source, target=job.target, **json.loads(job.options))

        async def work() -> None:
            nonlocal n_translated
            for part in parts:
                request = options.model_copy(update={"text": part, "format": document.format})
                known.update(zip(part, await self._part(request, ends_at), strict=True))
                n_translated += sum(map(len, part))
                tell(n_translated)

        workers = [asyncio.create_task(work()) for _ in range(PARTS_AT_ONCE)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
        return [known[text] for text in document.texts]

    async def _part(self, request: TranslateRequest, ends_at: float) -> list[str]:
        n_tries = 0
        while True:
            left_s = ends_at - asyncio.get_running_loop().time()
            if left_s <= 0:
                raise DeadlinePassed("the deadline passed before all of the document was translated")
            try:
                with self.serving.use() as models:
                    answer = await dispatch.translate(
                        models,
                        request,
                        min(left_s, self.settings.max_timeout_s),
                        Timing(),
                        glossaries=self.glossaries,
                    )
            except (QueueFull, Starting, Silent) as error:
                await asyncio.sleep(error.retry_after_s)
            except Broken as error:
                n_tries += 1
                # The loop may have died of this part, and where two do the model is taken out for everybody.
                if isinstance(error, WorkerEnded) or n_tries == MOST_TRIES:
                    raise
                await asyncio.sleep(error.retry_after_s)
            else:
                return [translation.text for translation in answer.translations]


def refuse_long_texts(document: Texts, most_characters: int) -> None:
    """Raises TooLarge: a paragraph is longer than a text may be."""
    longest = max(map(len, document.texts), default=0)
    if longest > most_characters:
        raise TooLarge(f"a paragraph of the document has {longest} characters, the limit is {most_characters}")


def _parts(texts: Sequence[str], most_texts: int) -> Iterator[list[str]]:
    part: list[str] = []
    length = 0
    for text in texts:
        if part and (length + len(text) > PART_CHARACTERS or len(part) == most_texts):
            yield part
            part, length = [], 0
        part.append(text)
        length += len(text)
    if part:
        yield part
