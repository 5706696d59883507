"""Full stops that end no sentence, though what follows them looks like the start of one: "M. Martin", "vol. 3"."""

import re
from itertools import pairwise

_JOINT = "\0"
"""Where two parts meet."""

_FRENCH_TITLES = "M|MM|Mr|Mmes?|Mlles?|Dr|Pr|Me|Mgr|Ste?"
_FRENCH = "[Aa]v|[Aa]pr|bd|[Bb]oul"
_FRENCH_BEFORE_NUMBERS = "art|chap|éd|env|nos?|tél|vol"
_ENGLISH_BEFORE_NUMBERS = "approx|vols?|chs?|chap|secs?|arts?|est|min|max|av|tel"
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
_RUSSIAN_BEFORE_NUMBERS = "гл|кв|корп|ок|пп?|прибл|разд|рис|см|ст|стр|табл|тел|ч"
_RUSSIAN_BEFORE_NAMES = "акад|гр|доц|наб|пер|пл|просп|проф|св|тов|ул"
_RUSSIAN_INSTITUTIONS = r"(?:библиотек|завод|институт|музе|парк|площад|стадион|театр|улиц|университет|школ)\w*\s+им\."
"""In full "имени"; им is also "them"."""
_RUSSIAN = r"долл|др|куб|кв|коп|млн|млрд|напр|н\. ?э|руб|см|т\. ?[декп]|тыс"

_JAPANESE_AFTER_QUOTATIONS = "が|って|と|な(?![ぜにん])|に|の|は|へ|も(?![うし]|っと)|を"
_JAPANESE_AFTER_QUESTIONS = (
    "と(?:[言云聞訊尋問思考答叫笑書驚]|か|い[いうえおっわ]|き[いかくけ]|おも|こた|さけ|たず)|って"
)

_INSIDE = {
    "en": rf"\b(?i:{_ENGLISH_BEFORE_NUMBERS})\.\s+{_JOINT}(?=\d)",
    "de": rf"\b(?i:{_BEFORE_GERMAN_ORDINALS})\s+\d{{1,3}}\.\s+{_JOINT}(?!(?:{_BEGIN_GERMAN_SENTENCES})\b)",
    "fr": (
        rf"(?:^|[\s(«'’])(?:(?:{_FRENCH_TITLES}|{_FRENCH})\.\s+{_JOINT}|(?i:{_FRENCH_BEFORE_NUMBERS})\.\s+{_JOINT}(?=\d))"
        rf"|[A-Za-zÀ-ÿ]\.{_JOINT}-|(?:-C|-à-d)\.\s+{_JOINT}(?=[a-zà-ÿ])"
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
INSIDE = {language: re.compile(pattern) for language, pattern in _INSIDE.items()}
"""Joints inside a sentence."""


def rejoined(parts: list[str], language: str) -> list[int]:
    """Lengths of the sentences in a text that was parted at every full stop that may end one."""
    inside = INSIDE.get(language)
    lengths = [len(part) for part in parts[:1]]
    for before, part in pairwise(parts):
        if inside is not None and inside.search(f"{before}{_JOINT}{part}"):
            lengths[-1] += len(part)
        else:
            lengths.append(len(part))
    return lengths
