"""Texts: sentences, what is kept in them, numbers that are compared, languages; and the files of glossaries.

An input is a line with a reader and two languages, and the text or the file.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

from service.base.errors import InvalidGlossary, LimitExceeded
from service.glossaries.entries import format_tsv, parse_tsv, read_file
from service.glossaries.terms import Terms
from service.kept.carried_spans import carried_spans
from service.kept.kept_spans import kept_spans
from service.kept.restoration import keep_original
from service.numbers.comparison import compare
from service.text.identification import identify
from service.text.sentences import cells, ends_of, sentence_spans
from tests.fuzz.mutation import mutate_xml
from tests.fuzz.structures import nested, repeated
from tests.fuzz.target import Target
from tests.service.glossaries import test_exchange
from tests.service.stand_ins import protect

LANGUAGES = ("en", "fr", "ru", "ja", "de", "zh", "ar", "und")
MAX_TEXT = 50_000
"""Characters of the longest text; a longer one is refused. A request may have several."""
MAX_SENTENCE = 1_000
"""Characters of a sentence that is compared with its translation: models read no longer ones."""
GLOSSARY = {"dog": "chien", "red dog": "chien rouge", "Go": "Aller", "C++": "C++", "犬": "chien"}
MAX_SETTINGS = 40


def _sentences(text: str, language: str, _: str) -> Iterator[str]:
    spans = sentence_spans(text, language)
    yield "found sentences"
    assert all(before.end <= after.start for before, after in pairwise(spans)), "sentences overlap"
    assert all(span.start < span.end for span in spans), "a sentence is empty"
    found = [*cells(text)]
    yield "found cells"
    assert all(0 <= end <= len(text) for end in ends_of(text, language))
    assert found or not text.strip()
    yield "found ends"


def _kept(text: str, language: str, _: str) -> Iterator[str]:
    kept_spans(text, language=language)
    yield "found what is kept"
    assert keep_original(protect(text)).text == text, "a text changes without a translation"
    yield "stand-in protected"


def _compared(text: str, source: str, target: str) -> Iterator[str]:
    for start in range(0, len(text), MAX_SENTENCE):
        before = text[start : start + MAX_SENTENCE]
        after = " ".join(before.upper().split(" ")[::-1])
        same = compare(before, before, source, source)
        assert not same.lost, "a sentence has lost what it has"
        [*carried_spans(before, compare(before, after, source, target), source, target)]
    yield "compared"


def _terms(text: str, *_: str) -> Iterator[str]:
    Terms(["Go", "New York", "a"], [r"[A-Z]+-\d+", "x*y"], GLOSSARY).find(text)
    yield "found terms"


def _language(text: str, *_: str) -> Iterator[str]:
    identify(text, LANGUAGES)
    yield "identified"


def _file(ending: str) -> Callable[[str, str, str], Iterator[str]]:
    def read(text: str, source: str, target: str) -> Iterator[str]:
        entries = read_file(f"a.{ending}", text.encode("latin-1"), source, target)
        yield "read"
        assert parse_tsv(format_tsv(entries)) == entries, "entries change when they are written"
        yield "written"
        Terms([], [], entries).find("a red dog " * 5)
        yield "found terms"

    return read


READERS: dict[str, Callable[[str, str, str], Iterator[str]]] = {
    "sentences": _sentences,
    "kept": _kept,
    "compared": _compared,
    "terms": _terms,
    "language": _language,
}
FILES = {ending: _file(ending) for ending in ("csv", "tsv", "tbx", "tmx")}


def read(data: bytes) -> Iterator[str]:
    settings, _, content = data.partition(b"\n")
    name, *languages = settings[:MAX_SETTINGS].decode(errors="replace").split() or ["kept"]
    source, target = [one if one in LANGUAGES else "en" for one in [*languages, "en", "fr"]][:2]
    if name in FILES:
        yield from FILES[name](content.decode("latin-1"), source, target)
        return
    text = content.decode(errors="replace")
    for start in range(0, len(text), MAX_TEXT):
        yield from READERS.get(name, _kept)(text[start : start + MAX_TEXT], source, target)


SENTENCES = "Mr. Smith paid $1,234.50 on Jan. 3rd, 2024 (e.g. by card). Really?! Yes.\n- One\n2) Two\tcell | cell\n「犬が走る。」猫。"
KEPT = (
    "Hi {name}, see https://a.b/c_d?e=1 or mail a@b.co: %1$s %(x)s <b>x</b> `code` {{ t }} $VAR @user #tag ${x} v1.2.3 "
    "{n, plural, one {# dog} other {# dogs}} 12:30 &File _Edit C:\\a\\b /usr/bin --help 50 % 😀 A&B 1,234.5 itemCount"
)
NUMBERS = "It costs 1.234,50 €, 12 million on 3/4/2024 at 5 p.m., -3 °C, 2nd of 10, ½ cup, 三千五百, 1e5, 12-15 km, +7 (495) 123-45-67."


def _seeds() -> list[bytes]:
    texts = {
        "sentences": [SENTENCES, SENTENCES.replace(". ", ".\u00a0")],
        "kept": [KEPT, SENTENCES],
        "compared": [NUMBERS, KEPT],
        "terms": ["The Red dogs go to Go, C++ and New York; ABC-12 犬"],
        "language": ["le chien rouge", "犬"],
    }
    found = [
        f"{name} {one} fr\n{text}".encode()
        for name, all_of in texts.items()
        for text in all_of
        for one in ("en", "ru", "ja")
    ]
    files = {
        "csv": b'dog,chien\n"a, b","c ""d""",x,\n',
        "tsv": "\ufeffdog\tchien\r\nred dog\tchien rouge\n".encode("utf-16"),
        "tbx": _bytes(test_exchange.TBX),
        "tmx": _bytes(test_exchange.TMX),
    }
    return found + [f"{name} en fr\n".encode() + content for name, content in files.items()]


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


PIECES = (
    "a", "a ", "A", "A ", "a.", "a. ", "A. ", ".", ". ", "!", "?! ", "...", "\n", "\t", " ", "a\n", "- ", "- a\n", "1. ", "1. a\n", "a) ", "(a) ",
    "i. ", "|", " | ", "> ", "a > ", "\"", "'", "“", "(", ")", "[", "]", "{", "}", "{a}", "{{", "{n, plural, ", "{a, select, other {", "'{", "%", "%s ",
    "%1$s", "%(a)s", "%(", "$", "$a", "${", "@", "@a", "a@b.c ", "a@", "#", "#a", "&", "&a", "&amp;", "_", "_a", "__a__", "<", "<a", "<a>", "</", "http",
    "http://", "http://a.b/", "www.", "://", "/", "/a", "a/", "\\", "\\a", "C:\\", "~/", "--", "--a", "-", "a-", "-a", "=", "a=b&", ":", "a:", ":a:", "::",
    "1", "1 ", "1,", "1.", "1,000", "1.000,", "1/", "1:", "1-", "-1 ", "+1 ", "1%", "1 % ", "$1", "1 $", "€1,000.50 ", "1st ", "½", "1e5", "１", "١", "一",
    "三千", "万", "十", "12 million ", "1 km ", "Jan 3 ", "3/4/2024 ", "5 p.m. ", "itemCount", "item_count ", "v1.2.", "A1", "ABC-1 ", "😀", "👨\u200d", "\u200d", "\ufe0f",
    "é", "e\u0301", "\u0301", "犬", "犬。", "「", "ー", "ア", "한", "ا", "\u00a0", "\u2028", "\u200b", "\ufffc", "\ue000", "\x00", "Mr. ", "z. B. ", "e.g. ", "U.S. ",
    "`", "`a`", "```", "*", "**a**", "~~", "^", "^a", "|a|", "<%", "{% ", "{%", "[[", "]]", "[a](", "((", "a()", "a.b.", "a::b", "->", "00:01 --> ",
)  # fmt: skip
GROWN = {
    **{f"{name} {piece!r}": repeated(f"{name} {language} fr\n", piece) for name, language in (("kept", "en"), ("sentences", "en"), ("sentences", "ja"), ("compared", "en"), ("terms", "en")) for piece in PIECES},
    "nested messages": nested("kept en fr\n", "{n, plural, other {", "a", "}}"),
    "nested braces": nested("kept en fr\n", "{", "a", "}"),
    "nested brackets": nested("sentences en fr\n", "(", "a.", ")"),
    "csv": repeated("csv en fr\n", "a§,b\n"),
    "csv quotes": repeated("csv en fr\n", '"'),
    "csv cells": repeated("csv en fr\n", "a,"),
    "csv open quotes": repeated("csv en fr\n", '"a\n'),
    "tsv": repeated("tsv en fr\n", "a§\tb\n"),
    "tsv blanks": repeated("tsv en fr\n", " \n"),
    "tmx": repeated("tmx en fr\n<tmx><body>", '<tu><tuv xml:lang="en"><seg>a§</seg></tuv><tuv xml:lang="fr"><seg>b</seg></tuv></tu>', "</body></tmx>"),
    "tmx of one concept": repeated("tmx en fr\n<tmx><body><tu>", '<tuv xml:lang="en"><seg>a§</seg></tuv><tuv xml:lang="fr"><seg>b</seg></tuv>', "</tu></body></tmx>"),
    "tmx codes": repeated('tmx en fr\n<tmx><body><tu><tuv xml:lang="fr"><seg>b</seg></tuv><tuv xml:lang="en"><seg>', "a<ph>b</ph>", "</seg></tuv></tu></body></tmx>"),
    "tmx nested codes": nested('tmx en fr\n<tmx><body><tu><tuv xml:lang="fr"><seg>b</seg></tuv><tuv xml:lang="en"><seg>a', "<ph>", "b", "</ph>", "</seg></tuv></tu></body></tmx>"),
    "tmx languages": repeated("tmx en fr\n<tmx><body><tu>", '<tuv xml:lang="a§"><seg>a</seg></tuv>', "</tu></body></tmx>"),
    "tbx terms": repeated('tbx en fr\n<tbx><text><body><a><b xml:lang="fr"><c><term>x</term></c></b><b xml:lang="en">', "<c><term>a§</term></c>", "</b></a></body></text></tbx>"),
    "tbx translations": repeated('tbx en fr\n<tbx><text><body><a><b xml:lang="en"><c><term>x</term></c></b><b xml:lang="fr">', "<c><term>a§</term></c>", "</b></a></body></text></tbx>"),
    "tbx notes": repeated('tbx en fr\n<tbx><text><body><a><b xml:lang="en"><c><term>x</term></c></b><b xml:lang="fr"><c><term>y</term>', "<d/>", "</c></b></a></body></text></tbx>"),
}  # fmt: skip

TARGET = Target(
    read=read,
    seeds=_seeds,
    allowed=(InvalidGlossary, LimitExceeded),
    mutate=mutate_xml,
    words=[piece.encode() for piece in PIECES if len(piece) > 1],
    grown=GROWN,
)
