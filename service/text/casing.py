"""Sentences in capitals: models have hardly seen any, and their tokens are pieces of a letter or two. So such a
sentence is read in small letters, and its translation written in capitals. Of words with one capital where others have
none, in English headlines and buttons, models have seen as few; those are read as in a sentence.

Every character stays one character, so that places in one text are places in the other.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

from service.text.spans import Span, edited

_WORD = re.compile(r"[^\W\d_]+")
_EMPHASIS = re.compile(r"\b[A-ZÀ-ÖØ-ÞА-ЯЁ]{2,}(?: [A-ZÀ-ÖØ-ÞА-ЯЁ]{2,})*\b")
_CAPITAL_ALWAYS = {"en": re.compile(r"\bi\b")}
"""Words that a language writes with a capital wherever they stand."""
_ACRONYMS = re.compile(
    "AIDS|AM|ARM|BAT|CAD|CAM|CAT|CET|DIN|DOS|EST|ETA|FED|GEZ|ICE|IDE|INS|IRA|IT|LED|MIT|PIN|PM|RAM|REM|ROM|SAP|SAT|SEC|SEK"
    "|SIM|UN|US|WHO|ВОЗ|ОС|ПРО|РАН|СО|ТВ"
)
"""Which in small letters are words too."""
_SMALL_IN_TITLES = {
    "en": re.compile(
        "I|a|about|after|against|among|an|and|are|as|at|be|before|between|but|by|during|for|from|if|in|into|is|it|its|nor"
        "|of|off|on|onto|or|out|over|per|so|than|the|through|to|towards?|under|until|up|via|vs|with|within|without|yet"
    )
}
"""Words that stay as they are where all others get a capital, of the languages that write headlines so."""
_NEVER_IN_NAMES = re.compile(
    "about|all|and|can|do|don|does|for|here|how|i|in|is|it|more|my|not?|now|off|or|our|out|that|this|to|up|us|we|what|when"
    "|where|who|why|yours?|you",
    re.IGNORECASE,
)
"""Words that tell a short title, "Contact Us", from a name of usual words, "Salt Lake City"."""
_SHORT_TITLE = 3
"""Words with a capital."""
_TITLE_WORD = re.compile(r"([^\W\d_]+?)(?:n['’]t|['’][^\W\d_]+)?(?![^\W\d_])")
_LONGEST = 40
"""Letters of a word that is looked up: what others are split into is not remembered."""

CountTokens = Callable[[str], int]
"""How many a model's tokenizer makes of a word."""


def usual_spelling(word: str, count_tokens: CountTokens) -> str | None:
    """How a word in capitals is usually written, if that is known: as one token, where its capitals are several."""
    if not 2 <= len(word) <= _LONGEST or _ACRONYMS.fullmatch(word) or count_tokens(word) <= min(2, len(word) - 1):
        return None
    forms = (word.lower(), word.capitalize())
    return next((form for form in forms if len(form) == len(word) and count_tokens(form) == 1), None)


def in_small_letters(
    text: str,
    sentences: Iterable[Span],
    language: str,
    stand_ins: Sequence[Span],
    count_tokens: CountTokens,
) -> str:
    """The text, as long as before, with its sentences in capitals written as others are.

    A sentence is in capitals if it has no small letter, none that is neither, and at least two words, one of them of
    three letters: others may be names and abbreviations.

    Args:
        stand_ins: words that stay as they are, and tell nothing of their sentence; in order.
    """
    shouted, _ = edited(text, [(span, span.of(text).upper()) for span in stand_ins])
    others = {span.start for span in stand_ins}
    pieces, position = [], 0
    for span in sentences:
        sentence = span.of(shouted)
        if not sentence.isupper() or _has_letters_without_case(sentence):
            continue
        words = [word.group() for word in _WORD.finditer(shouted, *span.pair) if word.start() not in others]
        if _is_prose(words) or (words and all(usual_spelling(word, count_tokens) for word in words)):
            pieces += [shouted[position : span.start], _sentence_case(span.of(shouted), language)]
            position = span.end
    small = "".join([*pieces, shouted[position:]])
    return edited(small, [(span, span.of(text)) for span in stand_ins])[0]


def without_emphasis(text: str, sentences: Iterable[Span], stand_ins: Sequence[Span], count_tokens: CountTokens) -> str:
    """The text, as long as before, with words in capitals among others, "DO NOT", as they are usually written.

    A model reads a word in capitals letter by letter, and the sentence without it.
    """
    others, firsts = {span.start for span in stand_ins}, {span.start for span in sentences}
    pieces, position = [], 0
    for run in _EMPHASIS.finditer(text):
        words = [word for word in _WORD.finditer(text, *run.span()) if word.start() not in others]
        usual = [usual_spelling(word.group(), count_tokens) for word in words]
        if not any(small and len(small) >= 3 for small in usual):  # rather an acronym
            continue
        for word, small in zip(words, usual, strict=True):
            if small:
                pieces += [text[position : word.start()], small.capitalize() if word.start() in firsts else small]
                position = word.end()
    return "".join([*pieces, text[position:]])


def without_title_case(
    text: str, sentences: Iterable[Span], language: str, stand_ins: Sequence[Span], count_tokens: CountTokens
) -> str:
    """The text, as long as before, with "How to Train Your Dog" as "How to train your dog".

    A model reads a word with a capital as a name. This is of sentences where all words but the like of "to" have one,
    and most are usual words: one token without it. Those lose it, except as the beginning of a name, "New York", and
    where the whole may be one.
    """
    if language not in _SMALL_IN_TITLES:
        return text
    others, changes = {span.start for span in stand_ins}, []
    for span in sentences:
        words = _words_of_title(text, span, others, _SMALL_IN_TITLES[language])
        titled = [word for word in words if not _SMALL_IN_TITLES[language].fullmatch(word.group(1))]
        is_usual = [_is_usually_small(word.group(1), count_tokens) for word in titled]
        if 2 * sum(is_usual) <= len(titled):
            continue
        if len(titled) <= _SHORT_TITLE and not any(_NEVER_IN_NAMES.fullmatch(word.group(1)) for word in words):
            continue
        names = {
            word.start()
            for word, usual in zip(titled, is_usual, strict=True)
            if not usual and count_tokens(word.group()) == 1
        }
        changes += [
            (Span(word.start(), word.start() + 1), word.group()[0].lower())
            for word, usual in zip(titled, is_usual, strict=True)
            if usual and word is not words[0] and word.end() + 1 not in names
        ]
    return edited(text, changes)[0]


def in_capitals(text: str) -> str:
    """The text, as long as before, in capitals: a letter that two of them stand for becomes its own capital, as ẞ, or
    stays as it is. So does a text of letters that have no capitals, where others are names."""
    return text if _has_letters_without_case(text) else "".join(_capital(character) for character in text)


def _words_of_title(text: str, sentence: Span, others: set[int], small: re.Pattern[str]) -> list[re.Match[str]]:
    """All words but those that begin at `others`; none where one is small that is not in titles, often the second."""
    words: list[re.Match[str]] = []
    for word in _TITLE_WORD.finditer(text, *sentence.pair):
        if word.start() in others:
            continue
        if not word.group()[0].isupper() and not (words and small.fullmatch(word.group(1))):
            return []
        words.append(word)
    return words


def _is_usually_small(word: str, count_tokens: CountTokens) -> bool:
    """Whether a word of a title has one capital, and is one token without it."""
    return (
        len(word) <= _LONGEST
        and (len(word) == 1 or not word.isupper())
        and len(word[0].lower()) == 1
        and count_tokens(word[0].lower() + word[1:]) == 1
    )


def _has_letters_without_case(text: str) -> bool:
    """As Japanese has; letters in capitals beside them are mostly acronyms."""
    return not text.isascii() and any(unicodedata.category(letter) == "Lo" for letter in text)


def _is_prose(words: list[str]) -> bool:
    return len(words) >= 2 and max(map(len, words)) >= 3


def _sentence_case(sentence: str, language: str) -> str:
    first = next(i for i, character in enumerate(sentence) if character.isupper())
    small = "".join(_one(character, character.lower()) for character in sentence[first + 1 :])
    if language in _CAPITAL_ALWAYS:
        small = _CAPITAL_ALWAYS[language].sub(lambda match: match.group().upper(), small)
    return sentence[: first + 1] + small


def _capital(character: str) -> str:
    return "ẞ" if character == "ß" else _one(character, character.upper())


def _one(character: str, changed: str) -> str:
    return changed if len(changed) == 1 else character
