"""XLIFF 1.2 and 2 (.xlf, .xliff): each source, or each segment of it, is a text; its translation becomes its target.

Inline codes go where their words went. Notes, earlier proposals and everything else stay unchanged.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions, Rewriting
from service.documents.localization.splicing import Splice, fixed, rewrite_spliced
from service.documents.localization.xliff_content import XliffContent
from service.documents.localization.xml_elements import XmlElement, read_xml, with_attributes
from service.documents.wrapping import visible_text
from service.text.languages import are_same, canonical
from service.text.spans import Span, replace_spans

UNITS = {"trans-unit", "segment"}
"""The elements around source and target, of version 1 and version 2."""
SOURCE_LANGUAGE, TARGET_LANGUAGE = ("source-language", "srcLang"), ("target-language", "trgLang")
LANGUAGES = SOURCE_LANGUAGE, TARGET_LANGUAGE
UNTRANSLATED = {"new", "needs-translation", "initial"}
"""States of a target that holds no translation, such as a copy of the source."""
APPROVED = {"final", "signed-off", "reviewed"}
"""States of a target that a person has approved."""


@dataclass(frozen=True)
class _Unit:
    """A source and its target.

    Attributes:
        holder: the trans-unit or segment.
        written: the element whose content becomes the content of the target: the source, or the source in segments.
        contents: the translated contents, and their places in the file.
    """

    holder: XmlElement
    target: XmlElement | None
    written: XmlElement
    contents: list[tuple[Span, XliffContent]]


def rewrite(data: bytes, options: ReadOptions) -> Rewriting:
    """Rewrite an XLIFF file. Raises InvalidDocument: it is damaged, or no XLIFF. TooLarge: it has too many tags."""
    text, encoding, root = read_xml(data)
    if root.name != "xliff":
        raise InvalidDocument(f"The file is no XLIFF: its first element is {root.tag[:40]}")
    target = canonical(options.target or "") or options.target or ""
    units = (splice for unit in _units(text, root, options) for splice in _unit_splices(text, unit, target, options))
    languages = [element.attributes.get(name) for element in [root, *root.children] for name in SOURCE_LANGUAGE]
    source = next(filter(None, languages), None)
    return rewrite_spliced(data, text, encoding, [*_language_splices(text, root, target), *units], "html", source)


def translated_texts(data: bytes) -> Iterator[tuple[tuple[str, str], str, str]]:
    """Yield both languages of each unit with a target ("" if the file does not tell), its text and the target's. Raises
    InvalidDocument: the file is damaged, or no XLIFF. TooLarge: the file has too many tags."""
    text, _, root = read_xml(data)
    if root.name != "xliff":
        raise InvalidDocument(f"The file is no XLIFF: its first element is {root.tag[:40]}")
    for holder in root.all():
        parts = holder.child("source"), holder.child("target")
        if holder.name in UNITS and all(parts):
            source, target = (visible_text(XliffContent(one.content.of(text), False, {}).html) for one in parts if one)
            languages = [next(filter(None, map(holder.inherited, names)), "") for names in LANGUAGES]
            if target.strip():
                yield (languages[0], languages[1]), source, target


def _units(text: str, root: XmlElement, options: ReadOptions) -> Iterator[_Unit]:
    codes: dict[XmlElement | None, dict[str, str]] = {}
    for holder in root.all():
        source, target = holder.child("source"), holder.child("target")
        if holder.name not in UNITS or source is None or holder.inherited("translate") == "no":
            continue
        if _stays(text, holder, target, options):
            continue
        segmented = holder.child("seg-source") or source
        segments = [element for element in segmented.all() if element.attributes.get("mtype") == "seg"] or [segmented]
        if holder.parent not in codes:
            codes[holder.parent] = _original_codes(text, holder.parent)
        keeps_space, codes_of_unit = source.inherited("xml:space") == "preserve", codes[holder.parent]
        spans = [segment.content for segment in segments]
        read = [(span, XliffContent(span.of(text), keeps_space, codes_of_unit)) for span in spans]
        contents = [(span, content) for span, content in read if content.has_words]
        if contents or (target is None and source.content.of(text).strip()):  # codes alone are copied
            yield _Unit(holder, target, segmented, contents)


def _stays(text: str, holder: XmlElement, target: XmlElement | None, options: ReadOptions) -> bool:
    language = next(filter(None, map(holder.inherited, TARGET_LANGUAGE)), None)
    if target is None or (language and options.target and not are_same(language, options.target)):
        return False
    state = holder.attributes.get("state") or target.attributes.get("state")
    if holder.attributes.get("approved") == "yes" or state in APPROVED:
        return True
    return options.only_missing and bool(target.content.of(text).strip()) and state not in UNTRANSLATED


def _original_codes(text: str, unit: XmlElement | None) -> dict[str, str]:
    data = unit.child("originalData") if unit is not None else None
    return {code.attributes.get("id", ""): unescape(code.content.of(text)) for code in data.children} if data else {}


def _unit_splices(text: str, unit: _Unit, language: str, options: ReadOptions) -> Iterator[Splice]:
    holder, target, written = unit.holder, unit.target, unit.written
    is_first_version = holder.name == "trans-unit"
    texts = [content.html for _, content in unit.contents]
    is_unsure = options.is_unsure(texts)
    attributes: dict[str, str | None] = {}
    if is_first_version:
        state = "needs-review-translation" if is_unsure else "translated"
        attributes |= {"state": state, "state-qualifier": None}
    if target is not None and "xml:lang" in target.attributes:
        attributes["xml:lang"] = language
    tag = target.tag if target else written.tag.removesuffix(written.name) + "target"
    start_tag = target.start_tag.of(text).replace("/>", ">") if target else f"<{tag}>"
    start_tag = with_attributes(start_tag, attributes)
    before = "" if target else _indentation(text, written.start_tag.start)

    def write(translations: Sequence[str]) -> str:
        pairs = zip(unit.contents, translations, strict=True)
        start = written.content.start
        new = [(span.moved(-start), content.translated(translation)) for (span, content), translation in pairs]
        return f"{before}{start_tag}{replace_spans(written.content.of(text), new)[0]}</{tag}>"

    yield Splice(target.span if target else Span(written.end, written.end), texts, write)
    if not is_first_version:
        state = "initial" if is_unsure and options.fuzzy_below is not None else "translated"
        yield _with_attributes(text, holder, {"state": state, "subState": None})
    elif holder.attributes.get("approved") == "yes":
        yield _with_attributes(text, holder, {"approved": "no"})


def _with_attributes(text: str, element: XmlElement, values: Mapping[str, str | None]) -> Splice:
    return fixed(element.start_tag, with_attributes(element.start_tag.of(text), values))


def _indentation(text: str, position: int) -> str:
    start = position
    while start > 0 and text[start - 1] in " \t":
        start -= 1
    if text[start - 1 : start] != "\n":
        return ""
    return text[start - (2 if text[start - 2 : start] == "\r\n" else 1) : position]


def _language_splices(text: str, root: XmlElement, target: str) -> Iterator[Splice]:
    is_second_version = "srcLang" in root.attributes
    name = TARGET_LANGUAGE[is_second_version]
    for element in [root] if is_second_version else [child for child in root.children if child.name == "file"]:
        before = element.attributes.get(name, "")
        if not before or not are_same(before, target):
            yield _with_attributes(text, element, {name: target})
