"""The routes of stored glossaries."""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response, UploadFile
from pydantic import Field

from service.access.guards import Guards, requester_of
from service.base.errors import InvalidGlossary
from service.glossaries.entries import Entries, check_entries, read_file
from service.glossaries.store import Dictionary, Glossaries, Glossary, Pair
from service.http.bodies import FileForm, file_or_json
from service.http.files import name_of
from service.http.json_route import json_route
from service.http.problems import document_errors
from service.schemas.glossaries import (
    Code,
    DictionaryCard,
    DictionaryRequest,
    GlossariesResponse,
    GlossaryCard,
    GlossaryRequest,
    GlossaryUpdate,
    Name,
)
from service.storage.database_threads import in_thread

GLOSSARY_FILE_PATH = "/glossaries/file"


class GlossaryForm(FileForm):
    """A file with the terms of two languages."""

    file: UploadFile = Field(description="The terms, as .csv, .tsv, .tbx or .tmx.")
    source: Code = Field(description="Language code.")
    target: Code = Field(description="Language code.")
    name: Name | None = Field(default=None, description="Name of the glossary; by default the name of the file.")
    glossary_id: str | None = Field(
        default=None, description="Id of a glossary whose dictionary of these languages is replaced."
    )


def glossary_routes(glossaries: Glossaries, guards: Guards) -> APIRouter:
    """Return the routes. They access the disk in threads."""
    router = APIRouter(
        tags=["glossaries"],
        route_class=json_route(guards, file_or_json),
        dependencies=guards.described,
        responses=document_errors(*guards.statuses, 404, 500),
    )
    of_bodies = document_errors(400, 408, 413, 415, 422, 503)

    @router.post("/glossaries", status_code=201, responses=of_bodies, response_model_exclude_none=True)
    async def create_glossary(request: GlossaryRequest, http: Request) -> GlossaryCard:
        """Store a glossary. Requests name it by its id."""
        dictionaries = await asyncio.to_thread(_dictionaries, request.dictionaries)
        return _card(await in_thread(glossaries.create, requester_of(http), request.name, dictionaries))

    @router.post(GLOSSARY_FILE_PATH, status_code=201, responses=of_bodies, response_model_exclude_none=True)
    async def upload_glossary(form: Annotated[GlossaryForm, Form()], http: Request) -> GlossaryCard:
        """Store the terms of a file, in a new glossary or in one that exists."""
        name = name_of(form.file.filename)
        entries = await asyncio.to_thread(read_file, name, form.data, form.source, form.target)
        pair, requester = (form.source, form.target), requester_of(http)
        if form.glossary_id is None:
            title = form.name or PurePath(name).stem
            return _card(await in_thread(glossaries.create, requester, title, {pair: entries}))
        await in_thread(glossaries.put, requester, form.glossary_id, *pair, entries)
        return _card(await in_thread(glossaries.update, requester, form.glossary_id, form.name))

    @router.get("/glossaries", response_model_exclude_none=True)
    async def list_glossaries(http: Request) -> GlossariesResponse:
        """List all glossaries, the oldest first, without their entries."""
        stored = await in_thread(glossaries.all, requester_of(http))
        return GlossariesResponse(glossaries=[*map(_card, stored)])

    @router.get("/glossaries/{glossary_id}", response_model_exclude_none=True)
    async def get_glossary(http: Request, glossary_id: str) -> GlossaryCard:
        """Return a glossary with its entries."""
        glossary, entries = await in_thread(glossaries.get_with_entries, requester_of(http), glossary_id)
        card = _card(glossary)
        for dictionary, of_dictionary in zip(card.dictionaries, entries, strict=True):
            dictionary.entries = of_dictionary
        return card

    @router.patch("/glossaries/{glossary_id}", responses=of_bodies, response_model_exclude_none=True)
    async def update_glossary(request: GlossaryUpdate, http: Request, glossary_id: str) -> GlossaryCard:
        """Rename a glossary, or add entries."""
        dictionaries = await asyncio.to_thread(_dictionaries, request.dictionaries)
        return _card(await in_thread(glossaries.update, requester_of(http), glossary_id, request.name, dictionaries))

    @router.delete("/glossaries/{glossary_id}", status_code=204, responses=document_errors(503))
    async def delete_glossary(http: Request, glossary_id: str) -> Response:
        """Delete a glossary."""
        await in_thread(glossaries.delete, requester_of(http), glossary_id)
        return Response(status_code=204)

    @router.put("/glossaries/{glossary_id}/dictionaries", responses=of_bodies, response_model_exclude_none=True)
    async def put_dictionary(request: DictionaryRequest, http: Request, glossary_id: str) -> DictionaryCard:
        """Store a dictionary. It replaces the dictionary of the same language pair, if there is one."""
        ((pair, entries),) = (await asyncio.to_thread(_dictionaries, [request])).items()
        return _dictionary(await in_thread(glossaries.put, requester_of(http), glossary_id, *pair, entries))

    @router.delete("/glossaries/{glossary_id}/dictionaries", status_code=204, responses=document_errors(422, 503))
    async def delete_dictionary(http: Request, glossary_id: str, source: str, target: str) -> Response:
        """Delete one dictionary of a glossary."""
        await in_thread(glossaries.delete_dictionary, requester_of(http), glossary_id, source, target)
        return Response(status_code=204)

    return router


def by_pair(dictionaries: Iterable[tuple[Pair, Entries]]) -> dict[Pair, Entries]:
    """Return entries by language pair. Raises InvalidGlossary: two dictionaries have the same pair."""
    entries_by_pair: dict[Pair, Entries] = {}
    for pair, entries in dictionaries:
        if pair in entries_by_pair:
            raise InvalidGlossary(f"Two dictionaries are from {pair[0]} to {pair[1]}")
        entries_by_pair[pair] = entries
    return entries_by_pair


def _dictionaries(given: Sequence[DictionaryRequest]) -> dict[Pair, Entries]:
    return by_pair(((request.source, request.target), check_entries(request.entries)) for request in given)


def _card(glossary: Glossary) -> GlossaryCard:
    return GlossaryCard(
        id=glossary.id,
        name=glossary.name,
        created_at=glossary.created_at,
        dictionaries=[_dictionary(dictionary) for dictionary in glossary.dictionaries],
    )


def _dictionary(dictionary: Dictionary) -> DictionaryCard:
    return DictionaryCard(source=dictionary.source, target=dictionary.target, entry_count=dictionary.n_entries)
