"""DeepL's language codes. They are in capitals, and some targets have regional variants alone."""

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
    """Return DeepL's code of a source language, which never has a region."""
    tag = canonical(source) or source
    if tag == "no":
        return "NB"
    language, *further = tag.split("-")
    return "-".join([language, *(part for part in further if not languages.is_region(part))]).upper()


def sources(directions: Directions) -> list[DeepLLanguage]:
    """Return the languages from which models translate."""
    codes = sorted({*map(code_of, languages.sources(directions))})
    return [DeepLLanguage(language=code, name=english_name(code)) for code in codes]


def targets(directions: Directions) -> list[DeepLLanguage]:
    """Return the languages into which models translate."""
    names: dict[str, str] = {}
    for language in languages.targets(directions):
        names |= dict(TARGETS.get(language, ((language.upper(), english_name(language)),)))
    return [DeepLLanguage(language=code, name=names[code], supports_formality=False) for code in sorted(names)]


def served_source(code: str, directions: Directions) -> str:
    """Return the native code of a source. Raises InvalidFields: no model translates from it."""
    return languages.served_source(code, directions) or _refuse("source_lang", code, sources(directions))


def served_target(code: str, directions: Directions) -> str:
    """Return the native code of a target. Raises InvalidFields: no model translates into it."""
    return languages.served_target(code, directions) or _refuse("target_lang", code, targets(directions))


def _refuse(field: str, code: str, served: list[DeepLLanguage]) -> str:
    codes = some([language.language for language in served])
    raise InvalidFields([((field,), f"must be one of {codes}, not {code}")])
