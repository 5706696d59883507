"""Which translator goes from one language to another, and which two do it together, through a pivot: a language that
one writes and the other reads."""

from collections.abc import Iterator, Sequence
from itertools import islice, product

from service.base.errors import TargetRequired, UnsupportedLanguagePair
from service.schemas.answers import Reachable
from service.tasks.pivot import Route
from service.tasks.translation import Translator
from service.text.languages import ANY, Direction, Wanted, are_same, english_name

PIVOT = "en"
"""Before any other language: most models have it, and most of the texts that they have learned from."""
FEW = 10
"""Most directions of one translator, or languages, that a message lists."""


class Directions:
    """Those of some translators.

    Args:
        translators: of two that have a direction the first is meant.
        name: of the one that there is, if a request names it: then nothing goes through a pivot.
        ordered: whether the first translator also answers where others have other directions.
    """

    def __init__(self, translators: Sequence[Translator], name: str | None = None, ordered: bool = False) -> None:
        self._translators = translators
        self._name = name
        self._ordered = ordered

    def sources(self, target: str | None = None, pivot: bool = False) -> list[str]:
        """The languages that are translated, or those that are translated into the target.

        Args:
            pivot: whether two models may do it together.

        Raises:
            UnsupportedLanguagePair: nobody translates into the target.
        """
        found: dict[str, None] = {}
        for wanted in Wanted.closest_first(target):
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

    def target(self, target: str | None) -> str:
        """The language into which is translated, by its name.

        Raises:
            UnsupportedLanguagePair, TargetRequired: nobody does, or none is named and there are several.
        """
        for wanted in Wanted.closest_first(target):
            found = dict.fromkeys(code for one in self._translators for code in one.languages.targets.named(wanted))
            if len(found) > 1 and target is None:
                raise TargetRequired(f"`target` is required; available: {some([*found])}")
            if found:
                return next(iter(found))
        raise UnsupportedLanguagePair(self._nobody(None, target))

    def has(self, source: str, target: str) -> bool:
        """Whether one model has the direction."""
        return self._direct(source, target) is not None

    def route(self, source: str | None, target: str | None, pivot: bool) -> Route:
        """The first model that has the direction, or two that have it together.

        Args:
            pivot: whether two may.

        Raises:
            UnsupportedLanguagePair, TargetRequired: no direction fits, or several do; the message names them.
        """
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

    def reachable(self) -> list[Reachable]:
        """Every language, with those into which it is translated."""
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

    def _direct(self, source: str | None, target: str | None) -> tuple[Translator, Direction] | None:
        """Raises TargetRequired: several could serve."""
        for wanted in product(Wanted.of_sources(source), Wanted.closest_first(target)):
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
        """Through English if it can be, or else through what the first model that can writes."""
        before = self._met((wanted, ANY) for wanted in Wanted.of_sources(source))
        after = {direction.source for direction in self._met((ANY, wanted) for wanted in Wanted.closest_first(target))}
        found = [direction.target for direction in before if direction.target in after]
        for middle in [PIVOT] if PIVOT in found else found:
            into, out_of = self._direct(source, middle), self._direct(middle, target)
            if into is not None and out_of is not None:
                return [into, out_of]
        return None

    def _met(self, wishes: Iterator[tuple[Wanted, Wanted]]) -> list[Direction]:
        """The directions of the first wish that there are any for."""
        for source, target in wishes:
            found = [way for one in self._translators for way in one.languages.directions(source, target)]
            if found:
                return found
        return []

    def _nobody(self, source: str | None, target: str | None) -> str:
        nobody = "No model translates" if self._name is None else f"Model {self._name} does not translate"
        asked = f"from {source or 'any language'} to {target or 'any language'}"
        return f"{nobody} {asked}; available: {_listed(self._translators)}"


def some(languages: Sequence[str]) -> str:
    """A few languages by their names, many by their number."""
    return ", ".join(languages) if len(languages) <= FEW else f"{len(languages)} languages"


def _listed(translators: Sequence[Translator], source: Wanted = ANY, target: Wanted = ANY) -> str:
    """Which directions there are, from and to what is wanted."""
    found = []
    for translator in translators:
        name, listed = translator.manifest.name, _first(FEW + 1, translator, source, target)
        if len(listed) <= FEW:
            found += [f"{direction.source}-{direction.target} ({name})" for direction in listed]
        else:
            sides = translator.languages.sources.named(source), translator.languages.targets.named(target)
            read, written = (side[0] if len(side) == 1 else f"{len(side)} languages" for side in sides)
            found.append(f"{read} to {written} ({name}, see /models)")
    return ", ".join(found)


def _first(most: int, translator: Translator, source: Wanted, target: Wanted) -> list[Direction]:
    return [*islice(translator.languages.directions(source, target), most)]
