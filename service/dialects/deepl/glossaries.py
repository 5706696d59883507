"""DeepL's glossaries: of its second version with one pair of languages each, of its third with several."""

import asyncio
from collections.abc import Sequence

from fastapi import APIRouter, Request, Response

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
from service.glossaries.entries import format_tsv, parse_csv, parse_tsv
from service.glossaries.store import Dictionary, Glossaries, Glossary, Pair
from service.http.stores import stores_of
from service.models.directions import Directions
from service.models.models import Models
from service.text.languages import are_same

TSV = "text/tab-separated-values"


def add_glossaries(router: APIRouter, models: Models) -> None:
    """The routes of both versions, of the same glossaries. Whatever waits for the disk does so in a thread."""

    async def read(given: Sequence[DeepLDictionary]) -> dict[Pair, dict[str, str]]:
        return await _in_thread(_read, given, models.catalog.directions(None))

    @router.get("/v2/glossary-language-pairs")
    async def list_pairs(_: Request) -> DeepLPairs:
        """Languages that glossaries are used for: all that are translated."""
        return DeepLPairs(supported_languages=_pairs(models.catalog.directions(None)))

    @router.post("/v2/glossaries", status_code=201)
    async def create(request: DeepLGlossary, http: Request) -> DeepLGlossaryInfo:
        """Keep a glossary, for translations to name by its id."""
        dictionaries = await read([request])
        return _of_one_pair(await _in_thread(_store(http).create, request.name, dictionaries))

    @router.get("/v2/glossaries")
    async def list_all(http: Request) -> DeepLGlossaryInfos:
        """Those of one pair of languages."""
        found = await _in_thread(_store(http).all)
        return DeepLGlossaryInfos(glossaries=[_of_one_pair(one) for one in found if len(one.dictionaries) == 1])

    @router.get("/v2/glossaries/{glossary_id}")
    async def get(http: Request, glossary_id: str) -> DeepLGlossaryInfo:
        """One of them."""
        return _of_one_pair(await _in_thread(_store(http).get, glossary_id))

    @router.get(
        "/v2/glossaries/{glossary_id}/entries", response_class=Response, responses={200: {"content": {TSV: {}}}}
    )
    async def get_entries(http: Request, glossary_id: str) -> Response:
        """Its entries, as TSV."""
        info = _of_one_pair(await _in_thread(_store(http).get, glossary_id))
        entries = await _in_thread(_entries, _store(http), glossary_id, info.source_lang, info.target_lang)
        return Response(entries, media_type=TSV)

    @router.post("/v3/glossaries", status_code=201)
    async def create_multilingual(request: DeepLMultilingualGlossary, http: Request) -> DeepLMultilingualGlossaryInfo:
        """Keep a glossary of several pairs of languages."""
        dictionaries = await read(request.dictionaries)
        return _of_all_pairs(await _in_thread(_store(http).create, request.name, dictionaries))

    @router.get("/v3/glossaries")
    async def list_multilingual(http: Request) -> DeepLMultilingualGlossaryInfos:
        """All of them, the oldest first."""
        return DeepLMultilingualGlossaryInfos(
            glossaries=[_of_all_pairs(one) for one in await _in_thread(_store(http).all)]
        )

    @router.get("/v3/glossaries/{glossary_id}")
    async def get_multilingual(http: Request, glossary_id: str) -> DeepLMultilingualGlossaryInfo:
        """One of them."""
        return _of_all_pairs(await _in_thread(_store(http).get, glossary_id))

    @router.patch("/v3/glossaries/{glossary_id}")
    async def update(request: DeepLGlossaryUpdate, http: Request, glossary_id: str) -> DeepLMultilingualGlossaryInfo:
        """Give it another name, and add entries."""
        if request.name is None and not request.dictionaries:
            raise UnprocessableRequest("`name` or `dictionaries` is required")
        dictionaries = await read(request.dictionaries)
        return _of_all_pairs(await _in_thread(_store(http).update, glossary_id, request.name, dictionaries))

    @router.get("/v3/glossaries/{glossary_id}/entries")
    async def get_dictionary(http: Request, glossary_id: str, source_lang: str, target_lang: str) -> DeepLDictionaries:
        """The entries of one of its dictionaries, as TSV."""
        entries = await _in_thread(_entries, _store(http), glossary_id, source_lang, target_lang)
        pair = {"source_lang": source_lang.lower(), "target_lang": target_lang.lower()}
        return DeepLDictionaries(dictionaries=[DeepLEntries(entries=entries, **pair)])

    @router.put("/v3/glossaries/{glossary_id}/dictionaries")
    async def put(request: DeepLDictionary, http: Request, glossary_id: str) -> DeepLDictionaryInfo:
        """Put a dictionary in place of the one of the same languages, or beside the others."""
        ((pair, entries),) = (await read([request])).items()
        return _info(await _in_thread(_store(http).put, glossary_id, *pair, entries))

    @router.delete("/v3/glossaries/{glossary_id}/dictionaries", status_code=204)
    async def delete_dictionary(http: Request, glossary_id: str, source_lang: str, target_lang: str) -> Response:
        """Forget one of its dictionaries."""
        await _in_thread(_delete_dictionary, _store(http), glossary_id, source_lang, target_lang)
        return Response(status_code=204)

    async def delete(http: Request, glossary_id: str) -> Response:
        """Forget it."""
        await _in_thread(_store(http).delete, glossary_id)
        return Response(status_code=204)

    for version in ("v2", "v3"):
        path = f"/{version}/glossaries/{{glossary_id}}"
        router.add_api_route(path, delete, methods=["DELETE"], status_code=204)


_in_thread = asyncio.to_thread


def _store(http: Request) -> Glossaries:
    return stores_of(http).glossaries


def _read(given: Sequence[DeepLDictionary], directions: Directions) -> dict[Pair, dict[str, str]]:
    """Raises UnprocessableRequest: a language is not served, entries cannot be read, or a pair is there twice."""
    dictionaries: dict[Pair, dict[str, str]] = {}
    for one in given:
        pair = served_source(one.source_lang, directions), served_target(one.target_lang, directions)
        if pair in dictionaries:
            raise UnprocessableRequest(f"Two dictionaries are from {one.source_lang} to {one.target_lang}")
        dictionaries[pair] = (parse_csv if one.entries_format == "csv" else parse_tsv)(one.entries)
    return dictionaries


def _entries(store: Glossaries, glossary_id: str, source: str, target: str) -> str:
    pair = _pair_of(store.get(glossary_id), source, target)
    return format_tsv(store.entries(glossary_id, *pair))


def _delete_dictionary(store: Glossaries, glossary_id: str, source: str, target: str) -> None:
    store.delete_dictionary(glossary_id, *_pair_of(store.get(glossary_id), source, target))


def _pair_of(glossary: Glossary, source: str, target: str) -> Pair:
    """Raises UnknownGlossary: it has no such dictionary."""
    for one in glossary.dictionaries:
        if are_same(one.source, source) and are_same(one.target, target):
            return one.source, one.target
    raise UnknownGlossary(f"Glossary {glossary.name!r} has no dictionary from {source} to {target}")


def _of_one_pair(glossary: Glossary) -> DeepLGlossaryInfo:
    """Raises UnknownGlossary: it has none, or several."""
    if len(glossary.dictionaries) != 1:
        n = len(glossary.dictionaries)
        raise UnknownGlossary(f"Glossary {glossary.name!r} has {n} dictionaries; use /v3/glossaries")
    info = _of_all_pairs(glossary)
    return DeepLGlossaryInfo(**vars(info.dictionaries[0]), **info.model_dump(exclude={"dictionaries"}))


def _of_all_pairs(glossary: Glossary) -> DeepLMultilingualGlossaryInfo:
    return DeepLMultilingualGlossaryInfo(
        glossary_id=glossary.id,
        name=glossary.name,
        dictionaries=[_info(one) for one in glossary.dictionaries],
        creation_time=f"{glossary.created_at:%Y-%m-%dT%H:%M:%S.%fZ}",
    )


def _info(dictionary: Dictionary) -> DeepLDictionaryInfo:
    source, target = code_of(dictionary.source).lower(), code_of(dictionary.target).lower()
    return DeepLDictionaryInfo(source_lang=source, target_lang=target, entry_count=dictionary.n_entries)


def _pairs(directions: Directions) -> list[DeepLPair]:
    found = {
        (code_of(one.language).lower(), code_of(target).lower())
        for one in directions.reachable()
        for target in (*one.targets, *one.through_pivot)
    }
    return [DeepLPair(source_lang=source, target_lang=target) for source, target in sorted(found)]
