"""What comes out of a translation as it went in: URLs, e-mail addresses, {name}, %s, and pieces that the caller names.

A model that was trained on everyday sentences copies names, cities and numbers, and garbles URLs. So each placeholder
goes through the model as such a word, its stand-in, and is put back afterwards.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

from service.text.grouped_numbers import CURRENCIES, RUSSIAN_TELEPHONE
from service.text.japanese_numbers import half_width
from service.text.respelling import respellings
from service.text.scripts import JAPANESE, LETTER
from service.text.sentences import MARK
from service.text.spans import Edits, Span, edited, overlapping
from service.text.stand_ins import STAND_INS, StandInKind, named_in_other_letters, written

_KANJI_OR_KATAKANA = r"\u3005\u30a1-\u30ff\u3400-\u9fff"
"""Behind what is in them, a sentence goes on in hiragana."""
_BODY = rf"""
    (?:[^\s<>"(){{}}«»“”\u3000-\u303f{JAPANESE}\uff00-\uffef] | \([^\s()<>]*\) | \{{[^\s{{}}]*\}}
      | (?<=[/=_])(?:[{JAPANESE}]+(?=[/=_?&#])|[{_KANJI_OR_KATAKANA}]+(?=\s|$)))"""
_END = r"(?<![.,;:!?'’…*\]])"
_FLAGS = r"[-+0#]{0,4}\d{0,4}(?:\.\d{1,4})?"
_PRINTF = rf"%(?:\d{{1,2}}\$)?{_FLAGS}(?:hh?|ll?|z)?[diufgxXsc@](?:px|ms|s|x|[kKMGT]?B)?"
_NEVER = "(?!)"
"""A pattern that matches nothing."""
_DIGITS = rf"""
      (?<!{LETTER})(?<!:)(?=[a-fA-F:]{{0,32}}\d)(?:[0-9a-fA-F]{{0,4}}:){{2,7}}[0-9a-fA-F]{{1,4}}  # IPv6 addresses
      (?!{LETTER}|:|[.,]\d)
    | (?<!{LETTER})(?<![+-])(?<!\d[.,:/])
    (?: \+?\d{{1,4}}(?P<sign>[.:/-])\d{{1,4}}(?:(?P=sign)\d{{1,4}})+  # dates, addresses, telephone numbers
      | (?:\+\d{{1,3}}[ \u00a0-]?)?\(\d{{2,5}}\)[ \u00a0-]?\d{{2,4}}(?:[ \u00a0-]\d{{2,4}})+
      | \d{{3}}-\d{{4}} | 0\d{{1,4}}\(\d{{1,4}}\)\d{{3,4}}
      | 0(?:\d{{1,4}})?(?:[ \u00a0]\d{{2,8}}){{2,6}}                         # telephone numbers
      | \+\d{{1,3}}(?:[ \u00a0]\d{{1,8}}){{2,6}}
      | \+\d{{1,3}}[ \u00a0]\d{{1,4}}(?:[ \u00a0-]\d{{2,4}}){{2,4}}
      | 97[89](?:[ \u00a0-]\d{{1,7}}){{4}}                             # ISBN
      | [0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}       # UUID
      | 0x[0-9a-fA-F]{{2,}} | (?=[a-f]{{0,40}}\d)[0-9a-f]{{12,}}          # hashes
      | (?=\d*(?P<digit>\d)(?P=digit))[1-9]\d{{3}}               # years like 1990, of which models lose a digit
      | (?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{{4,}}(?:-[A-Z0-9]+)*     # codes
    )(?!{LETTER}|[/-]|[.,:]\d)
    | (?<!{LETTER})[vV]\d{{1,4}}(?:\.\d{{1,4}})+(?:-[a-z]+(?:\.?\d{{1,4}})?)?(?!{LETTER})  # versions
    | (?<!{LETTER})(?<!\d[.,:\u0020\u00a0\u202f])                      # numbers in any language's notation
      (?:\d{{1,3}}(?P<group>[.,\u0020\u00a0\u202f])\d{{3}}(?:(?P=group)\d{{3}})+
        | \d{{2,3}}[.,\u0020\u00a0\u202f]\d{{3}})
      (?:[.,]\d+)?(?!{LETTER}|[.,\u0020\u00a0]\d)
    | (?<!{LETTER})(?:tel:|\#)?\+?\d{{5,}}(?:-[A-Z0-9]+)*(?!{LETTER})"""
_PLACEHOLDER = re.compile(
    rf"""
      (?P<angle><)?(?:
        (?:(?i:https?|(?<![a-z0-9])(?:ftp|sftp|ssh|git|file|wss?))://|(?<!{LETTER})www\.){_BODY}+{_END}
      | (?:mailto:)?(?<!{LETTER})(?<![.%+-])(?:{LETTER}|[.%+-])+@(?:{LETTER}|-)+(?:\.(?:{LETTER}|-)+)+
      | (?<![A-Za-z0-9_.@-])(?:[A-Za-z0-9-]+\.)+(?:com|org|net|edu|gov|info|io|dev|jp)(?![A-Za-z0-9_-])
        (?::\d{{1,5}})?(?:[/?\#]{_BODY}*{_END})?
      )(?(angle)>)
    | (?<!{LETTER})localhost(?::\d{{1,5}}(?:[/?\#]{_BODY}*{_END})?|/{_BODY}*{_END})
    | \{{%[^{{}}\n]{{1,80}}%\}} | (?<!{LETTER})__[A-Z][A-Z0-9_]{{0,80}}__(?!{LETTER})
    | (?<!{LETTER})(?<!\$)\$[A-Za-z_]{LETTER}{{0,80}}
    | [$%]?\{{\{{[^{{}}\n]{{1,80}}\}}\}}
    | [$%#]?\{{[\w.:!\[\]-]{{0,80}}(?:,\s?[\w.:/#-]{{1,80}}){{0,2}}\}}
    | %\([^\s()]{{1,80}}\){_FLAGS}[diufgxXsc]
    | (?<!{LETTER})(?<!`)```(?:[^`]|`(?!``))+```(?!`)
    | (?<!{LETTER})(?<!`)(?P<ticks>`{{1,3}})(?!`)(?:(?!(?P=ticks))[^\n])+
        (?:(?P=ticks)(?!{LETTER})|(?<=[^\s(])(?P=ticks))(?!`)
    | [{CURRENCIES}][ \u00a0\u202f]?\d(?:[\d.,]{{0,30}}\d)?
    | (?<!{LETTER})(?<![.,:/-])\d(?:[\d.,\u00a0\u202f]{{0,30}}\d)?[ \u00a0\u202f]?(?!\$[\w{{])[{CURRENCIES}]
    | [§№±]{{1,2}}[ \u00a0\u202f]?\d{{1,20}}(?:[.,]\d{{1,20}})?(?:[ \u00a0\u202f]?°)?
    | (?<!{LETTER})(?<![.,])\d{{1,20}}(?:[.,]\d{{1,20}})?[ \u00a0\u202f]?°(?![ \u00a0\u202f]?[CF]\b) | \d{{0,20}}[¼½¾]
    | (?<!{LETTER})(?<![.,])(?:\d(?:[\d.,\u00a0\u202f]{{0,30}}\d)?[ \u00a0\u202f]?)?[kcdm]?m[²³](?!{LETTER})  # no mile
    | (?<![○◯△□])[○◯△□]{{2,3}}(?=[{JAPANESE}])                     # somebody or something in Japanese
    | [\u2070-\u209c]+ | \[\[[^\[\]\n]{{1,80}}\]\] | (?<=\w)\^(?=\w)
    | (?<!{LETTER})[A-Za-z]:\\[^\s<>"|*?\u3000-\u309f]+{_END}
    | (?<!{LETTER})(?<![.,:/+-]){RUSSIAN_TELEPHONE}(?!{LETTER}|[/-])
    | {_DIGITS}
    | (?<!{LETTER})(?<!%)(?:{_PRINTF})(?:{_PRINTF}|%%)*(?!{LETTER})  # "100%s" and "50 %discount" are prose
    """,
    re.VERBOSE,
)
_SUSPECT = re.compile(rf"[\d²³○◯△□@{{%$`_/^\\{CURRENCIES}¼½¾\u2070-\u209c]|\[\[|\.\S|[a-fA-F]{{8}}-")
"""What every placeholder has one of: most texts have none, and are not searched, which takes long."""
WORDS_ALONE = re.compile(r"(?:[A-Za-zÀ-ÖØ-öø-ÿ ,;:!?'’\"()\n\t]|\.(?!\S)|(?<![\w:])[0-9]{1,3}(?![\w:]|\W*\d))*")
"""A text that has nothing to replace, in any language, and need not be searched at all. It may have small numbers."""
_YEAR = re.compile(r"\d{4}|\d{4}([./-])\d{1,2}\1\d{1,2}|\d{1,2}([./-])\d{1,2}\2(?:\d{2}|\d{4})")
"""Or a date: both stand after the same words."""
_NUMBER = re.compile(
    rf"[{CURRENCIES}]\W?\d|[§№±]|[\d.,]*[¼½¾°]|\d.*[{CURRENCIES}]$|\#?\d{{5,}}$|\d{{1,3}}(?:[.,\s]\d{{3}})+(?:[.,]\d+)?$|%(?:\(.*\)|\d+\$)?{_FLAGS}[hlz]*[diufgxX]|[$%#]?\{{+\s*(?:\d*|n|\w*(?:count|num|total|amount)\w*)\s*[,}}]",
    re.IGNORECASE,
)
_PERSON = re.compile(
    rf"[○◯△□]|<?(?:mailto:)?[A-Za-z0-9._%+-]+@|%(?:\(.*\)|\d+\$)?{_FLAGS}[sc@]|[$%#]?\{{|\$[A-Za-z_]|__"
)
_LETTER_BEFORE = re.compile(LETTER)
_WORD = re.compile(rf"{LETTER}+(?!\uFE0F?\u20E3)")  # the digit of a keycap is part of a symbol
_SYMBOL = (
    r"(?:[\U0001F1E6-\U0001F1FF]{2}|[0-9#*]\uFE0F?\u20E3"
    r"|[®™©•∞\u2190-\u21FF\u2300-\u23FF\u25A0-\u27BF\u2900-\u297F\u2B00-\u2BFF\U0001F000-\U0001FAFF]"
    r"[\uFE0F\u200D\u2640\u2642\U0001F3FB-\U0001F3FF\U000E0020-\U000E007F]*)"
)
_SYMBOLS = re.compile(rf" ?{_SYMBOL}(?: ?{_SYMBOL})*")
"""Runs of emoji, arrows and the like, which models have hardly seen: to them they are shown as nothing."""
_JOINT = re.compile(r"[!-/:-@\[-`{-~]{1,3}")
"""What makes one of two placeholders: "{a}/{b}", "%d x %d" is two."""


@dataclass(frozen=True)
class Placeholder:
    """A span of the original text, and its stand-in with its place in the protected text; "" for a symbol."""

    span: Span
    stand_in: str
    place: Span
    taken_out: Span
    """All of the original that the stand-in is in place of: of a symbol, the space beside it too."""


@dataclass(frozen=True)
class Protected:
    """A text with stand-ins in place of its placeholders."""

    original: str
    text: str
    placeholders: tuple[Placeholder, ...]
    edits: Edits
    """From the original to the protected text."""

    @property
    def translatable(self) -> bool:
        """Whether there is anything but placeholders, numbers and punctuation; without placeholders, always."""
        rest, position = [], 0
        for placeholder in self.placeholders:
            rest.append(self.original[position : placeholder.span.start])
            position = placeholder.span.end
        return not self.placeholders or any(map(str.isalpha, "".join([*rest, self.original[position:]])))


def protect(
    text: str, keep: Iterable[Span] = (), numbers: Iterable[Span] = (), in_words: Iterable[tuple[Span, str]] = ()
) -> Protected:
    """Replace placeholders by stand-ins, and what else is to be kept, which may be numbers; signs by words for them."""
    placed = found(text, keep, numbers)
    stand_ins = _stand_ins(text) if placed else {}
    replaced = [(span, next(stand_ins[kind])) for span, kind in placed]
    taken = [span for span, _ in replaced]
    replaced += [(span, "") for span in _symbols(text) if _is_free(taken, span)]
    replaced.sort(key=lambda item: item[0].pair)
    taken = [span for span, _ in replaced]
    shown_in_words = [item for item in in_words if _is_free(taken, item[0])]
    in_words_already = [span for span, _ in shown_in_words]
    respelled = [item for item in respellings(text) if _is_free(taken, item[0]) and _is_free(in_words_already, item[0])]
    shown = [(span, word or " " * _is_between_words(text, span)) for span, word in replaced]
    protected, edits = edited(text, sorted(shown + shown_in_words + respelled, key=lambda item: item[0].pair))
    places = dict(zip(edits.old, edits.new, strict=True))
    placeholders = tuple(
        Placeholder(span if word else _symbol_in(text, span), word, places[span], span) for span, word in replaced
    )
    return Protected(text, protected, placeholders, edits)


def _is_free(taken: Sequence[Span], span: Span) -> bool:
    """Whether a span overlaps none of those taken, which are in order."""
    return len(set(overlapping(taken, span))) == 1


def _symbols(text: str) -> Iterator[Span]:
    """Emoji and the like, each run with the space before it, or after it at the start of a line.

    The space before it stays where it is the only one between two words.
    """
    for match in () if text.isascii() else _SYMBOLS.finditer(text):
        start, end = match.span()
        start += text[start] == " " and text[end : end + 1].isalnum()
        yield Span(start, end + (starts_line(text, start) and text[end : end + 1] == " "))


def _is_between_words(text: str, span: Span) -> bool:
    return text[max(0, span.start - 1) : span.start].isalnum() and text[span.end : span.end + 1].isalnum()


def starts_line(text: str, position: int) -> bool:
    """Whether there is nothing but spaces before a position in its line."""
    return not text[text.rfind("\n", 0, position) + 1 : position].strip(" ")


def _symbol_in(text: str, span: Span) -> Span:
    whole = span.of(text)
    return Span(span.start + len(whole) - len(whole.lstrip(" ")), span.end - len(whole) + len(whole.rstrip(" ")))


def found(text: str, keep: Iterable[Span] = (), numbers: Iterable[Span] = ()) -> list[tuple[Span, StandInKind]]:
    """The placeholders of a text, in order. What touches them is part of them: a letter, or "+" and another."""
    text = half_width(text)
    matches = _PLACEHOLDER.finditer(text) if _SUSPECT.search(text) else ()
    spans = [(Span(*match.span()), _kind(match.group())) for match in matches if not _is_mark(text, *match.span())]
    kept: list[tuple[Span, StandInKind]] = [
        *((span, "place") for span in keep),
        *((span, "number") for span in numbers),
    ]
    merged: list[tuple[Span, StandInKind]] = []
    for span, kind in sorted(spans + kept, key=lambda item: (item[0].start, -item[0].end)):
        start, end = span.pair
        floor = merged[-1][0].end if merged else 0
        if end <= floor:  # letters that touch the one before are looked at once
            continue
        while start > floor and _LETTER_BEFORE.match(text, start - 1):
            start -= 1
        if (letters := _WORD.match(text, end)) is not None:
            end = letters.end()
        if merged and (start <= floor or _JOINT.fullmatch(text, floor, start)):
            start, kind = merged[-1][0].start, merged[-1][1]
            end = max(end, merged.pop()[0].end)
        merged.append((Span(start, end), kind))
    return merged


def _is_mark(text: str, start: int, end: int) -> bool:
    """Whether it stands before an entry of a list, "1.2.3 Overview", and so outside the sentence."""
    mark = MARK.match(text, start) if text[start - 1 : start] in ("", "\n") else None
    return mark is not None and mark.end() >= end


def is_letter(character: str) -> bool:
    """Or a digit, of a script that puts spaces between words."""
    return _LETTER_BEFORE.match(character) is not None


def _kind(placeholder: str) -> StandInKind:
    if _YEAR.fullmatch(placeholder):
        return "year"
    return "number" if _NUMBER.match(placeholder) else "person" if _PERSON.match(placeholder) else "place"


def _stand_ins(text: str) -> dict[StandInKind, Iterator[str]]:
    """Those that are no words of the text, over and over: where one comes again, it is in another sentence."""
    lowered = half_width(text).casefold()
    words = {*_WORD.findall(lowered), *re.findall(r"\d+", lowered)}
    words |= {word.casefold() for word in named_in_other_letters(text)}
    unheard_of = "X" + "x" * max(map(len, re.findall("x+", lowered)), default=0)
    return {
        kind: cycle([word for word in stand_ins if word.casefold() not in words] or [unheard_of])
        for kind, stand_ins in STAND_INS.items()
    }


def stand_ins_in(translated: str, protected: Protected) -> list[tuple[Span, str]]:
    """Where the stand-ins of a text are in its translation, in order, however its language writes them."""
    stand_ins = sorted({one.stand_in for one in protected.placeholders} - {""})
    pattern = re.compile("|".join(f"({written(stand_in)})" for stand_in in stand_ins) or _NEVER)
    return [(Span(*match.span()), stand_ins[(match.lastindex or 1) - 1]) for match in pattern.finditer(translated)]
