"""Canonical forms of language codes, and the language pairs of a translator.

Each model has its own names of languages: fr, fra, fra_Latn, fr_XX, pb. Requests may use them, and other forms: FR,
fr-FR, zh_CN. Answers have the canonical form, the shortest tag of BCP 47 (RFC 5646) that distinguishes a language, its
script and its region: fr, pt-BR, zh-Hant.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from manifest.schema import NO_LANGUAGE, Language

_TAG = re.compile(r"([a-z]{2,3})(?:-([a-z]{4}))?(?:-([a-z]{2}|[0-9]{3}))?", re.IGNORECASE)
_REGION = re.compile("-([A-Z]{2}|[0-9]{3})$")
_CODES_OF_MODELS = {"cn": "zh-Hans", "zhs": "zh-Hans", "zht": "zh-Hant", "zt": "zh-Hant", "ns": "nso", "pb": "pt-BR"}
"""Codes of models that are not language subtags, or are subtags of other languages."""
_NO_REGIONS = {"ar-AR", "bn-IN", "sw-KE"}
"""Codes of mBART with an unlikely region. All codes of mBART have a region, usually the likely one."""
_SIBLINGS = {"nb": "no", "no": "nb"}
"""Codes of the same language: most people and models call Bokmål Norwegian."""
_SCRIPTS = {"acm": "Arab", "acq": "Arab", "ajp": "Arab", "azb": "Arab", "pbt": "Arab", "xal": "Cyrl"}
"""Likely scripts that langcodes does not know."""
_RIGHT_TO_LEFT = frozenset({"Adlm", "Arab", "Hebr", "Mand", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa"})
MANY = "mul"
"""Source language of models that read many languages without being told which."""


def canonical(code: str) -> str | None:
    """Return the canonical form of a code; None if it is not a language code, such as ROMANCE."""
    match = _TAG.fullmatch(code.strip("<>_").replace("_", "-"))
    return _canonical(*(part or "" for part in match.groups())) if match else None


@lru_cache(maxsize=10_000)
def _canonical(language: str, script: str, region: str) -> str | None:
    """langcodes caches every input for ever, so it gets only parts of codes, of which there are few."""
    from langcodes import Language as Tag  # imported here: its tables take 50 ms, which pass while models load

    known = Tag.get(_CODES_OF_MODELS.get(language.lower(), language))
    if not known.is_valid():
        return None
    if known.language != "tw":  # Twi stays: models have it beside Akan
        known = known.prefer_macrolanguage()
    likely = Tag.get(known.language or "und").maximize()
    script, region = script.title() or known.script or "", region.upper() or known.territory or ""
    if known.language == "zh" and region:
        script, region = script or Tag.get(f"zh-{region}").maximize().script or "", ""
    if script in (_SCRIPTS.get(known.language or "", likely.script), "Hang"):  # Hang is part of Kore, the likely script
        script = ""
    tag = "-".join(filter(None, (known.language, script, region)))
    is_implied = region in ("XX", likely.territory) and tag != "pt-BR"
    return tag.removesuffix(f"-{region}") if is_implied or tag in _NO_REGIONS else tag or None


def subtag(code: str) -> str:
    """Return the language without script and region. A code without canonical form stays unchanged."""
    return (canonical(code) or code).split("-")[0]


def english_name(code: str) -> str:
    """Return the English name, such as Brazilian Portuguese or Serbian (Latin); the code itself if it has no name."""
    return name_in("en", code)


def name_in(reader: str, code: str) -> str:
    """Return the name of a language in the reader's language: Französisch for de and fr. An unknown reader's language
    gives the English name, and a code without a name itself."""
    return _name_in(canonical(reader) or "en", code)


@lru_cache(maxsize=10_000)
def _name_in(reader: str, code: str) -> str:
    tag = canonical(code)
    if tag is None:
        return code
    from babel import Locale, UnknownLocaleError  # imported here: its names take 9 MB

    try:
        locale = Locale.parse(reader, sep="-")
    except UnknownLocaleError:
        return english_name(code)
    whole, (language, *further) = tag.replace("-", "_"), tag.split("-")
    if whole in locale.languages:
        return str(locale.languages[whole])
    inside = [str(locale.scripts.get(part) or locale.territories.get(part) or part) for part in further]
    name = str(locale.languages.get(language, language))
    return f"{name} ({', '.join(inside)})" if inside else name


def is_right_to_left(code: str) -> bool:
    return script(code) in _RIGHT_TO_LEFT


@lru_cache(maxsize=10_000)
def script(code: str) -> str | None:
    """Return the script of a language (ISO 15924), from its code or the likely one; None if it is no language code."""
    tag = canonical(code)
    if tag is None:
        return None
    from langcodes import Language as Tag

    known = Tag.get(tag)
    return known.script or _SCRIPTS.get(known.language or "") or known.maximize().script


@lru_cache(maxsize=10_000)
def with_region(code: str) -> str:
    """Return a language with its region or the likely one, and its script if the region does not tell it: de-DE, zh-TW.
    A code without canonical form stays unchanged."""
    tag = canonical(code)
    if tag is None:
        return code
    from langcodes import Language as Tag

    likely = Tag.get(tag).maximize()
    regional = Tag.make(language=likely.language, territory=likely.territory)
    return (regional if regional.maximize().script == likely.script else likely).to_tag()


class WantedLanguage(NamedTuple):
    """The code of a language in a request, or None, and a canonical form that the code may mean."""

    code: str | None
    form: str | None

    @classmethod
    def closest_first(cls, code: str | None) -> "list[WantedLanguage]":
        """Return the possible meanings of a code: language and region, then the language; never another script."""
        tag = canonical(code) if code else None
        if tag is None:
            return [cls(code, None)]
        language = _REGION.sub("", tag)
        return [cls(code, form) for form in dict.fromkeys((tag, language, _SIBLINGS.get(language, language)))]

    @classmethod
    def of_sources(cls, code: str | None) -> "list[WantedLanguage]":
        """Return the possible meanings of a source code. The last one is a model that reads any language."""
        wanted = cls.closest_first(code)
        return [*wanted, cls(code, MANY)] if wanted[0].form else wanted


ANY = WantedLanguage(None, None)


def are_same(source: str, target: str) -> bool:
    """Return whether two codes may mean the same language, so that nothing is left to translate: fr-CA and fr."""
    forms = ({wanted.form for wanted in WantedLanguage.closest_first(code)} for code in (source, target))
    return bool(set.intersection(*forms) - {None})


class Side:
    """The source languages of a translator, or its target languages.

    Attributes:
        by_name: the languages by name. The name is the canonical form, or the model's own code if that has no canonical
            form or shares it with another language of the model.
    """

    def __init__(self, languages: Sequence[Language]) -> None:
        by_code = {language.code: language for language in languages}
        by_form: dict[str, Language] = {}
        for language in languages:
            form = canonical(language.code) or language.code
            by_form.setdefault(form, by_code.get(form, language))
        self.by_name: dict[str, Language] = {}
        self._names: dict[str, str] = {}
        for language in languages:
            form = canonical(language.code) or language.code
            name = form if by_form[form] is language else language.code
            self.by_name[name] = language
            self._names[language.code] = name

    def named(self, wanted: WantedLanguage) -> list[str]:
        """Return the name of a wanted language, by the model's code or its form; all names if none is wanted."""
        if wanted.code is None:
            return [*self.by_name]
        name = self._names.get(wanted.code, wanted.form)
        return [name] if name in self.by_name else []


@dataclass(frozen=True)
class Direction:
    """A language pair, and the tokens that name it to a model, before a source and at the beginning of a target."""

    source: str
    target: str
    source_prefix: tuple[int, ...] = ()
    target_prefix: tuple[int, ...] = ()

    @property
    def is_translation(self) -> bool:
        """Whether the target is a language, so that the source's sentences, numbers and names come out again."""
        return self.target != NO_LANGUAGE

    @cached_property
    def source_subtag(self) -> str:
        """The language code for the rules of sentences, abbreviations and letters."""
        return subtag(self.source)

    @cached_property
    def target_subtag(self) -> str:
        return subtag(self.target)


class TranslatorLanguages:
    """The source and target languages of a translator."""

    def __init__(self, sources: Sequence[Language], targets: Sequence[Language]) -> None:
        self.sources, self.targets = Side(sources), Side(targets)

    def __len__(self) -> int:
        return len(self.sources.by_name.keys() | self.targets.by_name.keys())

    def directions(self, source: WantedLanguage, target: WantedLanguage) -> Iterator[Direction]:
        """Yield the language pairs from every wanted source to every other wanted target, possibly thousands."""
        for reads in self.sources.named(source):
            of_source = self.sources.by_name[reads]
            name = (canonical(source.code) if source.code and reads == MANY else None) or reads
            for writes in self.targets.named(target):
                if name != writes:
                    of_target = self.targets.by_name[writes]
                    prefix = of_source.source_prefix + of_target.source_prefix
                    yield Direction(name, writes, prefix, of_target.target_prefix)
