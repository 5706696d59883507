"""Full stops that end no sentence ("M. Martin", "vol. 3"), and abbreviations that end one ("Milch usw. Danach")."""

import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise

_JOINT = "\0"
_NEAR = 30
"""Number of characters before and after a joint that decide whether it is inside a sentence."""
_EVERYWHERE = (
    rf"[^\W\d_]\.{_JOINT}(?=[-‐–]\w)|(?:^|\.)(?:[-‐–][^\W\d_]++)++\.\s+{_JOINT}(?=[a-zß-öø-ÿа-яё])"
    rf"|\b[^\W\d_]\.{_JOINT}(?=[^\W\d_]\.)"
)
"""Matches Mon.-Fri. from 9, c.-à-d. grand, S.N.C.F."""
_INITIALS = rf"(?:^|[A-ZÀ-ÖØ-Þ]\.)-(?!C\.)[A-ZÀ-ÖØ-Þ]\.\s+{_JOINT}(?=[A-ZÀ-ÖØ-Þ])"
"""Matches J.-J. Rousseau; "av. J.-C." ends sentences."""
_FRENCH_TITLES = "M|MM|Mr|Mmes?|Mlles?|Dr|Pr|Me|Mgr|Ste?"
_FRENCH = "[Aa]v|[Aa]pr|bd|[Bb]oul"
_FRENCH_BEFORE_NUMBERS = "art|avr|chap|déc|éd|env|févr|janv|juill|nos?|nov|oct|sept|tél|vol"
_ENGLISH_BEFORE_NUMBERS = "approx|vols?|chs?|chap|secs?|arts?|est|min|max|av|tel"
_GERMAN = "abzgl|ausschl|bspw|einschl|exkl|inkl|insb|zzgl"
_GERMAN_TITLE = r"(?:^|\.)-(?!(?:M[io]|D[io]|Fr|S[ao])\.)[A-ZÄÖÜ]\w{1,8}\."
"""Matches Dipl.-Ing. and Dr.-Ing., but not Mo.-Fr."""
_BEFORE_GERMAN_ORDINALS = (
    "am|ab|an|bis|beim|de[mnrs]|das|die|eine?|eine[mnrs]|im|ins?|oder|seit|und|vom|von|zum|zur"
    "|jede[mnrs]?|diese[mnrs]?|(?:[mds]ein|ihr|unser|eue?r)(?:e[mnrs]?)?"
)
_BEGIN_GERMAN_SENTENCES = (
    "Aber|Alle|Als|Also|Am|An|Auch|Auf|Bei|Bis|Bist|Bitte|Da|Damals|Danach|Dann|Das|Deshalb|Dies|Diese[rs]?|Doch|Dort"
    "|Du|Der|Die|Ein|Eine|Er|Erst|Es|Gestern|Habt|Hast|Hat|Heute|Hier|Ich|Ihr|Ihre|Im|In|Ist|Jetzt|Kannst|Können"
    "|Kommst|Kommt|Man|Mein|Meine|Mit|Morgen|Nach|Nicht|Nun|Nur|Ob|Oder|Sein|Seine|Seit|Sie|Sind|So|Sonst|Und|Unser"
    "|Unsere|Vielleicht|Von|Vor|Wann|War|Waren|Warum|Was|Weil|Wenn|Wer|Wie|Will|Willst|Wir|Wird|Wo|Zu|Zum|Zuerst"
)
BEGINS_SENTENCE = {"de": re.compile(rf"(?:{_BEGIN_GERMAN_SENTENCES})\b")}
"""Words that begin a sentence when capitalized, in languages that capitalize nouns."""
_RUSSIAN_BEFORE_NUMBERS = (
    "авг|апр|гл|дек|ию[лн]|кв|корп|мар|нояб?|ок|окт|пп?|прибл|разд|рис|сент?|см|ст|стр|табл|тел|февр?|ч|янв"
)
_RUSSIAN_BEFORE_NAMES = "акад|гр|доц|наб|пер|пл|просп|проф|св|тов|ул"
_RUSSIAN_INSTITUTIONS = r"(?:библиотек|завод|институт|музе|парк|площад|стадион|театр|улиц|университет|школ)\w*\s+им\."
"""Matches им. for имени only after an institution; им is also "them"."""
_RUSSIAN = r"долл|др|куб|кв|коп|млн|млрд|напр|н\. ?э|руб|см|т\. ?[декп]|тыс"
_JAPANESE_AFTER_QUOTATIONS = "が|って|と|な(?![ぜにん])|に|の|は|へ|も(?![うし]|っと)|を"
_JAPANESE_AFTER_QUESTIONS = (
    "と(?:[言云聞訊尋問思考答叫笑書驚]|か|い[いうえおっわ]|き[いかくけ]|おも|こた|さけ|たず)|って"
)
_INSIDE = {
    "en": rf"\b(?i:{_ENGLISH_BEFORE_NUMBERS})\.\s+{_JOINT}(?=\d)",
    "de": (
        rf"\b(?i:{_GERMAN})\.\s+{_JOINT}"
        rf"|(?:\b(?i:{_BEFORE_GERMAN_ORDINALS})\s+\d{{1,3}}\.|{_GERMAN_TITLE})\s+{_JOINT}(?!(?:{_BEGIN_GERMAN_SENTENCES})\b)"
    ),
    "fr": (
        rf"(?:^|[\s(«'’])(?:(?:{_FRENCH_TITLES}|{_FRENCH})\.\s+{_JOINT}|(?i:{_FRENCH_BEFORE_NUMBERS})\.\s+{_JOINT}(?=\d))"
    ),
    "ru": (
        rf"\b(?i:{_RUSSIAN_BEFORE_NUMBERS})\.\s+{_JOINT}(?=\d)|\b(?i:{_RUSSIAN_BEFORE_NAMES})\.\s+{_JOINT}(?=[А-ЯЁ])"
        rf"|\b(?i:{_RUSSIAN})\.\s+{_JOINT}(?=[а-яё(])"
        rf"|(?i:{_RUSSIAN_INSTITUTIONS})\s+{_JOINT}(?=[А-ЯЁ])|^[А-ЯЁ]\.\s+{_JOINT}(?=[А-ЯЁ])"
        rf"|[!?…][»”\"]?\s+{_JOINT}(?=[—–-]\s+[а-яё])"  # «Да!» — said somebody
    ),
    "ja": (
        rf"[」】〉》”\"]{_JOINT}(?={_JAPANESE_AFTER_QUOTATIONS})|）{_JOINT}(?=が|って|と|に|を)"
        rf"|{_JOINT}(?=[」】〉》）”])|\d．{_JOINT}(?=\d)|[！？!?]{_JOINT}(?={_JAPANESE_AFTER_QUESTIONS})"
        rf"|[A-Za-z]\.{_JOINT}(?=\S)|(?<![A-Za-z])(?:Dr|Mrs?|Ms|No|St|[Vv]ol)\.\s+{_JOINT}"
    ),
}
_AFTER_NUMBER = r"(?<!\d)(?:\d{1,4}|[IVXLC]+)\s?"
_ENDINGS = {
    "en": r"etc\.\s+(?=[A-Z][a-z\s])",
    "de": (
        rf"(?:us[wf]|etc)\.\s+(?=[A-ZÄÖÜ])"
        rf"|(?:(?!z\.\s?B|d\.\s?h)(?:[a-z]\.\s?){{1,2}}(?:[A-ZÄa-zä]|Chr)|{_AFTER_NUMBER}[A-Za-z]{{1,4}})\.\s+(?=(?:{_BEGIN_GERMAN_SENTENCES})\b)"
    ),
    "fr": rf"(?:etc|et al|J\.-C|{_AFTER_NUMBER}(?:[kcm]?[gml]|min|s|h))\.\s+(?=[A-ZÀ-ÖØ-Þ](?:[a-zß-öø-ÿ'’]|\s))",
    "ru": (
        rf"(?:и\s(?:т\.\s?[дп]|др|пр)|{_AFTER_NUMBER}(?:[а-я]{{2,4}}\.\s)?(?!(?:{_RUSSIAN_BEFORE_NAMES}|{_RUSSIAN_BEFORE_NUMBERS})\.)[а-я]{{1,4}})"
        r"\.\s+(?=[А-ЯЁ][а-яё\s])"
    ),
}
ENDINGS = {language: re.compile(rf"(?<![^\W_])(?:{pattern})") for language, pattern in _ENDINGS.items()}
"""Abbreviations that end a sentence: at the end of a list, and units and eras before a word that begins a sentence."""
_ANYWHERE = re.compile(f"{_EVERYWHERE}|{_INITIALS}")
INSIDE = {language: re.compile(f"{pattern}|{_ANYWHERE.pattern}") for language, pattern in _INSIDE.items()}
"""Patterns of joints inside a sentence."""
_SHORT_WORD = re.compile(
    r"(?<![^\W_])[^\W\d_]{0,5}[^\W\d_aeiouyàâäåæèéêëìíîïòóôöøœùúûüаеёиоуыэюя]\.\s+$", re.IGNORECASE
)
_SURE_END = re.compile(r"(?:[!?]|[^.]\.)\s+$")
"""Excludes an ellipsis, after which a sentence may continue."""
_NO_WORD = re.compile(r"^[\W_]+")


def join_parts(parts: list[str], language: str) -> list[int]:
    """Return the lengths of the sentences of a text, split into `parts` at each full stop that may end a sentence."""
    parts = _merge(parts, partial(_is_inside, INSIDE.get(language, _ANYWHERE)))
    if _begin_with_capitals(parts):
        parts = _merge(parts, lambda before, part: _begins_small(part) and _is_short(before))
    return [*map(len, parts)]


def _merge(parts: list[str], go_on: Callable[[str, str], bool]) -> list[str]:
    merged = parts[:1]
    for before, part in pairwise(parts):
        if go_on(before, part):
            merged[-1] += part
        else:
            merged.append(part)
    return merged


def _is_inside(joints: re.Pattern[str], before: str, part: str) -> bool:
    return joints.search(f"{before}{_JOINT}{part[:_NEAR]}", max(0, len(before) - _NEAR)) is not None


def _begin_with_capitals(parts: list[str]) -> bool:
    """A lone capital may be a pronoun, and small letters may follow abbreviations: neither counts."""
    first, *others = parts
    first = _NO_WORD.sub("", first)
    is_seen = not first[:1].isalpha() or any(part[:1].isupper() and part[1:2].islower() for part in (first, *others))
    after_ends = (part for before, part in pairwise(parts) if _SURE_END.search(before) and not _is_short(before))
    return is_seen and not _begins_small(first) and not any(map(_begins_small, after_ends))


def _is_short(before: str) -> bool:
    """Hardly any abbreviation ends in a vowel."""
    return _SHORT_WORD.search(before, max(0, len(before) - _NEAR)) is not None


def _begins_small(part: str) -> bool:
    """Names such as "iPhone" do not count."""
    return part[:1].islower() and not part[1:2].isupper()
