"""The data that a server stores for its clients."""

from dataclasses import dataclass

from service.glossaries.store import Glossaries
from service.jobs.worker import DocumentJobs


@dataclass(frozen=True)
class Stores:
    """Glossaries and documents, which several servers share through files. No file is opened before it is needed."""

    glossaries: Glossaries
    documents: DocumentJobs

    def start(self) -> None:
        """Begin to translate documents, in the running event loop."""
        self.documents.start()

    async def stop(self) -> None:
        """Stop translating. Other servers, or the next start, take up what is left."""
        await self.documents.stop()
        self.glossaries.close()
