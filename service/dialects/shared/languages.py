"""Which served language a client's code means, and what a dialect calls a language."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from service.base.errors import InvalidFields, UnsupportedLanguagePair
from service.front.directions import AUTO, Directions
from service.text.languages import MANY, WantedLanguage, canonical, with_region


class Use(NamedTuple):
    is_source: bool
    is_target: bool


class LanguageCodes:
    """A dialect's codes of languages. Requests may have any code that `canonical` reads: iw, zh-CN, zh_Hans, nb.
    Answers have the dialect's codes, which `names` has by canonical ones where they differ."""

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self._names = names or {}

    def name(self, language: str) -> str:
        """Return the dialect's code of a language."""
        return self._names.get(canonical(language) or language, language)

    def listed(self, directions: Directions) -> dict[str, Use]:
        """Return the codes of all languages in order, each with what it is used for."""
        reads, writes = ({*map(self.name, side(directions))} for side in (sources, targets))
        return {code: Use(code in reads, code in writes) for code in sorted(reads | writes)}


def native_source(code: str | None, directions: Directions) -> str:
    """Return the native code of a source, and `auto` for none. Raises InvalidFields: no model translates from it."""
    if not code or code.lower() == AUTO:
        return AUTO
    if (source := served_source(code, directions)) is None:
        raise InvalidFields([(("source",), f"must be a language that models translate from, not {code}")])
    return source


def native_target(code: str, directions: Directions) -> str:
    """Return the native code of a target. Raises InvalidFields: no model translates into it."""
    if not code or (target := served_target(code, directions)) is None:
        raise InvalidFields([(("target",), f"must be a language that models translate into, not {code!r}")])
    return target


def served_source(code: str, directions: Directions) -> str | None:
    """Return the native code of a source; None if no model translates from it."""
    names = directions.sources()
    form = canonical(code)
    return _named_by(code, names) or _variety(form, names) or (code if MANY in names and form else None)


def served_target(code: str, directions: Directions) -> str | None:
    """Return the native code of a target; None if no model translates into it."""
    try:
        return directions.target(code)
    except UnsupportedLanguagePair:
        return _variety(canonical(code), targets(directions))


def sources(directions: Directions) -> list[str]:
    """Return the languages from which models translate. Languages without canonical code are left out."""
    return [*_coded(dict(language_pairs(directions)))]


def targets(directions: Directions) -> list[str]:
    """Return the languages into which models translate. Languages without canonical code are left out."""
    return sorted(_coded({target for _, target in language_pairs(directions)}))


def language_pairs(directions: Directions) -> list[tuple[str, str]]:
    """Return all sources with each of their targets, of one model or of two."""
    return [(source.language, target) for source in directions.reachable() for target in source.all_targets]


def is_region(part: str) -> bool:
    """Return whether a part of a code names a region, not a script."""
    return len(part) == 2 or part.isdigit()


def _named_by(code: str, names: Collection[str]) -> str | None:
    forms = [code, *(wanted.form for wanted in WantedLanguage.closest_first(code))]
    return next((form for form in forms if form in names), None)


def _variety(tag: str | None, names: Collection[str]) -> str | None:
    """A language without a region is served by a regional variety, such as pt by pt-BR; of several by the likely
    one."""
    varieties = [name for name in names if name.partition("-")[0] == tag and is_region(name.partition("-")[2])]
    return next((name for name in varieties if name == with_region(tag or "")), next(iter(varieties), None))


def _coded(names: Iterable[str]) -> Iterator[str]:
    return (name for name in names if canonical(name) == name and name != MANY)
