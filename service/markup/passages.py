"""Documents and their passages: a passage is the text between two block-level tags, with its inline elements.

Block elements separate passages and stay unchanged, as do untranslated elements. Every start tag is written once and
unchanged, and inline tags stay balanced. A passage knows the source of each character of its text, so that untranslated
text stays byte for byte. A plain text is a document of passages only: the pieces in which it is translated.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

from service.kept.projection import Region, project
from service.kept.restoration import Restored
from service.markup.flanking import Tags, make_flanking
from service.text.scripts import is_unspaced
from service.text.spans import NO_EDITS, Edits, Replacement, Span, replace_spans

SPACE = " \t\n\r\f"
BLOCK = re.compile(
    r"(\d{1,9})[.)](?=\s|$)|(?:[-+*]|#{1,6})(?=\s|$)|>|:(?=::|\s)|~{3}|`{3}|<(?=[A-Za-z/!?])|\[(?:\\.|[^\[\]\\])+\]:"
)
"""A match at the start of a line begins a list, a heading, a quote, a container, code, HTML or a link definition."""


@dataclass(frozen=True)
class Notation:
    """How a format writes text."""

    escapes: Mapping[str, str]
    """The escapes of characters in a translation."""
    has_marks: bool = False
    """Whether emphasis is written with marks, which must be placed where they are read as marks."""
    begins_line: bool = False
    """Whether the passage stands at the start of a line, and so must not begin like a list."""
    escape: Callable[[list[str], Sequence[int]], None] | None = None
    """Escapes characters of a translation that would be read as marks. Arguments: the pieces of the passage, and the
    numbers of the pieces that are characters; all other pieces are tags."""


BEGINS_TAG = re.compile(r"[A-Za-z/!?]")
"""A character that makes "<" before it a tag."""
HTML = Notation({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True)
class Element:
    """An inline element, and the span of the passage's text inside it. An untranslated element without text (an image,
    a comment) has only a start tag."""

    span: Span
    start_tag: str
    end_tag: str
    parent: int | None
    """The number of the element around it."""
    is_image: bool = False
    """Whether it stands between words, as an image does."""
    end_tag_of_other: str = ""
    """The end tag if the text inside changes, where it is then a different one: [a] becomes [b][a]."""
    written: tuple[str, str] | None = None
    """Both tags in a translation, where white space may stand beside them."""

    @property
    def tags(self) -> tuple[str, str]:
        return self.written or (self.start_tag, self.end_tag)

    def moved(self, by: int, parent_by: int) -> "Element":
        """Return the element moved by a number of characters and of elements."""
        parent = None if self.parent is None else self.parent + parent_by
        return replace(self, span=self.span.moved(by), parent=parent)


@dataclass(frozen=True)
class Passage:
    """Text between two block-level tags."""

    text: str
    written: Sequence[str]
    """The source of each character: "\\n" for a space, "&lt;" for "<"."""
    before: str = ""
    """The tags and white space before the text."""
    after: str = ""
    elements: list[Element] = field(default_factory=list)
    """The inline elements, each after its parent; elements of one parent are in order."""
    keep: Sequence[Span] = ()
    """Spans of the text that stay unchanged in a translation."""
    notation: Notation = HTML
    sentences: Sequence[Span] | None = None
    """The spans of its sentences, if known: a translation has the sentences of its source."""
    recalled: Sequence[Replacement] = ()
    """Spans of the text with stored translations, which are the answer."""
    known: Sequence[Replacement] = ()
    """Spans with tags inside, and their stored translations, in which the tags have yet to be placed."""
    anchor: str = ""
    """For the value of an attribute: its anchor in the tag, which a later part of the text has."""

    def render(self, translation: Restored) -> str:
        """Return the source of the passage with its text replaced by a translation."""
        return "".join(self.pieces(translation)[0])

    def pieces(self, translation: Restored) -> tuple[list[str], list[int]]:
        """Return the source of the passage with its text replaced by a translation, in pieces, and the number of each
        piece that is a character of the translation; all other pieces are tags."""
        written = replace(self, written=self._write_characters(translation), elements=self.place_elements(translation))
        pieces, characters, position = [self.before], list[int](), 0
        for place, tag in [*written.tags(), (len(written.written), self.after)]:
            characters += range(len(pieces), len(pieces) + place - position)
            pieces += [*written.written[position:place], tag]
            position = place
        if self.notation.escape is not None and (self.anchor or translation.text != self.text):
            self.notation.escape(pieces, characters)
        return pieces, characters

    def with_translation(self, translation: Restored, keep: Sequence[Span], sentences: Sequence[Span]) -> "Passage":
        """Return the passage with its text replaced by a translation, to be translated again. `keep` and `sentences`
        are spans of the translation."""
        written, elements = self._write_characters(translation), self.place_elements(translation)
        return replace(
            self,
            text=translation.text,
            written=written,
            elements=elements,
            keep=[*keep],
            sentences=[*sentences],
            recalled=(),
            known=(),
        )

    def with_marks(self, translation: Restored | None = None) -> tuple[str, Edits]:
        """Return the text of a plain passage, or its translation, with marks, and the edits that insert the marks."""
        text = self.text if translation is None else translation.text
        if not self.elements:
            return text, NO_EDITS
        marked = self if translation is None else replace(self, elements=self.place_elements(translation))
        return replace_spans(text, [(Span(position, position), tag) for position, tag in marked.tags()])

    def part(self, start: int, text: str) -> "Passage":
        """Return a part of the passage. No element spans its end. An empty element there belongs to the next part."""
        end = start + len(text)
        first, last = (bisect_left(self.elements, at, key=lambda element: element.span.start) for at in (start, end))
        last = last if end < len(self.text) else len(self.elements)
        elements = [element.moved(-start, -first) for element in self.elements[first:last]]
        keep = [span.moved(-start) for span in self.keep if start <= span.start and span.end <= end]
        recalled, known = (
            [(span.moved(-start), to) for span, to in stored if start <= span.start and span.end <= end]
            for stored in (self.recalled, self.known)
        )
        written = self.written[start:end]
        return replace(
            self,
            text=text,
            written=written,
            elements=elements,
            keep=keep,
            sentences=None,
            recalled=recalled,
            known=known,
        )

    def tags(self) -> Iterator[tuple[int, str]]:
        """Yield start and end tags in order, each with the number of the character after it."""
        inside: list[Element] = []
        for element in self.elements:
            while inside and (element.parent is None or inside[-1] is not self.elements[element.parent]):
                closed = inside.pop()
                yield closed.span.end, closed.tags[1]
            yield element.span.start, element.tags[0]
            inside.append(element)
        for element in reversed(inside):
            yield element.span.end, element.tags[1]

    def _write_characters(self, translation: Restored) -> list[str]:
        text = translation.text
        characters = [self.notation.escapes.get(character, character) for character in text]
        for source, target in translation.copies:
            if source.of(self.text) == target.of(text):
                characters[target.start : target.end] = self.written[source.start : source.end]
        for i, (before, after) in enumerate(pairwise(characters) if text != self.text else ()):
            if before == "<" and BEGINS_TAG.match(after):
                characters[i] = self.notation.escapes.get("<", "<")
        if self.notation.begins_line:
            self._escape_block(text, characters)
        if self.notation.has_marks and text != self.text:
            _separate_code(characters)
        return characters

    def _escape_block(self, text: str, characters: list[str]) -> None:
        source, block = BLOCK.match("".join(self.written)), BLOCK.match("".join(characters))
        if block and not (source and source.group() == block.group()):
            at = block.end(1) if block[1] else 0
            if characters[at] == text[at]:  # otherwise it begins code or an address
                characters[at] = "\\" + text[at]

    def place_elements(self, translation: Restored) -> list[Element]:
        """Return the elements with their places in a translation."""
        tags, places = self._tags_and_places(translation)
        children: dict[int | None, list[int]] = {}
        for i in sorted(range(len(places)), key=lambda i: places[i].pair):
            children.setdefault(self.elements[i].parent, []).append(i)
        elements: list[Element] = []
        left: list[tuple[int, int | None]] = [(i, None) for i in reversed(children.get(None, []))]
        while left:
            i, parent = left.pop()
            left += [(child, len(elements)) for child in reversed(children.get(i, []))]
            elements.append(replace(self.elements[i], span=places[i], parent=parent, written=tags[i]))
        return elements

    def _tags_and_places(self, translation: Restored) -> tuple[Tags, list[Span]]:
        text = translation.text
        spaces = tuple(SPACE)
        parts = [Region(e.span, e.parent, e.is_image or e.start_tag.startswith(spaces)) for e in self.elements]
        places = project(parts, self.text, text, translation.align_words(), translation.copies)
        tags = [
            (
                self._spaced_tag(element, element.span.start, element.start_tag, text, place.start),
                self._spaced_tag(element, element.span.end, self._end_tag(element, place.of(text)), text, place.end),
            )
            for element, place in zip(self.elements, places, strict=True)
        ]
        is_new = self.notation.has_marks and text != self.text
        return make_flanking(text, parts, tags, places) if is_new else (tags, places)

    def _end_tag(self, element: Element, inside: str) -> str:
        is_other = element.end_tag_of_other and inside != element.span.of(self.text)
        return element.end_tag_of_other if is_other else element.end_tag

    def _spaced_tag(self, element: Element, position: int, tag: str, translated: str, place: int) -> str:
        """Return a tag with white space for a translation: none beside Japanese, else spaces beside an image."""
        is_target_unspaced = is_unspaced(_around(translated, place))
        is_source_unspaced = is_unspaced(_around(self.text, position))
        if is_target_unspaced and not is_source_unspaced:
            return tag.strip(SPACE)
        if is_source_unspaced and not is_target_unspaced and element.is_image and tag:
            left, right = translated[max(0, place - 1) : place], translated[place : place + 1]
            return " " * left.isalnum() + tag + " " * right.isalnum()
        return tag


@dataclass(frozen=True)
class ParsedText:
    """A text as a list of parts: unchanged strings and passages."""

    parts: list[str | Passage]
    is_plain: bool = False
    """Whether the text is plain: then all parts are passages."""

    @property
    def passages(self) -> list[Passage]:
        """The passages, all of which have text to translate."""
        return [part for part in self.parts if isinstance(part, Passage)]

    def render(self, translations: Iterable[Restored]) -> str:
        """Return the text with each passage translated."""
        remaining = iter(translations)
        pieces, values = list[str](), dict[str, str]()
        for part in self.parts:
            if isinstance(part, str):
                pieces.append(fill(part, values) if values else part)
            elif part.anchor:
                values[part.anchor] = part.render(next(remaining))
            else:
                translation = next(remaining)
                written = part.with_marks(translation)[0] if self.is_plain else part.render(translation)
                pieces.append(fill(written, values) if values else written)
        return "".join(pieces)

    def places(self, translations: Iterable[Restored]) -> Iterator[list[Span]]:
        """Yield for each passage the places of its characters in the rendered text; none for the value of an
        attribute."""
        remaining = iter(translations)
        values, length = dict[str, str](), 0
        for part in self.parts:
            if isinstance(part, str):
                length += len(fill(part, values))
            elif part.anchor:
                values[part.anchor] = part.render(next(remaining))
                yield []
            elif self.is_plain:
                translation = next(remaining)
                shown, marks = part.with_marks(translation)
                yield [marks.after(Span(i, i + 1)).moved(length) for i in range(len(translation.text))]
                length += len(shown)
            else:
                pieces, characters = part.pieces(next(remaining))
                ends = [*accumulate((len(fill(piece, values)) for piece in pieces), initial=length)]
                yield [Span(ends[i], ends[i + 1]) for i in characters]
                length = ends[-1]

    def with_passages(self, passages: Iterable[Passage]) -> "ParsedText":
        """Return the text with translated passages, to be translated again."""
        if self.is_plain:
            return ParsedText([join_passages([*passages])], is_plain=True)
        remaining = iter(passages)
        return ParsedText([part if isinstance(part, str) else next(remaining) for part in self.parts])


def fill(source: str, values: Mapping[str, str]) -> str:
    """Return the source of a part with the values of attributes instead of their anchors."""
    return "".join(values.get(piece, piece) for piece in split_at_anchors(source, values))


def split_at_anchors(source: str, anchors: Collection[str]) -> list[str]:
    """Split the source of a part into anchors of attributes and the text between them."""
    if not anchors:
        return [source]
    character = next(iter(anchors))[0]
    return re.split(f"({character}[0-9]+{character})", source)


def join_passages(passages: Sequence[Passage]) -> Passage:
    """Join the translated parts of a text to one passage, to be translated again."""
    written: list[str] = []
    elements: list[Element] = []
    keep: list[Span] = []
    sentences: list[Span] = []
    for passage in passages:
        n_before = len(elements)
        elements += [element.moved(len(written), n_before) for element in passage.elements]
        keep += [span.moved(len(written)) for span in passage.keep]
        sentences += [span.moved(len(written)) for span in passage.sentences or ()]
        written += passage.written
    text = "".join(passage.text for passage in passages)
    return replace(passages[0], text=text, written=written, elements=elements, keep=keep, sentences=sentences)


def _separate_code(characters: list[str]) -> None:
    """Put a space between two touching spans of code, or of mathematics, which would be read as one."""
    for i, (before, after) in enumerate(pairwise(characters)):
        if len(before) > 1 and len(after) > 1 and before[-1] == after[0] in "`$":
            characters[i] += " "


def _around(text: str, position: int) -> str:
    return text[max(0, position - 1) : position + 1]
