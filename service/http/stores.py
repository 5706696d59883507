"""What a server keeps for its clients beside models."""

from dataclasses import dataclass

from fastapi import Request

from service.glossaries.store import Glossaries
from service.jobs.worker import DocumentJobs


@dataclass(frozen=True)
class Stores:
    """What clients leave here; several servers share it through files. Nothing is opened before it is used."""

    glossaries: Glossaries
    documents: DocumentJobs

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
