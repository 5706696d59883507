"""Documents and their passages: the text between two block-level tags, and the inline elements in it.

Block elements separate passages; they are kept as they are, and so is what must not be translated. Every start tag
comes out once and unchanged, and inline tags come out balanced. A passage knows how each character of its text is
written, so that what is not translated comes out byte for byte. A plain text is a document of passages alone: the
pieces in which it is translated.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from service.markup.flanking import Tags, flanking
from service.segments.projection import Part, project
from service.segments.restoration import Restored
from service.text.scripts import is_unspaced
from service.text.spans import NO_EDITS, Edits, Span, edited

SPACE = " \t\n\r\f"
BLOCK = re.compile(
    r"(\d{1,9})[.)](?=\s|$)|(?:[-+*]|#{1,6})(?=\s|$)|>|:(?=::|\s)|~{3}|`{3}|<(?=[A-Za-z/!?])|\[(?:\\.|[^\[\]\\])+\]:"
)
"""What begins a list, a heading, a quote, a container, code, HTML or an address in Markdown where it begins a line."""


@dataclass(frozen=True)
class Notation:
    """How a format writes a text."""

    escapes: Mapping[str, str]
    """How characters of a translation are written, if not as they are."""
    has_marks: bool = False
    """Whether emphasis is between marks, which must be where they are read as such."""
    begins_line: bool = False
    """Whether the passage must not begin as a list does."""
    escape: Callable[[list[str], Sequence[int]], None] | None = None
    """Writes characters of a translation so that they make no marks: of the pieces of the written passage those with
    these numbers are its characters, all others tags."""


BEGINS_TAG = re.compile(r"[A-Za-z/!?]")
"""What makes a tag of "<" before it."""
HTML = Notation({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True)
class Element:
    """An inline element, and the span of its passage's text that is inside.

    An element that is kept and has no text (an image, a comment) is a start tag alone.
    """

    span: Span
    start_tag: str
    end_tag: str
    parent: int | None
    """The number of the element that it is in."""
    is_image: bool = False
    """Whether it is an image or the like, which stands between words."""
    end_tag_of_other: str = ""
    """The end tag if another text is inside, where that is not the same: [a] becomes [b][a]."""
    written: tuple[str, str] | None = None
    """Both tags as they are written in a translation: white space may be beside them."""

    @property
    def tags(self) -> tuple[str, str]:
        """Both tags as they are written."""
        return self.written or (self.start_tag, self.end_tag)

    def moved(self, by: int, parent_by: int) -> "Element":
        """The same element with so many more characters, and so many more elements, before it."""
        parent = None if self.parent is None else self.parent + parent_by
        return replace(self, span=self.span.moved(by), parent=parent)


@dataclass(frozen=True)
class Passage:
    """Text between two block-level tags."""

    text: str
    written: Sequence[str]
    """How each character of the text is written: a space as "\\n", "<" as "&lt;"."""
    before: str = ""
    """What stands between the tag before it and the text, such as white space."""
    after: str = ""
    elements: list[Element] = field(default_factory=list)
    """Each after its parent; those of one parent in order."""
    keep: Sequence[Span] = ()
    """Spans of the text that a translation must have unchanged."""
    notation: Notation = HTML
    sentences: Sequence[Span] | None = None
    """The places of its sentences, if they are known: a translation has the sentences of its source."""

    def render(self, translation: Restored) -> str:
        """The passage with a translation for its text, as the format writes it."""
        written = replace(self, written=self._written(translation), elements=self.placed(translation))
        pieces, characters, position = [self.before], list[int](), 0
        for place, tag in [*written.tags(), (len(written.written), self.after)]:
            characters += range(len(pieces), len(pieces) + place - position)
            pieces += [*written.written[position:place], tag]
            position = place
        if self.notation.escape is not None and translation.text != self.text:
            self.notation.escape(pieces, characters)
        return "".join(pieces)

    def translated(self, translation: Restored, keep: Sequence[Span], sentences: Sequence[Span]) -> "Passage":
        """The passage with a translation for its text, to be translated again.

        Args:
            keep: the spans of the translation that come out unchanged again.
            sentences: the spans of its sentences.
        """
        return replace(
            self,
            text=translation.text,
            written=self._written(translation),
            elements=self.placed(translation),
            keep=[*keep],
            sentences=[*sentences],
        )

    def shown(self, translation: Restored | None = None) -> tuple[str, Edits]:
        """The passage of a plain text, or a translation for it, with its marks, and the edits that put the marks in."""
        text = self.text if translation is None else translation.text
        if not self.elements:
            return text, NO_EDITS
        marked = self if translation is None else replace(self, elements=self.placed(translation))
        return edited(text, [(Span(position, position), tag) for position, tag in marked.tags()])

    def part(self, start: int, text: str) -> "Passage":
        """A part of the passage. No element goes on beyond it; an empty one at its end belongs to the next part."""
        end = start + len(text)
        first, last = (bisect_left(self.elements, at, key=lambda one: one.span.start) for at in (start, end))
        last = last if end < len(self.text) else len(self.elements)
        elements = [element.moved(-start, -first) for element in self.elements[first:last]]
        return replace(self, text=text, written=self.written[start:end], elements=elements, keep=(), sentences=None)

    def tags(self) -> Iterator[tuple[int, str]]:
        """Yield start tags and end tags in order, each with the number of the character that it stands before."""
        inside: list[Element] = []
        for element in self.elements:
            while inside and (element.parent is None or inside[-1] is not self.elements[element.parent]):
                closed = inside.pop()
                yield closed.span.end, closed.tags[1]
            yield element.span.start, element.tags[0]
            inside.append(element)
        for element in reversed(inside):
            yield element.span.end, element.tags[1]

    def _written(self, translation: Restored) -> list[str]:
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
            _part_code(characters)
        return characters

    def _escape_block(self, text: str, characters: list[str]) -> None:
        """Put a backslash before what would begin a block, unless the source has it and it begins none there."""
        source, block = BLOCK.match("".join(self.written)), BLOCK.match("".join(characters))
        if block and not (source and source.group() == block.group()):
            at = block.end(1) if block[1] else 0
            if characters[at] == text[at]:  # else it is the beginning of code or an address
                characters[at] = "\\" + text[at]

    def placed(self, translation: Restored) -> list[Element]:
        """The elements of a translation."""
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
        parts = [
            Part(element.span, element.parent, is_apart=element.is_image or element.start_tag.startswith(tuple(SPACE)))
            for element in self.elements
        ]
        places = project(parts, self.text, text, translation.align_words(), translation.copies)
        tags = [
            (
                self._beside(element, element.span.start, element.start_tag, text, place.start),
                self._beside(element, element.span.end, self._end_tag(element, place.of(text)), text, place.end),
            )
            for element, place in zip(self.elements, places, strict=True)
        ]
        is_new = self.notation.has_marks and text != self.text
        return flanking(text, parts, tags, places) if is_new else (tags, places)

    def _end_tag(self, element: Element, inside: str) -> str:
        is_other = element.end_tag_of_other and inside != element.span.of(self.text)
        return element.end_tag_of_other if is_other else element.end_tag

    def _beside(self, element: Element, position: int, tag: str, translated: str, place: int) -> str:
        """A tag as it is written in a translation: beside Japanese without white space, and an image that was there
        without has some in other languages.
        """
        now, before = is_unspaced(_around(translated, place)), is_unspaced(_around(self.text, position))
        if now and not before:
            return tag.strip(SPACE)
        if before and not now and element.is_image and tag:
            left, right = translated[max(0, place - 1) : place], translated[place : place + 1]
            return " " * left.isalnum() + tag + " " * right.isalnum()
        return tag


@dataclass(frozen=True)
class Document:
    """A text, in order: what is kept as it is, and passages."""

    parts: list[str | Passage]
    is_plain: bool = False
    """Whether it is plain text, of which all parts are passages."""

    @property
    def passages(self) -> list[Passage]:
        """All that there is to translate: none is without text."""
        return [part for part in self.parts if isinstance(part, Passage)]

    def render(self, translations: Iterable[Restored]) -> str:
        """The text with each passage translated."""
        remaining = iter(translations)
        pieces = []
        for part in self.parts:
            if isinstance(part, str):
                pieces.append(part)
            else:
                translation = next(remaining)
                pieces.append(part.shown(translation)[0] if self.is_plain else part.render(translation))
        return "".join(pieces)

    def translated(self, passages: Iterable[Passage]) -> "Document":
        """The text with translated passages for its own, to be translated again."""
        if self.is_plain:
            return Document([joined([*passages])], is_plain=True)
        remaining = iter(passages)
        return Document([part if isinstance(part, str) else next(remaining) for part in self.parts])


def joined(passages: Sequence[Passage]) -> Passage:
    """Translations of the parts of a text, to be translated again, as one."""
    written: list[str] = []
    elements: list[Element] = []
    keep: list[Span] = []
    sentences: list[Span] = []
    for one in passages:
        n_before = len(elements)
        elements += [element.moved(len(written), n_before) for element in one.elements]
        keep += [span.moved(len(written)) for span in one.keep]
        sentences += [span.moved(len(written)) for span in one.sentences or ()]
        written += one.written
    text = "".join(one.text for one in passages)
    return replace(passages[0], text=text, written=written, elements=elements, keep=keep, sentences=sentences)


def _part_code(characters: list[str]) -> None:
    """Put a space between two spans of code, which are one if they touch, or of mathematics."""
    for i, (before, after) in enumerate(pairwise(characters)):
        if len(before) > 1 and len(after) > 1 and before[-1] == after[0] in "`$":
            characters[i] += " "


def _around(text: str, position: int) -> str:
    return text[max(0, position - 1) : position + 1]
