"""Lemmas of words: the forms that a dictionary lists, such as garden for gardens."""

import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache

from service.glossaries.words import plain

MIN_CHARACTERS = 4
"""Shorter words are often pronouns and articles: ses is not a form of the French noun son."""
MAX_CHARACTERS = 50
"""Longer words have no lemma: the search for one takes more than linear time."""
_ENGLISH_PLURAL = re.compile("(?:s|men|children|oxen|feet|teeth|geese|[ml]ice|[ai]|ae)$", re.IGNORECASE)
"""The ending of a word that may be a plural: gardens, women, criteria, cacti."""
_PLURAL_OF_CAPITALS = re.compile(r"([^\W\d_a-z]{2,})s")
"""The plural of an abbreviation: PCs."""
Lemmatize = Callable[[str], str]
"""Returns the lemma of a word, or the word itself. A lemma may have another lemma: meetings, meeting, meet."""


@cache
def lemmatizer(language: str) -> Lemmatize | None:
    """Return the lemmatizer of a language, by its subtag; None if there is none. The first call for a language takes up
    to a second.

    A word that begins with another letter than its lemma stays as it is, because it is probably a pronoun: leur is no
    form of son. In English only plurals have lemmas, because most English nouns are verbs too: trained is no form of
    the noun train.
    """
    # Imported here: most services have no glossary.
    from simplemma import Lemmatizer
    from simplemma.strategies import DefaultStrategy, StreamDictionaryFactory

    dictionaries = StreamDictionaryFactory(cache_max_size=1)  # a tenth of the memory of the usual one
    try:
        dictionaries.get_dictionary(language)
    except ValueError:
        return None
    known = Lemmatizer(cache_max_size=0, lemmatization_strategy=DefaultStrategy(dictionary_factory=dictionaries))

    @lru_cache(maxsize=50_000)
    def lemmatize(word: str) -> str:
        if (plural := _PLURAL_OF_CAPITALS.fullmatch(word)) and plural[1].isupper():
            return plural[1]
        if not MIN_CHARACTERS <= len(word) <= MAX_CHARACTERS or not word.isalpha():
            return word
        if language == "en" and not _ENGLISH_PLURAL.search(word):
            return word
        lemma = plain(known.lemmatize(word.lower() if word.isupper() else word, language))
        return lemma if _first_letter(lemma) == _first_letter(word) else word

    return lemmatize


def root_of(word: str, lemmatize: Lemmatize) -> str:
    """Return the root that a word shares with its lemma, the lemma's lemma, and so on. Lemmas may go in a circle."""
    chain = list[str]()
    while (folded := word.casefold()) not in chain:
        chain.append(folded)
        word = lemmatize(word)
    return min(chain[chain.index(folded) :])


def _first_letter(word: str) -> str:
    """Return the first letter without accents: Äpfel are an Apfel."""
    return unicodedata.normalize("NFD", word)[0].casefold()
