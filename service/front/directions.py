"""Which translator has a direction, or which two have it together through a pivot: the first translator writes this
language, and the second reads it."""

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain, islice, product
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
        by_direction = [model for model in translators if name is not None or not model.manifest.writes_no_language]
        self._translators, self._others = by_direction, [model for model in translators if model not in by_direction]
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
        sources: dict[str, None] = {}
        for wanted in WantedLanguage.closest_first(target):
            for translator in self._translators:
                if translator.languages.targets.named(wanted):
                    sources |= dict.fromkeys(translator.languages.sources.by_name)
            if sources:
                break
        else:
            raise UnsupportedLanguagePair(self._nobody(None, target))
        if pivot and self._name is None and target is not None:
            direct = sources.keys()
            for translator in self._translators:
                if not direct.isdisjoint(translator.languages.targets.by_name):
                    read = translator.languages.sources.by_name
                    sources = sources | {source: None for source in read if not are_same(source, target)}
        return list(sources)

    @cached_property
    def first_models(self) -> set[str]:
        """The names of the translators that are the first of a direction."""
        first: dict[tuple[str, str], str] = {}
        for translator in self._translators:
            sides = translator.languages.sources.by_name, translator.languages.targets.by_name
            for pair in product(*sides):
                first.setdefault(pair, translator.manifest.name)
        return {name for (source, target), name in first.items() if source != target}

    def target(self, target: str | None) -> str:
        """Return the name of the target language. Raises UnsupportedLanguagePair: no model translates into it. Raises
        TargetRequired: the request names none, and there are several."""
        for wanted in WantedLanguage.closest_first(target):
            named = [translator.languages.targets.named(wanted) for translator in self._translators]
            codes = list(dict.fromkeys(chain.from_iterable(named)))
            if len(codes) > 1 and target is None:
                raise TargetRequired(f"`target` is required; available: {some(codes)}")
            if codes:
                return codes[0]
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
        prompted = next((translator for translator in translators if prompt in translator.manifest.prompts), None)
        if prompted is None and len(translators) > 1:
            names = sorted({name for translator in translators for name in translator.manifest.prompts})
            message = f"must be a prompt of a model, not {prompt!r}; available: {', '.join(names) or 'none'}"
            raise InvalidFields([(("prompt",), message)])
        prompted = prompted or translators[0]
        return prompted, prompted.prompted(prompt)

    def reachable(self) -> list[Reachable]:
        """Return every language, with the languages into which it is translated."""
        sides = [
            (translator.languages.sources.by_name.keys(), translator.languages.targets.by_name.keys())
            for translator in self._translators
        ]
        reachable = []
        for language in dict.fromkeys(language for side in sides for names in side for language in names):
            direct = {target for reads, writes in sides if language in reads for target in writes} - {language}
            both = {target for reads, writes in sides if not direct.isdisjoint(reads) for target in writes}
            through = both - direct - {language}
            targets = {"targets": sorted(direct), "through_pivot": sorted(through)}
            reachable.append(Reachable(language=language, name=english_name(language), **targets))
        return sorted(reachable, key=lambda source: source.language)

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
            firsts = ((translator, _first(2, translator, *wanted)) for translator in self._translators)
            if fitting := [(translator, direction) for translator, first in firsts for direction in first]:
                break
        else:
            return None
        if self._ordered:
            fitting = [(translator, direction) for translator, direction in fitting if translator is fitting[0][0]]
        if len({(direction.source, direction.target) for _, direction in fitting}) > 1:
            named = _listed(self._translators, *wanted)
            raise TargetRequired(f"`target` is required; available: {named}")
        return fitting[0]

    def _through_pivot(self, source: str, target: str) -> Route | None:
        """Two models meet in English, or else in the first language in which two models meet."""
        before = self._met((wanted, ANY) for wanted in WantedLanguage.of_sources(source))
        closest = WantedLanguage.closest_first(target)
        after = {direction.source for direction in self._met((ANY, wanted) for wanted in closest)}
        meeting = [direction.target for direction in before if direction.target in after]
        for middle in [PIVOT] if PIVOT in meeting else meeting:
            into, out_of = self._direct(source, middle), self._direct(middle, target)
            if into is not None and out_of is not None:
                return [into, out_of]
        return None

    def _met(self, wishes: Iterator[tuple[WantedLanguage, WantedLanguage]]) -> list[Direction]:
        """Return the directions that fit the first wish for which there are any."""
        for source, target in wishes:
            met = [way for translator in self._translators for way in translator.languages.directions(source, target)]
            if met:
                return met
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
    parts = []
    for translator in translators:
        name, listed = translator.manifest.name, _first(MAX_LISTED + 1, translator, source, target)
        if len(listed) <= MAX_LISTED:
            parts += [f"{direction.source}-{direction.target} ({name})" for direction in listed]
        else:
            sides = translator.languages.sources.named(source), translator.languages.targets.named(target)
            read, written = (side[0] if len(side) == 1 else f"{len(side)} languages" for side in sides)
            parts.append(f"{read} to {written} ({name}, see /models)")
    return ", ".join(parts)


def _first(most: int, translator: Translator, source: WantedLanguage, target: WantedLanguage) -> list[Direction]:
    return [*islice(translator.languages.directions(source, target), most)]
