"""DeepL's codes of languages: capitals, and of some targets only variants."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from pydantic import BaseModel, Field

from service.base.errors import InvalidFields, UnprocessableRequest
from service.models.directions import Directions, some
from service.text.languages import MANY, WantedLanguage, canonical, english_name

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
"""Codes and names of what a served language is listed as. DeepL's clients refuse the targets EN and PT themselves."""


class DeepLLanguage(BaseModel):
    language: str = Field(examples=["EN"])
    name: str
    supports_formality: bool | None = Field(default=None, description="Of targets: none does.")


def code_of(source: str) -> str:
    """DeepL's code of a source: no region, as DeepL's sources have none."""
    tag = canonical(source) or source
    language, *further = tag.split("-")
    return "NB" if tag == "no" else "-".join([language, *(part for part in further if not _is_region(part))]).upper()


def sources(directions: Directions) -> list[DeepLLanguage]:
    """Those that are translated into something."""
    found = {code_of(one): one for one in _named(_sources(directions))}
    return [DeepLLanguage(language=code, name=english_name(code)) for code in sorted(found)]


def targets(directions: Directions) -> list[DeepLLanguage]:
    """Those that something is translated into."""
    found: dict[str, str] = {}
    for name in _named(_targets(directions)):
        found |= dict(TARGETS.get(name, ((name.upper(), english_name(name)),)))
    return [DeepLLanguage(language=code, name=found[code], supports_formality=False) for code in sorted(found)]


def served_source(code: str, directions: Directions) -> str:
    """Raises InvalidFields: it is not among the sources."""
    names = directions.sources()
    found = _named_by(code, names) or _variety(code, names) or (code if MANY in names and canonical(code) else None)
    return found or _refuse("source_lang", code, [one.language for one in sources(directions)])


def served_target(code: str, directions: Directions) -> str:
    """Raises InvalidFields: it is not among the targets."""
    try:
        return directions.target(code)
    except UnprocessableRequest:
        found = _variety(code, _targets(directions))
        return found or _refuse("target_lang", code, [one.language for one in targets(directions)])


def _named_by(code: str, names: Collection[str]) -> str | None:
    return next((one.form for one in WantedLanguage.closest_first(code) if one.form in names), None)


def _variety(code: str, names: Iterable[str]) -> str | None:
    """Of a language that is served in one region alone."""
    tags = (name.partition("-") for name in names)
    return next((f"{tag}-{region}" for tag, _, region in tags if tag == canonical(code) and _is_region(region)), None)


def _refuse(field: str, code: str, codes: list[str]) -> str:
    raise InvalidFields([((field,), f"must be one of {some(codes)}, not {code}")])


def _sources(directions: Directions) -> list[str]:
    return [one.language for one in directions.reachable() if one.targets or one.through_pivot]


def _targets(directions: Directions) -> list[str]:
    return sorted({target for one in directions.reachable() for target in (*one.targets, *one.through_pivot)})


def _named(names: Iterable[str]) -> Iterator[str]:
    """Those that are languages: models have other codes, too."""
    return (name for name in names if canonical(name) == name and name != MANY)


def _is_region(part: str) -> bool:
    return len(part) == 2 or part.isdigit()
