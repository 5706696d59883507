"""The data that a server stores for its clients."""

from dataclasses import dataclass

from service.access.usage import Usage
from service.glossaries.store import Glossaries
from service.jobs.worker import DocumentJobs
from service.memories.store import Memories
from service.storage.database import Database


@dataclass(frozen=True)
class Stores:
    """What is stored for clients. Servers share it through a database, which is opened at its first use."""

    database: Database
    glossaries: Glossaries
    memories: Memories
    documents: DocumentJobs
    usage: Usage

    def start(self) -> None:
        """Start to translate documents and to write usage, in the running event loop."""
        self.documents.start()
        self.usage.start()

    async def stop(self) -> None:
        """Stop. Other servers, or the next start, continue with the remaining documents."""
        await self.documents.stop()
        await self.usage.stop()
        self.database.close()
