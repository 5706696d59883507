"""Requests and answers of translation memories."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from service.schemas.glossaries import Code, Name
from service.schemas.requests import Input

MAX_CHARACTERS = 10_000
"""Maximum length of the source and of the target of a segment."""
Text = Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS, pattern=r"\S")]


class MemoryRequest(Input):
    name: Name = Field(description="Name of the memory, for people.", examples=["Manuals"])
    source: Code = Field(description="Language code.")
    target: Code = Field(description="Language code.", examples=["fr"])


class SegmentRequest(Input):
    source: Text = Field(description="A text.", examples=["The pump runs."])
    target: Text = Field(description="Its translation.", examples=["La pompe tourne."])
    context: Annotated[str, Field(max_length=1_000)] | None = Field(default=None, description="Where it is used.")
    author: Annotated[str, Field(max_length=200)] | None = Field(default=None, description="Who translated it.")


class SegmentsRequest(Input):
    segments: Annotated[list[SegmentRequest], Field(min_length=1, max_length=1_000)] = Field(
        description="Texts and their translations. One with the same source as another replaces it."
    )


class SegmentCard(BaseModel):
    source: str
    target: str
    context: str | None = None
    author: str | None = None
    changed_at: datetime | None = None
    reviewed: bool = Field(validation_alias="is_reviewed", description="Translations use only reviewed segments.")


class SegmentsResponse(BaseModel):
    segments: list[SegmentCard]
    next: int | None = Field(default=None, description="`after` of the next page, if there are more.")


class MemoryCard(BaseModel):
    id: str
    name: str
    source: str
    target: str
    created_at: datetime
    changed_at: datetime
    segment_count: int = Field(validation_alias="n_segments")
    progress: float | None = Field(default=None, description="0 to 1, while a file is read in the background.")
    skipped: int | None = Field(default=None, description="Segments of the file without text, or too long.")
    error: str | None = Field(default=None, description="Why the last file could not be read to its end.")
    code: str | None = Field(default=None, description="The code of this error.")


class MemoriesResponse(BaseModel):
    memories: list[MemoryCard]
