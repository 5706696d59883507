"""Which translator has a direction, or which two have it together through a pivot: the first translator writes this
language, and the second reads it."""

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice, product
from typing import NamedTuple

from service.base.errors import InvalidFields, TargetRequired, UnsupportedLanguagePair
from service.schemas.answers import Reachable
from service.tasks.translation.pivot import Route
from service.tasks.translation.translator import Translator
from service.text.languages import ANY, Direction, WantedLanguage, are_same, canonical, english_name

AUTO = "auto"
"""The source that asks for detection."""
PIVOT = "en"
"""The preferred pivot: most models have English, and most of the texts that they have learned from."""
MAX_LISTED = 10
"""Directions of one translator, or languages, that a message lists; it counts more than these."""
MAX_PLANS = 1_000
"""Plans that are kept ready; they are the same until other models serve."""
MAX_CODE = 35
"""Characters of the codes of plans that are kept: no language has a longer one (RFC 5646, section 4.4.1)."""


class PlannedRoute(NamedTuple):
    """Who translates from one language into another. `route` is empty where the languages are the same, so that nothing
    is left to translate."""

    source: str
    target: str
    route: Route


class Directions:
    """Language pairs that some translators support.

    Args:
        translators: where two have a direction, the first one translates. Models that write no language are asked only
            by their names or prompts.
        name: of the only translator, where a request names it: then nothing goes through a pivot.
        ordered: whether the first translator also answers where others have other directions.
    """

    def __init__(self, translators: Sequence[Translator], name: str | None = None, ordered: bool = False) -> None:
        self._translators = [one for one in translators if name is not None or not one.manifest.writes_no_language]
        self._others = [one for one in translators if one not in self._translators]
        self._name = name
        self._ordered = ordered
        self._known_plan = lru_cache(MAX_PLANS)(self._plan)

    def plan(self, source: str | None, target: str | None, pivot: bool) -> PlannedRoute | None:
        """Find the models that translate; None where the language of each text has to be detected first. `pivot`:
        whether two models may do it together. Raises UnsupportedLanguagePair, TargetRequired: no direction fits, or
        several do; the message names them."""
        is_short = max(len(source or ""), len(target or "")) <= MAX_CODE
        return (self._known_plan if is_short else self._plan)(source, target, pivot)

    def sources(self, target: str | None = None, pivot: bool = False) -> list[str]:
        """Return the languages that are translated, or the languages that are translated into the target. `pivot`:
        whether two models may do it together. Raises UnsupportedLanguagePair: no model translates into the target."""
        found: dict[str, None] = {}
        for wanted in WantedLanguage.closest_first(target):
            for one in self._translators:
                if one.languages.targets.named(wanted):
                    found |= dict.fromkeys(one.languages.sources.by_name)
            if found:
                break
        else:
            raise UnsupportedLanguagePair(self._nobody(None, target))
        if pivot and self._name is None and target is not None:
            direct = found.keys()
            for one in self._translators:
                if not direct.isdisjoint(one.languages.targets.by_name):
                    sources = one.languages.sources.by_name
                    found = found | {source: None for source in sources if not are_same(source, target)}
        return list(found)

    @cached_property
    def first_models(self) -> set[str]:
        """The names of the translators that are the first of a direction."""
        first: dict[tuple[str, str], str] = {}
        for one in self._translators:
            sides = one.languages.sources.by_name, one.languages.targets.by_name
            for pair in product(*sides):
                first.setdefault(pair, one.manifest.name)
        return {name for (source, target), name in first.items() if source != target}

    def target(self, target: str | None) -> str:
        """Return the name of the target language. Raises UnsupportedLanguagePair: no model translates into it. Raises
        TargetRequired: the request names none, and there are several."""
        for wanted in WantedLanguage.closest_first(target):
            found = dict.fromkeys(code for one in self._translators for code in one.languages.targets.named(wanted))
            if len(found) > 1 and target is None:
                raise TargetRequired(f"`target` is required; available: {some([*found])}")
            if found:
                return next(iter(found))
        raise UnsupportedLanguagePair(self._nobody(None, target))

    def route(self, source: str | None, target: str | None, pivot: bool) -> Route:
        """Return the first model that has the direction, or two models that have it together, if `pivot` allows it.
        Raises UnsupportedLanguagePair, TargetRequired: no direction fits, or several do; the message names them."""
        direct = self._direct(source, target)
        if direct is not None:
            return [direct]
        through = None
        if self._name is None and source is not None and target is not None and not are_same(source, target):
            through = self._through_pivot(source, target)
        if through is None or not pivot:
            offer = f"; with `pivot` it goes through {through[0][1].target}" if through else ""
            raise UnsupportedLanguagePair(self._nobody(source, target) + offer)
        return through

    def prompted(self, prompt: str) -> tuple[Translator, Direction]:
        """Return the first model that has this prompt, which stands before its texts. Raises InvalidFields: no model
        has it."""
        translators = [*self._translators, *self._others]
        translator = next((one for one in translators if prompt in one.manifest.prompts), None)
        if translator is None and len(translators) > 1:
            names = sorted({name for one in translators for name in one.manifest.prompts})
            message = f"must be a prompt of a model, not {prompt!r}; available: {', '.join(names) or 'none'}"
            raise InvalidFields([(("prompt",), message)])
        translator = translator or translators[0]
        return translator, translator.prompted(prompt)

    def reachable(self) -> list[Reachable]:
        """Return every language, with the languages into which it is translated."""
        sides = [
            (one.languages.sources.by_name.keys(), one.languages.targets.by_name.keys()) for one in self._translators
        ]
        found = []
        for language in dict.fromkeys(language for side in sides for names in side for language in names):
            direct = {target for reads, writes in sides if language in reads for target in writes} - {language}
            both = {target for reads, writes in sides if not direct.isdisjoint(reads) for target in writes}
            through = both - direct - {language}
            name = english_name(language)
            found.append(Reachable(language=language, name=name, targets=sorted(direct), through_pivot=sorted(through)))
        return sorted(found, key=lambda one: one.language)

    def _plan(self, source: str | None, target: str | None, pivot: bool) -> PlannedRoute | None:
        if source == AUTO or (source is None and target is not None and len(self.sources(target)) > 1):
            return None
        if source is not None and target is not None and are_same(source, target):
            if (direct := self._direct(source, target)) is None:
                return PlannedRoute(canonical(source) or source, canonical(target) or target, [])
            return PlannedRoute(direct[1].source, direct[1].target, [direct])
        route = self.route(source, target, pivot)
        return PlannedRoute(route[0][1].source, route[-1][1].target, route)

    def _direct(self, source: str | None, target: str | None) -> tuple[Translator, Direction] | None:
        """Raises TargetRequired: several directions fit."""
        for wanted in product(WantedLanguage.of_sources(source), WantedLanguage.closest_first(target)):
            fitting = [(one, direction) for one in self._translators for direction in _first(2, one, *wanted)]
            if fitting:
                break
        else:
            return None
        if self._ordered:
            fitting = [(one, direction) for one, direction in fitting if one is fitting[0][0]]
        if len({(direction.source, direction.target) for _, direction in fitting}) > 1:
            named = _listed(self._translators, *wanted)
            raise TargetRequired(f"`target` is required; available: {named}")
        return fitting[0]

    def _through_pivot(self, source: str, target: str) -> Route | None:
        """Two models meet in English, or else in the first language in which two models meet."""
        before = self._met((wanted, ANY) for wanted in WantedLanguage.of_sources(source))
        closest = WantedLanguage.closest_first(target)
        after = {direction.source for direction in self._met((ANY, wanted) for wanted in closest)}
        found = [direction.target for direction in before if direction.target in after]
        for middle in [PIVOT] if PIVOT in found else found:
            into, out_of = self._direct(source, middle), self._direct(middle, target)
            if into is not None and out_of is not None:
                return [into, out_of]
        return None

    def _met(self, wishes: Iterator[tuple[WantedLanguage, WantedLanguage]]) -> list[Direction]:
        """Return the directions that fit the first wish for which there are any."""
        for source, target in wishes:
            found = [way for one in self._translators for way in one.languages.directions(source, target)]
            if found:
                return found
        return []

    def _nobody(self, source: str | None, target: str | None) -> str:
        nobody = "No model translates" if self._name is None else f"Model {self._name} does not translate"
        asked = f"from {source or 'any language'} to {target or 'any language'}"
        return f"{nobody} {asked}; available: {_listed(self._translators or self._others)}"


def some(languages: Sequence[str]) -> str:
    """Name a few languages, count many."""
    return ", ".join(languages) if len(languages) <= MAX_LISTED else f"{len(languages)} languages"


def _listed(translators: Sequence[Translator], source: WantedLanguage = ANY, target: WantedLanguage = ANY) -> str:
    """List the directions from the source to the target that are wanted."""
    found = []
    for translator in translators:
        name, listed = translator.manifest.name, _first(MAX_LISTED + 1, translator, source, target)
        if len(listed) <= MAX_LISTED:
            found += [f"{direction.source}-{direction.target} ({name})" for direction in listed]
        else:
            sides = translator.languages.sources.named(source), translator.languages.targets.named(target)
            read, written = (side[0] if len(side) == 1 else f"{len(side)} languages" for side in sides)
            found.append(f"{read} to {written} ({name}, see /models)")
    return ", ".join(found)


def _first(most: int, translator: Translator, source: WantedLanguage, target: WantedLanguage) -> list[Direction]:
    return [*islice(translator.languages.directions(source, target), most)]
