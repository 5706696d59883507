"""Requests and answers of stored glossaries."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from service.schemas.requests import Input


def _visible(name: str) -> str:
    if not name.strip():
        raise ValueError("must not be white space only")
    return name


Name = Annotated[str, Field(min_length=1, max_length=1024), AfterValidator(_visible)]
Code = Annotated[str, Field(min_length=1, max_length=35, examples=["en"])]


class DictionaryRequest(Input):
    """Terms of one language, and their translations into another."""

    source: Code = Field(description="Language code.")
    target: Code = Field(description="Language code.")
    entries: dict[str, str] = Field(description="Terms and their translations.", examples=[{"dog": "clebs"}])


class GlossaryRequest(Input):
    name: Name = Field(description="Name of the glossary, for people.", examples=["Animals"])
    dictionaries: list[DictionaryRequest] = Field(default=[], description="One dictionary for each language pair.")


class GlossaryUpdate(Input):
    name: Name | None = Field(default=None, description="New name.")
    dictionaries: list[DictionaryRequest] = Field(
        default=[], description="Entries to add. Each replaces an entry with the same term."
    )


class DictionaryCard(BaseModel):
    source: str
    target: str
    entry_count: int
    entries: dict[str, str] | None = Field(default=None, description="Present in the answer for a single glossary.")


class GlossaryCard(BaseModel):
    id: str
    name: str
    created_at: datetime
    dictionaries: Sequence[DictionaryCard]


class GlossariesResponse(BaseModel):
    glossaries: list[GlossaryCard]
