"""The data that a server stores for its clients."""

from dataclasses import dataclass

from service.base.database import Database
from service.glossaries.store import Glossaries
from service.jobs.worker import DocumentJobs


@dataclass(frozen=True)
class Stores:
    """Stored glossaries and documents, which servers share through a database. It is opened at its first use."""

    database: Database
    glossaries: Glossaries
    documents: DocumentJobs

    def start(self) -> None:
        """Start to translate documents, in the running event loop."""
        self.documents.start()

    async def stop(self) -> None:
        """Stop. Other servers, or the next start, continue with the remaining documents."""
        await self.documents.stop()
        self.database.close()
