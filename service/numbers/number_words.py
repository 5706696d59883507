"""Words for the numbers from 1 to 20, as translations write small numbers, and words that make other numbers."""

import re
from collections import Counter
from functools import cache
from itertools import zip_longest
from typing import NamedTuple

from service.numbers.numerals import KANJI


class _Words(NamedTuple):
    """Patterns of the words of a language, for each number from 1 on."""

    cardinals: str
    others: str
    """Ordinal numbers and the like."""
    made: str
    """Words of which other numbers may be made."""


_ORDINAL_RU = "(?:ый|ой|ая|ое|ого|ом|ую|ые|ых)"
_WORDS = {
    "en": _Words(
        r"""one|an? two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
        seventeen eighteen nineteen twenty""",
        r"""single|once|first second|both|twice|double third fourth fifth sixth seventh eighth ninth tenth eleventh
        twelfth|dozen""",
        r"""half|halves|quarters?|dozens?|hundreds?|thousands?|thirty|forty|fifty|sixty|seventy|eighty|ninety|zero|noon
        millions?|billions?|midnight|couple|pair|century|(?:twen|thir|for|fif|six|seven|eigh|nine)ties""",
    ),
    "fr": _Words(
        r"""une? deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit
        dix-neuf vingt""",
        r"""seule?|premi[eè]re? second\w*|deuxièmes?|double troisièmes? quatrièmes? cinquièmes? sixièmes? septièmes?
        huitièmes? neuvièmes? dixièmes? onzièmes? douzièmes?|douzaine""",
        r"""demie?s?|quarts?|(?:diz|douz|quinz|vingt|trent|quarant|cinquant|soixant|cent)aines?|cents?|mille|trente
        quarante|cinquante|soixante|(?:vingt|trente|quarante|cinquante|soixante|quatre)-\w+|millions?|milliards?|zéro
        midi|minuit|couple|paire|siècle""",
    ),
    "de": _Words(
        r"""eins|eine?|eine[mnrs] zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn
        sechzehn siebzehn achtzehn neunzehn zwanzig""",
        r"""einmal|einzige\w?|erste\w? zwei(?:er|en|mal|te\w?)|beide\w? drei(?:er|en|mal)|dritte\w?
        vier(?:er|en|mal|te\w?) fünf(?:er|mal|te\w?) sechs(?:er|mal|te\w?) siebenmal|sieb(?:en)?te\w?
        acht(?:er|mal|e\w?) neun(?:er|mal|te\w?) zehn(?:er|mal|te\w?) elf(?:er|te\w?) zwölf(?:er|te\w?)|dutzend""",
        r"""halb\w*|viertel\w*|anderthalb|\w*hundert\w*|\w*tausend\w*|\w*(?:drei|zwan|vier|fünf|sech|sieb|acht|neun)[zß]ig\w*
        millionen?|milliarden?|null|dutzend|mittag|mitternacht|paar|jahrhundert""",
    ),
    "ru": _Words(
        r"""один|одн(?:а|о|у|ой|ого|ому|им|ом) дв(?:а|е|ух|ум|умя|ое) три|тр[её][хм]|тремя|трое
        четыре|четыр[её][хм]|четырьмя|четверо пят(?:ь|и|ью|еро) шест(?:ь|и|ью|еро) сем(?:ь|и|ью|еро) восемь|восьми
        девят(?:ь|и|ью) десят(?:ь|и|ью) одиннадцат(?:ь|и|ью) двенадцат(?:ь|и|ью) тринадцат(?:ь|и) четырнадцат(?:ь|и)
        пятнадцат(?:ь|и) шестнадцат(?:ь|и) семнадцат(?:ь|и) восемнадцат(?:ь|и) девятнадцат(?:ь|и) двадцат(?:ь|и)""",
        rf"""перв\w{{2,3}}|раз втор\w{{2,3}}|оба|обе|обоих|дважды трет\w{{2,3}}|трижды четв[её]рт\w{{2,3}}
        пят{_ORDINAL_RU} шест{_ORDINAL_RU} седьм{_ORDINAL_RU} восьм{_ORDINAL_RU} девят{_ORDINAL_RU} десят{_ORDINAL_RU}
        одиннадцат{_ORDINAL_RU} двенадцат{_ORDINAL_RU}|дюжин\w*""",
        r"""полтор\w+|половин\w+|полчаса|четверть|дюжин\w*|ст[оа]|двести|триста|четыреста|\w+сот|сот\w*|тысяч\w*
        тридцат\w*|сорок\w*|\w+десят\w*|девяност\w*|миллион\w*|миллиард\w*|нол\w+|нул\w+|полдень|полночь|пар[аыуе]|век\w*""",
    ),
    "ja": _Words(
        "ひとつ|ひとり ふたつ|ふたり みっつ よっつ いつつ むっつ ななつ やっつ ここのつ",
        "最初|初め 両方",
        f"[{KANJI}] 半|ゼロ|正午|真夜中|ダース|毎",
    ),
}
OTHER = 0
"""The value that stands for words of which numbers may be made."""
_MARKS = ".,;!?…-–—()[]\"'’、。"
_NO_WORDS = re.compile(rf"[\s\d{re.escape(_MARKS)}]*")


def number_words(text: str, language: str, only_cardinal: bool = False) -> Counter[int] | None:
    """Count the words of a text by the number that they mean; None for a language whose words are not known.
    `only_cardinal` leaves out ordinal numbers and words of which numbers may be made."""
    if language not in _WORDS:
        return None
    matches = _pattern(language, only_cardinal).finditer(text.casefold())
    return Counter(int((match.lastgroup or "n0")[1:]) for match in matches)


def is_wordless(text: str, language: str) -> bool:
    """Return whether a text has nothing but numbers, in digits or in words, and the marks of sentences."""
    if language in _WORDS:
        text = _pattern(language, only_cardinal=True).sub(" ", text.casefold())
    return _NO_WORDS.fullmatch(text) is not None


@cache
def _pattern(language: str, only_cardinal: bool) -> re.Pattern[str]:
    cardinals, others, made = _WORDS[language]
    rows = zip_longest(cardinals.split(), [] if only_cardinal else others.split())
    groups = [f"(?P<n{number}>{'|'.join(filter(None, row))})" for number, row in enumerate(rows, 1)]
    if not only_cardinal:
        groups.append(f"(?P<n{OTHER}>{'|'.join(made.split())})")
    ways = "|".join(reversed(groups))
    return re.compile(f"(?:{ways})" if language == "ja" else rf"(?<![\w-])(?:{ways})(?![\w-])")
