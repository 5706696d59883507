"""DeepL's glossaries: version 2 of its interface has one language pair in each, version 3 several."""

import asyncio
from collections.abc import Sequence

from fastapi import APIRouter, Request, Response

from service.access.guards import requester_of
from service.base.errors import UnknownGlossary, UnprocessableRequest
from service.dialects.deepl.glossary_bodies import (
    DeepLDictionaries,
    DeepLDictionary,
    DeepLDictionaryInfo,
    DeepLEntries,
    DeepLGlossary,
    DeepLGlossaryInfo,
    DeepLGlossaryInfos,
    DeepLGlossaryUpdate,
    DeepLMultilingualGlossary,
    DeepLMultilingualGlossaryInfo,
    DeepLMultilingualGlossaryInfos,
    DeepLPair,
    DeepLPairs,
)
from service.dialects.deepl.languages import code_of, served_source, served_target
from service.dialects.shared.languages import language_pairs
from service.front.directions import Directions
from service.front.models import Models
from service.glossaries.entries import Entries, format_tsv, parse_csv, parse_tsv
from service.glossaries.store import Dictionary, Glossaries, Glossary, Pair
from service.http.glossaries import by_pair
from service.storage.database_threads import in_thread
from service.text.languages import are_same

TSV = "text/tab-separated-values"


def add_glossaries(router: APIRouter, models: Models, glossaries: Glossaries) -> None:
    """Add the routes of both versions, for the same glossaries. They wait for the disk in threads."""

    async def to_native(dictionaries: Sequence[DeepLDictionary]) -> dict[Pair, Entries]:
        return await asyncio.to_thread(_to_native, dictionaries, models.catalog.directions(None))

    async def entries_of(http: Request, glossary_id: str, source: str, target: str) -> str:
        pair = _pair_of(await in_thread(glossaries.get, requester_of(http), glossary_id), source, target)
        return format_tsv(await in_thread(glossaries.entries, requester_of(http), glossary_id, *pair))

    @router.get("/v2/glossary-language-pairs")
    async def list_pairs(_: Request) -> DeepLPairs:
        """List the language pairs that glossaries may have: all that are translated."""
        return DeepLPairs(supported_languages=_pairs(models.catalog.directions(None)))

    @router.post("/v2/glossaries", status_code=201)
    async def create(request: DeepLGlossary, http: Request) -> DeepLGlossaryInfo:
        """Store a glossary. Requests name it by its id."""
        dictionaries = await to_native([request])
        return _glossary_info(await in_thread(glossaries.create, requester_of(http), request.name, dictionaries))

    @router.get("/v2/glossaries")
    async def list_all(http: Request) -> DeepLGlossaryInfos:
        """List the glossaries of one language pair."""
        stored = await in_thread(glossaries.all, requester_of(http))
        infos = [_glossary_info(glossary) for glossary in stored if len(glossary.dictionaries) == 1]
        return DeepLGlossaryInfos(glossaries=infos)

    @router.get("/v2/glossaries/{glossary_id}")
    async def get(http: Request, glossary_id: str) -> DeepLGlossaryInfo:
        """Return a glossary of one language pair."""
        return _glossary_info(await in_thread(glossaries.get, requester_of(http), glossary_id))

    @router.get(
        "/v2/glossaries/{glossary_id}/entries", response_class=Response, responses={200: {"content": {TSV: {}}}}
    )
    async def get_entries(http: Request, glossary_id: str) -> Response:
        """Return the entries of a glossary of one language pair, as TSV."""
        info = _glossary_info(await in_thread(glossaries.get, requester_of(http), glossary_id))
        return Response(await entries_of(http, glossary_id, info.source_lang, info.target_lang), media_type=TSV)

    @router.post("/v3/glossaries", status_code=201)
    async def create_multilingual(request: DeepLMultilingualGlossary, http: Request) -> DeepLMultilingualGlossaryInfo:
        """Store a glossary of one or several language pairs."""
        dictionaries = await to_native(request.dictionaries)
        return _multilingual_info(await in_thread(glossaries.create, requester_of(http), request.name, dictionaries))

    @router.get("/v3/glossaries")
    async def list_multilingual(http: Request) -> DeepLMultilingualGlossaryInfos:
        """List all glossaries, the oldest first."""
        infos = [_multilingual_info(glossary) for glossary in await in_thread(glossaries.all, requester_of(http))]
        return DeepLMultilingualGlossaryInfos(glossaries=infos)

    @router.get("/v3/glossaries/{glossary_id}")
    async def get_multilingual(http: Request, glossary_id: str) -> DeepLMultilingualGlossaryInfo:
        """Return a glossary."""
        return _multilingual_info(await in_thread(glossaries.get, requester_of(http), glossary_id))

    @router.patch("/v3/glossaries/{glossary_id}")
    async def update(request: DeepLGlossaryUpdate, http: Request, glossary_id: str) -> DeepLMultilingualGlossaryInfo:
        """Rename a glossary, or add entries."""
        if request.name is None and not request.dictionaries:
            raise UnprocessableRequest("`name` or `dictionaries` is required")
        dictionaries = await to_native(request.dictionaries)
        return _multilingual_info(
            await in_thread(glossaries.update, requester_of(http), glossary_id, request.name, dictionaries)
        )

    @router.get("/v3/glossaries/{glossary_id}/entries")
    async def get_dictionary(http: Request, glossary_id: str, source_lang: str, target_lang: str) -> DeepLDictionaries:
        """Return the entries of one dictionary, as TSV."""
        entries = await entries_of(http, glossary_id, source_lang, target_lang)
        pair = {"source_lang": source_lang.lower(), "target_lang": target_lang.lower()}
        return DeepLDictionaries(dictionaries=[DeepLEntries(entries=entries, **pair)])

    @router.put("/v3/glossaries/{glossary_id}/dictionaries")
    async def put(request: DeepLDictionary, http: Request, glossary_id: str) -> DeepLDictionaryInfo:
        """Store a dictionary, in place of the one of the same language pair if there is one."""
        ((pair, entries),) = (await to_native([request])).items()
        return _dictionary_info(await in_thread(glossaries.put, requester_of(http), glossary_id, *pair, entries))

    @router.delete("/v3/glossaries/{glossary_id}/dictionaries", status_code=204)
    async def delete_dictionary(http: Request, glossary_id: str, source_lang: str, target_lang: str) -> Response:
        """Delete one dictionary of a glossary."""
        pair = _pair_of(await in_thread(glossaries.get, requester_of(http), glossary_id), source_lang, target_lang)
        await in_thread(glossaries.delete_dictionary, requester_of(http), glossary_id, *pair)
        return Response(status_code=204)

    async def delete(http: Request, glossary_id: str) -> Response:
        """Delete a glossary."""
        await in_thread(glossaries.delete, requester_of(http), glossary_id)
        return Response(status_code=204)

    for version in ("v2", "v3"):
        path = f"/{version}/glossaries/{{glossary_id}}"
        router.add_api_route(path, delete, methods=["DELETE"], status_code=204)


def _to_native(dictionaries: Sequence[DeepLDictionary], directions: Directions) -> dict[Pair, Entries]:
    """Raises InvalidFields: a language is not translated. Raises InvalidGlossary: entries cannot be read, or two
    dictionaries have the same language pair."""
    return by_pair(
        (
            (served_source(terms.source_lang, directions), served_target(terms.target_lang, directions)),
            (parse_csv if terms.entries_format == "csv" else parse_tsv)(terms.entries),
        )
        for terms in dictionaries
    )


def _pair_of(glossary: Glossary, source: str, target: str) -> Pair:
    """Raises UnknownGlossary: the glossary has no dictionary of these languages."""
    for dictionary in glossary.dictionaries:
        if are_same(dictionary.source, source) and are_same(dictionary.target, target):
            return dictionary.source, dictionary.target
    raise UnknownGlossary(f"Glossary {glossary.name!r} has no dictionary from {source} to {target}")


def _glossary_info(glossary: Glossary) -> DeepLGlossaryInfo:
    """Raises UnknownGlossary: the glossary has no language pair, or several."""
    if len(glossary.dictionaries) != 1:
        n = len(glossary.dictionaries)
        raise UnknownGlossary(f"Glossary {glossary.name!r} has {n} dictionaries; use /v3/glossaries")
    info = _multilingual_info(glossary)
    return DeepLGlossaryInfo(**vars(info.dictionaries[0]), **info.model_dump(exclude={"dictionaries"}))


def _multilingual_info(glossary: Glossary) -> DeepLMultilingualGlossaryInfo:
    return DeepLMultilingualGlossaryInfo(
        glossary_id=glossary.id,
        name=glossary.name,
        dictionaries=[_dictionary_info(dictionary) for dictionary in glossary.dictionaries],
        creation_time=f"{glossary.created_at:%Y-%m-%dT%H:%M:%S.%fZ}",
    )


def _dictionary_info(dictionary: Dictionary) -> DeepLDictionaryInfo:
    source, target = code_of(dictionary.source).lower(), code_of(dictionary.target).lower()
    return DeepLDictionaryInfo(source_lang=source, target_lang=target, entry_count=dictionary.n_entries)


def _pairs(directions: Directions) -> list[DeepLPair]:
    pairs = {(code_of(source).lower(), code_of(target).lower()) for source, target in language_pairs(directions)}
    return [DeepLPair(source_lang=source, target_lang=target) for source, target in sorted(pairs)]
