# ruff: noqa: RUF001  Russian letters and wide digits
"""Weekdays, months and numbers as words, each in the place of another.

Tatoeba's 52,808 Japanese pairs name Monday 102 times and Thursday three times, and to take one day for another is worse
than to lack a word. Where both sides of a row name the same members of such a class, they become others, in the same
forms.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from model.data import Row

NUMERAL = "〇一二三四五六七八九十百千万億第\\d.,．，:：/／"
"""In a class of characters: beside one of them a Japanese numeral is a part of a longer number."""
EDGES = (r"(?<![\w-])", r"(?![\w-])")
"""What is before and behind a word, where spaces are written."""


@dataclass(frozen=True)
class ClosedClass:
    """Words of which there are few.

    Attributes:
        forms: by language, a string for each form, as for a case: that form of every member. All strings have the
            members in one order, with a space between, and `_` for a space in a form.
        agreeing: by language, a letter for every member. Only members with the same one take each other's place, as
            those of one gender, with which adjectives and verbs agree.
        edges: by language, what is before and behind a word, where that is something else than `EDGES`.
        alone: whether a text with several members is left as it is, as ranges and sums are, which have an order.
    """

    forms: Mapping[str, Sequence[str]]
    agreeing: Mapping[str, str] = field(default_factory=dict)
    edges: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    alone: bool = False

    @cached_property
    def tables(self) -> Mapping[str, Sequence[Sequence[str]]]:
        """By language, form and member; each form of small letters once more with a capital."""
        tables: dict[str, list[list[str]]] = {}
        for language, forms in self.forms.items():
            table = [[word.replace("_", " ") for word in form.split()] for form in forms]
            capitalized = [[word[0].upper() + word[1:] for word in words] for words in table]
            tables[language] = [*table, *(words for words in capitalized if words not in table)]
        return tables

    @cached_property
    def places(self) -> Mapping[str, Mapping[str, tuple[int, int]]]:
        """By language and word, form and member; the first form, where several are alike."""
        found: dict[str, dict[str, tuple[int, int]]] = {language: {} for language in self.tables}
        for language, table in self.tables.items():
            for form, words in enumerate(table):
                for member, word in enumerate(words):
                    found[language].setdefault(word, (form, member))
        return found

    @cached_property
    def patterns(self) -> Mapping[str, re.Pattern[str]]:
        """By language, what finds all words, the longest first."""
        patterns = {}
        for language, places in self.places.items():
            before, behind = self.edges.get(language, EDGES)
            patterns[language] = re.compile(f"{before}(?:{'|'.join(sorted(places, key=len, reverse=True))}){behind}")
        return patterns

    def members(self, text: str, language: str) -> list[int]:
        """Those that a text names, in its order, as often as it does."""
        places = self.places[language]
        return [places[word][1] for word in self.patterns[language].findall(text)]

    def exchanged(self, text: str, language: str, others: Sequence[int]) -> str:
        """The text with other members, in the forms of those whose place they take."""

        def other(match: re.Match[str]) -> str:
            form, member = self.places[language][match.group()]
            return self.tables[language][form][others[member]]

        return self.patterns[language].sub(other, text)

    def shuffled(self, languages: Sequence[str], random: np.random.Generator) -> list[int]:
        """For every member the one that takes its place."""
        agreeing = [self.agreeing[language] for language in languages if language in self.agreeing]
        n_members = len(self.tables[languages[0]][0])
        kinds = list(zip(*agreeing, strict=True)) if agreeing else [()] * n_members
        others = list(range(n_members))
        for kind in dict.fromkeys(kinds):
            alike = [member for member in range(n_members) if kinds[member] == kind]
            for member, other in zip(alike, random.permutation(alike).tolist(), strict=True):
                others[member] = other
        return others


WEEKDAYS = ClosedClass(
    {
        "en": (
            "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
            "Mondays Tuesdays Wednesdays Thursdays Fridays Saturdays Sundays",
        ),
        "fr": (
            "lundi mardi mercredi jeudi vendredi samedi dimanche",
            "lundis mardis mercredis jeudis vendredis samedis dimanches",
        ),
        "de": (
            "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
            "Montags Dienstags Mittwochs Donnerstags Freitags Samstags Sonntags",
        ),
        "ru": (
            "понедельник вторник среда четверг пятница суббота воскресенье",
            "понедельник вторник среду четверг пятницу субботу воскресенье",
            "понедельника вторника среды четверга пятницы субботы воскресенья",
            "понедельнику вторнику среде четвергу пятнице субботе воскресенью",
            "понедельникам вторникам средам четвергам пятницам субботам воскресеньям",
        ),
        "ja": ("月曜日 火曜日 水曜日 木曜日 金曜日 土曜日 日曜日", "月曜 火曜 水曜 木曜 金曜 土曜 日曜"),
    },
    agreeing={"ru": "mtfmffn"},  # "вторник" has prepositions of its own
    edges={"ja": ("", "")},
)

WEEKDAYS_WITH_PREPOSITIONS = ClosedClass(
    {
        "en": WEEKDAYS.forms["en"],
        "ru": (
            "в_понедельник во_вторник в_среду в_четверг в_пятницу в_субботу в_воскресенье",
            "с_понедельника со_вторника со_среды с_четверга с_пятницы с_субботы с_воскресенья",
            "к_понедельнику ко_вторнику к_среде к_четвергу к_пятнице к_субботе к_воскресенью",
            "по_понедельникам по_вторникам по_средам по_четвергам по_пятницам по_субботам по_воскресеньям",
        ),
    }
)
"""Here nothing agrees with a day."""

MONTHS = ClosedClass(
    {
        "en": ("January February March April May June July August September October November December",),
        "fr": ("janvier février mars avril mai juin juillet août septembre octobre novembre décembre",),
        "de": ("Januar Februar März April Mai Juni Juli August September Oktober November Dezember",),
        "ru": (
            "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь",
            "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
            "январе феврале марте апреле мае июне июле августе сентябре октябре ноябре декабре",
            "январю февралю марту апрелю маю июню июлю августу сентябрю октябрю ноябрю декабрю",
        ),
        "ja": (
            "1月 2月 3月 4月 5月 6月 7月 8月 9月 10月 11月 12月",
            "１月 ２月 ３月 ４月 ５月 ６月 ７月 ８月 ９月 １０月 １１月 １２月",
            "一月 二月 三月 四月 五月 六月 七月 八月 九月 十月 十一月 十二月",
        ),
    },
    agreeing={"fr": "cccvcccvcvcc"},  # before a vowel, "de" is "d'"
    edges={"ja": (f"(?<![{NUMERAL}])", "")},
)

NUMBERS = ClosedClass(
    {
        "en": ("two three four five six seven eight nine",),
        "fr": ("deux trois quatre cinq six sept huit neuf",),
        "de": ("zwei drei vier fünf sechs sieben acht neun",),
        "ru": (
            "два три четыре пять шесть семь восемь девять",
            "две три четыре пять шесть семь восемь девять",
            "двух трёх четырёх пяти шести семи восьми девяти",
            "двух трех четырех пяти шести семи восьми девяти",
        ),
        "ja": ("二 三 四 五 六 七 八 九", "2 3 4 5 6 7 8 9", "２ ３ ４ ５ ６ ７ ８ ９"),
    },
    # To exchange "two" would spoil couples and proverbs. In Russian, three and four want another case than the rest.
    agreeing={"en": "2nnnnnnn", "ru": "2ggppppp"},
    edges={
        "en": (rf"{EDGES[0]}(?<!\b[Aa] )", rf"{EDGES[1]}(?! (?:hundred|thousand|million|billion))"),
        "ja": (f"(?<![{NUMERAL}お御])", f"(?![{NUMERAL}季感股手大])"),
    },
    alone=True,
)
"""Not "one", which is an article too, nor what is part of larger numbers in Japanese, as "ten"."""


CLOSED_CLASSES = (WEEKDAYS_WITH_PREPOSITIONS, WEEKDAYS, MONTHS, NUMBERS)
LANGUAGES = frozenset(WEEKDAYS.forms)


def with_others(row: Row, languages: tuple[str, str], random: np.random.Generator) -> Row:
    """The row with other members of each class of which its sides, in these languages, name the same ones."""
    for closed in CLOSED_CLASSES:
        if not closed.forms.keys() >= set(languages):
            continue
        left, right = (sorted(closed.members(text, language)) for text, language in zip(row, languages, strict=True))
        if left and left == right and not (closed.alone and len(set(left)) > 1):
            others = closed.shuffled(languages, random)
            row = Row(*(closed.exchanged(*side, others) for side in zip(row, languages, strict=True)))
    return row
