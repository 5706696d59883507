"""What a server keeps for its clients beside models."""

from dataclasses import dataclass
from typing import Self

from fastapi import Request

from service.base.data_directory import DEFAULT
from service.base.settings import Settings
from service.glossaries.store import Glossaries
from service.jobs.worker import DocumentJobs
from service.models.serving import Serving


@dataclass(frozen=True)
class Stores:
    """Several servers share them through files."""

    glossaries: Glossaries
    documents: DocumentJobs

    @classmethod
    def of(cls, settings: Settings, serving: Serving) -> Self:
        """Nothing is opened before it is used.

        Args:
            serving: what translates documents.
        """
        glossaries = Glossaries(settings.data or DEFAULT)
        return cls(glossaries, DocumentJobs(serving, glossaries, settings, settings.data or DEFAULT))

    def start(self) -> None:
        """In the running event loop."""
        self.documents.start()

    async def stop(self) -> None:
        """What is not translated is left to other servers, or to the next start."""
        await self.documents.stop()
        self.glossaries.close()


def stores_of(request: Request) -> Stores:
    """Those of the application that a request came to."""
    stores: Stores = request.app.state.stores
    return stores
