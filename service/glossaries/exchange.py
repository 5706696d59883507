"""Read the terms of two languages from TBX (ISO 30042, of 2008 and of 2019) and from TMX 1.4."""

import codecs
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice

import webencodings
from lxml import etree

from service.base.errors import InvalidGlossary
from service.text.languages import are_same, canonical

CONCEPTS = {"martif": "{*}text/{*}body/*", "tbx": "{*}text/{*}body/*", "tmx": "{*}body/*"}
"""The paths to the concepts from the root of a file, by its name. Fixed paths take linear time in any file."""
CODES = {"bpt", "ept", "ph", "it", "ut"}
"""Elements of TMX with tags of the file that was translated, which are not text."""
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
STATUS = "administrativeStatus"
"""In TBX, marks the preferred one of several terms, and terms that should not be used any longer."""
MAX_NOTES = 100
"""Maximum number of elements beside a term that are searched for its status."""
MAX_TAGS = 1_000_000
"""The limit of tags in a file: each takes some 100 bytes of memory."""
_DECLARED = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)""")
Row = tuple[int, list[str]]
"""The number of a line, and a term and its translation."""


def read_rows(data: bytes, source: str, target: str) -> list[Row]:
    """Return the terms of a file in the source language, each with its preferred translation into the target language.

    A language matches its regions, as en does en-US. All terms of the source language are returned. A translation has
    the wanted region, if the concept has one. Where two concepts have the same term, the first concept counts.

    Raises:
        InvalidGlossary: the file is neither TBX nor TMX, or has no terms in both languages.
    """
    root = _parse(data)
    if _name(root) not in CONCEPTS:
        raise InvalidGlossary(f"The file must be TBX or TMX, not {_name(root)}")
    rows: dict[str, Row] = {}
    languages = set[str]()
    for concept in root.iterfind(CONCEPTS[_name(root)]):
        named = ((section.get(LANGUAGE) or section.get("lang"), section) for section in concept)
        sections = [(language, section) for language, section in named if language]
        languages.update(language for language, _ in sections)
        translations = [term for _, term in sorted(_terms(sections, target), key=_order)]
        for _, term in _terms(sections, source) if translations else ():
            text = _text(term)
            rows.setdefault(text, (int(term.sourceline or 0), [text, _text(translations[0])]))
    if not rows:
        available = ", ".join(sorted(languages)) or "none"
        raise InvalidGlossary(f"The file has no terms in both {source} and {target}; available: {available}")
    return [*rows.values()]


def _parse(data: bytes) -> etree._Element:
    """Parse a file. A document type is allowed, as both formats have one, but is not loaded and defines no entities."""
    data = _utf_8(data)
    if b"<!ENTITY" in data:
        raise InvalidGlossary("The file must not define entities")
    if (n_tags := data.count(b"<")) > MAX_TAGS:
        raise InvalidGlossary(f"The file has {n_tags} tags; the limit is {MAX_TAGS}")
    parser = etree.XMLParser(
        encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise InvalidGlossary(f"The file is not XML: {error.msg}") from None
    if (entity := next(root.iter(etree.Entity), None)) is not None:
        raise InvalidGlossary(f"The file has the unknown entity {entity.text} in line {entity.sourceline}")
    return root


def _utf_8(data: bytes) -> bytes:
    """Return a file in UTF-8. Raises InvalidGlossary: the file is not in its own encoding."""
    declared = _DECLARED.match(data)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        name = "utf-16"
    elif declared is None or data.startswith(codecs.BOM_UTF8):
        return data
    elif (encoding := webencodings.lookup(declared[1].decode())) is not None:
        name = encoding.codec_info.name
    else:
        raise InvalidGlossary(f"The file has the unknown encoding {declared[1].decode()}")
    try:
        return data.decode(name).encode()
    except (UnicodeError, LookupError):  # Python cannot read some encodings that the web knows
        raise InvalidGlossary(f"The file is not in its encoding, {name}") from None


def _name(element: etree._Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _terms(sections: Iterable[tuple[str, etree._Element]], language: str) -> Iterator[tuple[bool, etree._Element]]:
    """Yield the terms of a concept in a language, and whether they are of another region. These come last."""
    for is_other in (False, True):
        for section in (section for code, section in sections if _is_other_region(code, language) is is_other):
            yield from ((is_other, term) for part in section for term in _terms_in(part))


def _terms_in(part: etree._Element) -> Iterator[etree._Element]:
    """Yield the terms of a part of a language: seg, tig/term, termSec/term, ntig/termGrp/term."""
    if _name(part) == "seg":
        yield part
    for inner in part:
        if _name(inner) == "term":
            yield inner
        yield from (term for term in inner if _name(inner) == "termGrp" and _name(term) == "term")


@lru_cache(maxsize=10_000)
def _is_other_region(code: str, language: str) -> bool | None:
    return canonical(code) != canonical(language) if are_same(code, language) else None


def _order(translation: tuple[bool, etree._Element]) -> tuple[bool, bool, bool]:
    """Order translations: preferred terms first, then other regions, and last terms that should not be used."""
    is_other, term = translation
    parent = term.getparent()
    beside = islice(parent.iter(), MAX_NOTES) if parent is not None and _name(term) == "term" else ()
    status = next((note.text or "" for note in beside if STATUS in (note.get("type"), _name(note))), "")
    return status.startswith(("deprecated", "superseded")), is_other, not status.startswith("preferred")


def _text(element: etree._Element) -> str:
    if not len(element):
        return " ".join((element.text or "").split())
    skipped = {inner for code in element.iterdescendants() if _name(code) in CODES for inner in code.iter()}
    texts = [element.text or ""]
    for inner in element.iterdescendants():
        texts.append("" if inner in skipped else inner.text or "")
        texts.append("" if inner.getparent() in skipped else inner.tail or "")
    return " ".join("".join(texts).split())
