"""Read stored translations from TMX 1.4, XLIFF, PO, CSV and TSV, and write them as TMX."""

import io
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import PurePath
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from service import __version__
from service.base.errors import InvalidDocument, InvalidMemory, LimitExceeded, TooLarge, UnsupportedFileType
from service.documents.archive import INVALID_XML
from service.documents.contents import ReadOptions
from service.documents.encodings import decode
from service.documents.localization.po_syntax import entries_of
from service.documents.localization.xliff import translated_texts
from service.documents.tables.table_cells import rows_of
from service.documents.tables.table_columns import find_columns
from service.memories.store import MAX_SEGMENTS, Memory, Segment
from service.text.languages import are_same, canonical

KINDS = (".csv", ".po", ".tmx", ".tsv", ".xlf", ".xliff")
TMX = "text/xml"
DOCTYPE = re.compile(r"<!DOCTYPE tmx (?:SYSTEM|PUBLIC \"[^\"]*\") [\"']tmx1[0-9]\.dtd[\"']>")
"""The document type that programs write, with TMX's own definition. It is not loaded; any other one is refused."""
CODES = ("{*}bpt", "{*}ept", "{*}it", "{*}ut", "{*}ph")
"""Elements with tags of the file that was translated, which are not text; but `ph` may have a placeholder."""
_PLACEHOLDER = re.compile(r"[%{$\[].*", re.DOTALL)
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_UNIT = re.compile(rb"<tu[\s>]")
TMX_END = "</body>\n</tmx>\n"


class MemoryFile:
    """A file with texts in two languages. Segments are read one by one.

    Attributes:
        progress: how much of the file has been read, 0 to 1.

    Raises:
        UnsupportedFileType: the ending of its name is that of no such file.
        LimitExceeded: the file has more segments than a memory.
    """

    def __init__(self, name: str, data: bytes, source: str, target: str) -> None:
        self._data, self._source, self._target = data, source, target
        self._ending = PurePath(name).suffix.lower()
        self.progress = 0.0
        if self._ending not in KINDS:
            ending = self._ending or "a file without an ending"
            raise UnsupportedFileType(f"`file` must be a memory, not {ending}; available: {', '.join(KINDS)}")
        n_units = sum(1 for _ in _UNIT.finditer(data)) if self._ending == ".tmx" else 0
        if n_units > MAX_SEGMENTS:
            raise LimitExceeded(f"The file has {n_units:,} segments; the limit is {MAX_SEGMENTS:,}")

    def segments(self) -> Iterator[Segment]:
        """Yield the texts that have a translation. Raises InvalidMemory: the file is damaged, or of other languages."""
        readers = {".tmx": self._of_tmx, ".po": self._of_po, ".csv": self._of_table, ".tsv": self._of_table}
        is_empty = True
        try:
            for segment in readers.get(self._ending, self._of_xliff)():
                is_empty = False
                yield segment
        except (InvalidDocument, TooLarge) as error:
            raise InvalidMemory(str(error)) from None
        if is_empty:
            raise InvalidMemory(f"The file has no texts in both {self._source} and {self._target}")

    def _of_tmx(self) -> Iterator[Segment]:
        for unit, progress in _units_of_tmx(self._data):
            yield from self._of_unit(unit)
            self.progress = progress

    def _of_unit(self, unit: etree._Element) -> Iterator[Segment]:
        """Read a unit of TMX. The region that the memory has comes before others."""
        found: list[tuple[int, etree._Element] | None] = [None, None]
        for variant in unit.iterchildren("{*}tuv"):
            for i, wanted in enumerate((self._source, self._target)):
                distance, best = _distance(_language_of(variant), wanted), found[i]
                if distance is not None and (best is None or distance < best[0]):
                    found[i] = distance, variant
        if found[0] and found[1]:
            target = found[1][1]
            author = (
                target.get("changeid") or target.get("creationid") or unit.get("changeid") or unit.get("creationid")
            )
            properties = unit.iterchildren("{*}prop")
            context = next((item.text for item in properties if item.get("type") == "x-context"), None)
            yield Segment(_text(found[0][1]), _text(target), context, author)

    def _of_xliff(self) -> Iterator[Segment]:
        for languages, source, target in translated_texts(self._data):
            for language, wanted in zip(languages, (self._source, self._target), strict=True):
                if language and not are_same(language, wanted):
                    raise InvalidMemory(f"The file is in {language}, not in {wanted}")
            yield Segment(source, target)

    def _of_po(self) -> Iterator[Segment]:
        text, encoding = decode(self._data)
        for entry in entries_of(text, encoding):
            self.progress = entry.start / len(text)
            if not entry.is_header and "fuzzy" not in entry.flag_names(text):
                context = entry.strings.get("msgctxt")
                pairs = zip(entry.messages, entry.translated, strict=False)
                yield from (Segment(source, target, context) for source, target in pairs if target)

    def _of_table(self) -> Iterator[Segment]:
        """Read the columns that the first line names by both languages, or else the first two columns."""
        text, _ = decode(self._data)
        rows, _ = rows_of(text, "\t" if self._ending == ".tsv" else None)
        options = ReadOptions(source=self._source, target=self._target)
        named = [c for c in find_columns(rows[:1], 0, options)[0] if c.source != c.target and c.name is None]
        source, target = (named[0].source, named[0].target) if named else (0, 1)
        for number, row in enumerate(rows[len(named) :], start=1 + len(named)):
            if len(row) > max(source, target):
                self.progress = row[0].start / len(text)
                yield Segment(row[source].text, row[target].text)
            elif any(cell.text for cell in row):
                raise InvalidMemory(f"Row {number} of the table must have a text and its translation")


def tmx_languages(data: bytes) -> tuple[str, str]:
    """Return source and target of a file of TMX. The source is that of its header, or else of its first text. Raises
    InvalidMemory: the file is damaged, or its texts are not in one other language."""
    codes: dict[str, None] = {}
    for unit, _ in _units_of_tmx(data):
        header = None if codes else unit.getroottree().find("{*}header")
        declared = "" if header is None else header.get("srclang", "")  # it may be *all*
        languages = [declared if canonical(declared) else "", *map(_language_of, unit.iterchildren("{*}tuv"))]
        codes |= dict.fromkeys(filter(None, languages))
    source, *others = codes or [""]
    targets = [code for code in others if not are_same(code, source)]
    if not targets:
        raise InvalidMemory("The file has no texts in two languages")
    for code in targets[1:]:
        if not are_same(code, targets[0]):
            raise InvalidMemory(f"The file translates into {targets[0]} and {code}; a memory has one target language")
    return source, targets[0]


def _units_of_tmx(data: bytes) -> Iterator[tuple[etree._Element, float]]:
    """Yield each unit, which is emptied afterwards, and how much of the file has been read. Raises InvalidMemory."""
    file, root = io.BytesIO(data), None
    options = {"resolve_entities": False, "no_network": True, "load_dtd": False, "remove_comments": True}
    try:
        for event, element in etree.iterparse(file, events=("start", "end"), tag=("{*}tmx", "{*}tu"), **options):
            if root is None:
                root = element.getroottree()
                _refuse_doctype(root.docinfo)
            if event == "end" and element.getparent() is not None:
                yield element, file.tell() / len(data)
                element.clear()
                while (before := element.getprevious()) is not None:
                    element.getparent().remove(before)
    except etree.XMLSyntaxError as error:
        raise InvalidMemory(f"The file is not XML: {error.msg}") from None
    if root is None:
        raise InvalidMemory("The file is XML, but no TMX")


def _language_of(variant: etree._Element) -> str:
    return variant.get(_LANGUAGE) or variant.get("lang") or ""


@lru_cache(maxsize=1_000)
def _distance(language: str, wanted: str) -> int | None:
    """Return 0 for the same language and region, 1 for another region, None for another language."""
    return int(canonical(language) != wanted) if language and are_same(language, wanted) else None


def _refuse_doctype(info: etree.DocInfo) -> None:
    """Raises InvalidMemory: the document type is not TMX's own, or defines something."""
    definitions = info.internalDTD
    defines = definitions is not None and any((*definitions.iterentities(), *definitions.iterelements()))
    if info.doctype and (defines or not DOCTYPE.fullmatch(info.doctype)):
        raise InvalidMemory("The file has a document type definition of its own, which no memory needs")


def _text(variant: etree._Element) -> str:
    element = next(variant.iterchildren("{*}seg"), None)
    if element is None:
        return ""
    if len(element):
        for code in element.iter("{*}ph"):
            if _PLACEHOLDER.match(code.text or ""):
                code.tag = "placeholder"
        etree.strip_elements(element, *CODES, with_tail=False)
        return "".join(element.itertext())
    return element.text or ""


def tmx_head(memory: Memory) -> str:
    """Return the beginning of a file of TMX, which `tmx_units` and TMX_END continue."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n'
        f'<header creationtool="attend" creationtoolversion="{__version__}" segtype="sentence" o-tmf="attend" '
        f'adminlang="en" srclang={quoteattr(memory.source)} datatype="plaintext"/>\n<body>\n'
    )


def tmx_units(memory: Memory, segments: Iterable[Segment]) -> str:
    return "".join(_unit(memory, segment) for segment in segments)


def _unit(memory: Memory, segment: Segment) -> str:
    changed = f' changedate="{segment.changed_at:%Y%m%dT%H%M%SZ}"' if segment.changed_at else ""
    author = f" changeid={quoteattr(_plain(segment.author))}" if segment.author else ""
    context = f'<prop type="x-context">{escape(_plain(segment.context))}</prop>' if segment.context else ""
    variants = (
        f"<tuv xml:lang={quoteattr(language)}{by}><seg>{escape(_plain(text))}</seg></tuv>"
        for language, text, by in (
            (memory.source, segment.source, ""),
            (memory.target, segment.target, changed + author),
        )
    )
    return f"<tu>{context}{''.join(variants)}</tu>\n"


def _plain(text: str) -> str:
    return INVALID_XML.sub("\N{REPLACEMENT CHARACTER}", text)
