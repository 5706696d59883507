"""DeepL's language codes: in capitals; some targets have regional variants alone."""

from collections.abc import Iterable, Mapping

from pydantic import BaseModel, Field

from service.base.errors import InvalidFields
from service.dialects.shared import languages
from service.front.directions import Directions, some
from service.text.languages import canonical, english_name

BRITISH, AMERICAN = ("EN-GB", "English (British)"), ("EN-US", "English (American)")
EUROPEAN, BRAZILIAN = ("PT-PT", "Portuguese (European)"), ("PT-BR", "Portuguese (Brazilian)")
SIMPLIFIED = "Chinese (simplified)"
TARGETS: Mapping[str, Iterable[tuple[str, str]]] = {
    "en": (BRITISH, AMERICAN),
    "en-GB": (BRITISH,),
    "pt": (EUROPEAN, BRAZILIAN),
    "zh": (("ZH", SIMPLIFIED), ("ZH-HANS", SIMPLIFIED)),
    "zh-Hant": (("ZH-HANT", "Chinese (traditional)"),),
    "no": (("NB", "Norwegian (bokmål)"),),
    "nb": (("NB", "Norwegian (bokmål)"),),
}
"""DeepL's codes and names of some target languages. DeepL's clients themselves refuse the targets EN and PT."""


class DeepLLanguage(BaseModel):
    language: str = Field(examples=["EN"])
    name: str
    supports_formality: bool | None = Field(default=None, description="Only of targets; always false.")


def code_of(source: str) -> str:
    """Return DeepL's code of a source language. It has no region, as none of DeepL's sources has."""
    tag = canonical(source) or source
    language, *further = tag.split("-")
    return (
        "NB"
        if tag == "no"
        else "-".join([language, *(part for part in further if not languages.is_region(part))]).upper()
    )


def sources(directions: Directions) -> list[DeepLLanguage]:
    """Return the languages from which models translate."""
    found = {code_of(one): one for one in languages.sources(directions)}
    return [DeepLLanguage(language=code, name=english_name(code)) for code in sorted(found)]


def targets(directions: Directions) -> list[DeepLLanguage]:
    """Return the languages into which models translate."""
    found: dict[str, str] = {}
    for name in languages.targets(directions):
        found |= dict(TARGETS.get(name, ((name.upper(), english_name(name)),)))
    return [DeepLLanguage(language=code, name=found[code], supports_formality=False) for code in sorted(found)]


def served_source(code: str, directions: Directions) -> str:
    """Return the native code of a source. Raises InvalidFields: no model translates from it."""
    found = languages.served_source(code, directions)
    return found or _refuse("source_lang", code, [one.language for one in sources(directions)])


def served_target(code: str, directions: Directions) -> str:
    """Return the native code of a target. Raises InvalidFields: no model translates into it."""
    found = languages.served_target(code, directions)
    return found or _refuse("target_lang", code, [one.language for one in targets(directions)])


def _refuse(field: str, code: str, codes: list[str]) -> str:
    raise InvalidFields([((field,), f"must be one of {some(codes)}, not {code}")])
