"""What a server keeps for its clients beside models."""

from dataclasses import dataclass
from typing import Self

from fastapi import Request

from service.data_directory import DEFAULT
from service.glossaries.store import Glossaries
from service.settings import Settings


@dataclass(frozen=True)
class Stores:
    """Several servers share them through files."""

    glossaries: Glossaries

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Nothing is opened before it is used."""
        return cls(Glossaries(settings.data or DEFAULT))

    def close(self) -> None:
        self.glossaries.close()


def stores_of(request: Request) -> Stores:
    """Those of the application that a request came to."""
    stores: Stores = request.app.state.stores
    return stores
