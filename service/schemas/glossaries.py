"""Requests and answers of stored glossaries."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Discriminator, Field, Tag

from service.schemas.requests import GlossaryTerm, Input, kind_of_entry


def _visible(name: str) -> str:
    if not name.strip():
        raise ValueError("must not be white space only")
    return name


Name = Annotated[str, Field(min_length=1, max_length=1024), AfterValidator(_visible)]
Code = Annotated[str, Field(min_length=1, max_length=35, examples=["en"])]
Entry = Annotated[Annotated[str, Tag("text")] | Annotated[GlossaryTerm, Tag("term")], Discriminator(kind_of_entry)]


class DictionaryRequest(Input):
    """Terms of one language, and their translations into another."""

    source: Code = Field(description="Language code.")
    target: Code = Field(description="Language code.")
    entries: dict[str, Entry] = Field(
        description="Terms and their translations, each a string or an object.", examples=[{"dog": "clebs"}]
    )


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
    entries: dict[str, str | GlossaryTerm] | None = Field(
        default=None, description="Present in the answer for a single glossary."
    )


class GlossaryCard(BaseModel):
    id: str
    name: str
    created_at: datetime
    dictionaries: Sequence[DictionaryCard]


class GlossariesResponse(BaseModel):
    glossaries: list[GlossaryCard]
