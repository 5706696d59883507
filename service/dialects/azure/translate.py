"""Azure's translation: each text into each of its targets, with alignment and lengths of sentences if the request wants
them."""

from collections import defaultdict
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from fastapi import APIRouter, Request

from service.base.errors import InvalidFields, LanguageNotDetected, LimitExceeded, TooManyTexts
from service.dialects.azure.requests import OLD, AzureInput, AzureInputs, AzureTarget, version_of
from service.dialects.shared.languages import LanguageCodes
from service.dialects.shared.texts import Translated, translate_texts
from service.front.models import Models, gather
from service.http.dialect import Backend
from service.text.languages import script

CODES = LanguageCodes(
    {"zh": "zh-Hans", "no": "nb", "sr": "sr-Cyrl", "mn": "mn-Cyrl", "pt-BR": "pt", "pt-PT": "pt-pt", "fr-CA": "fr-ca"}
)
GENERAL = frozenset({None, "", "general"})
WANTS = ("includeAlignment", "includeSentenceLength")
DICTIONARY = "<mstrans:dictionary"
NOTHING = "en"
"""The detected language of a text without words."""
Answer = dict[str, Any]
"""As Azure's reference describes it."""


class Group(NamedTuple):
    """Texts that one native request can translate."""

    source: str | None
    target: str
    text_format: str
    model: str | None


def add_translate(router: APIRouter, backend: Backend) -> None:
    """Add the route."""
    models = backend.models

    @router.post("/azure/translate")
    async def translate(request: AzureInputs, http: Request) -> list[Answer] | dict[str, list[Answer]]:
        """Translate each text into each of its targets. The shape is that of `api-version`."""
        n_texts = sum(len(text.targets) for text in request.inputs)
        if n_texts > backend.settings.max_texts:
            limit = backend.settings.max_texts
            raise TooManyTexts(f"The request has {n_texts} texts times targets; the limit is {limit}")
        is_old = version_of(http) == OLD
        wants = {name: is_old and http.query_params.get(name, "").lower() == "true" for name in WANTS}
        places: dict[Group, list[tuple[int, int]]] = defaultdict(list)
        for i, text in enumerate(request.inputs):
            for j, target in enumerate(text.targets):
                places[_group(text, target, models)].append((i, j))
        answers = await gather(
            _translate(models, group, [request.inputs[i].text for i, _ in of_group], wants, http)
            for group, of_group in places.items()
        )
        translated: dict[tuple[int, int], Translated] = {}
        for of_group, answer in zip(places.values(), answers, strict=True):
            translated.update(zip(of_group, answer, strict=True))
        value: list[Answer] = []
        for i, text in enumerate(request.inputs):
            detected = {"language": translated[i, 0].source or NOTHING, "score": translated[i, 0].confidence}
            translations = [
                _answer(text.text, translated[i, j], target.language, is_old, wants)
                for j, target in enumerate(text.targets)
            ]
            value.append({"translations": translations} | ({} if text.language else {"detectedLanguage": detected}))
        return value if is_old else {"value": value}


def _group(text: AzureInput, target: AzureTarget, models: Models) -> Group:
    """Raises InvalidFields: a script is not that of its language, or the model or the text is not supported."""
    scripts = ("fromScript", text.language, text.script), ("toScript", target.language, target.script)
    for parameter, code, given in scripts:
        if code and given and given.title() != script(code):
            raise InvalidFields([((parameter,), f"must be the script of {code}, {script(code)}")])
    if DICTIONARY in text.text:
        raise InvalidFields([((DICTIONARY[1:],), "is not supported; `glossary` of POST /translate is")])
    name: str | None = target.deployment_name
    if name not in {translator.manifest.name for translator in models.catalog.translators}:
        if name not in GENERAL and target.allow_fallback is False:
            raise InvalidFields([(("category",), f"must be general or the name of a model, not {name}")])
        name = None
    return Group(text.language, target.language, "html" if text.text_type == "html" else "text", name)


async def _translate(
    models: Models, group: Group, texts: list[str], wants: dict[str, bool], http: Request
) -> list[Translated]:
    options: dict[str, Any] = {"format": group.text_format, "model": group.model}
    source, context = group.source, http.state.context

    async def ask(source: str | None, alignment: bool) -> list[Translated]:
        return await translate_texts(
            models, CODES, texts, source, group.target, context, alignment=alignment, **options
        )

    try:
        return await ask(source, wants["includeAlignment"] and group.text_format == "text")
    except LimitExceeded:  # more tokens than are aligned
        return await ask(source, False)
    except LanguageNotDetected:
        if not (suggested := http.query_params.get("suggestedFrom")):
            raise
        return await ask(suggested, False)


def _answer(text: str, translated: Translated, target: str, is_old: bool, wants: dict[str, bool]) -> Answer:
    if not is_old:
        return {"language": target, "text": translated.text, "sourceCharacters": len(text)}
    answer: Answer = {"to": target, "text": translated.text}
    source_units, target_units = units_of(text), units_of(translated.text)
    native = translated.native
    if wants["includeAlignment"] and native.alignment is not None:
        pairs = (
            f"{source_units[s[0]]}:{source_units[s[1]] - 1}-{target_units[t[0]]}:{target_units[t[1]] - 1}"
            for s, t in native.alignment.words.spans
        )
        answer["alignment"] = {"proj": " ".join(pairs)}
    if wants["includeSentenceLength"]:
        segments = native.segments or []
        answer["sentLen"] = {
            "srcSentLen": lengths(source_units, [segment.source[0] for segment in segments]),
            "transSentLen": lengths(target_units, [segment.target[0] for segment in segments]),
        }
    return answer


def lengths(units: list[int], starts: list[int]) -> list[int]:
    """Return the lengths of sentences that start at these characters. They sum up to the length of the text."""
    bounds = [0, *(units[start] for start in starts[1:]), units[-1]]
    return [end - start for start, end in pairwise(bounds)]


def units_of(text: str) -> list[int]:
    """Return the number of UTF-16 units before each character, and of all."""
    return [0, *accumulate(1 + (character > "\uffff") for character in text)]
