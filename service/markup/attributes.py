"""Attributes of HTML that people read, whose values become passages, and attributes that name the language.

While a text is read, an anchor stands for the value in its tag. The passage of the value comes before the part of the
document that has the tag, and its translation replaces the anchor.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import unescape
from itertools import islice

from service.markup.draft import assemble
from service.markup.passages import HTML, Notation, Passage, split_at_anchors
from service.markup.references import read_texts
from service.text.language_marks import MarkedLanguages

Attributes = Mapping[str, str]
"""The values of a tag's attributes, by their names in lower case."""


def _always(_tag: str, _attributes: Attributes) -> bool:
    return True


def _never(_tag: str, _attributes: Attributes) -> bool:
    return False


def _on(*tags: str) -> Callable[[str, Attributes], bool]:
    return lambda tag, _: tag in tags


def _is_on_button(tag: str, attributes: Attributes) -> bool:
    kind = attributes.get("type", "").strip().lower()
    return tag == "input" and (kind in ("button", "reset") or (kind == "submit" and not attributes.get("name")))


def _metadata(pattern: re.Pattern[str]) -> Callable[[str, Attributes], bool]:
    kinds = ("name", "property", "itemprop", "http-equiv")
    return lambda tag, attributes: tag == "meta" and any(pattern.fullmatch(attributes.get(kind, "")) for kind in kinds)


READ_METADATA = re.compile(r"(?:.*[:.-])?(?:title|description|keywords|alt)", re.IGNORECASE)
"""Names of metadata that people read: description, og:title, twitter:image:alt, DC.description."""
READ_ATTRIBUTES: dict[str, Callable[[str, Attributes], bool]] = {
    "abbr": _on("td", "th"),
    "alt": _always,
    "aria-description": _always,
    "aria-label": _always,
    "aria-placeholder": _always,
    "aria-roledescription": _always,
    "aria-valuetext": _always,
    "content": _metadata(READ_METADATA),
    "label": _on("optgroup", "option", "track"),
    "placeholder": _always,
    "summary": _on("table"),
    "title": _always,
    "value": _is_on_button,
}
"""The translatable attributes of the HTML Standard and of WAI-ARIA, with `summary` of HTML 4, and where they are texts.
Left out: `download` is the name of a file, `srcdoc` and `style` are in other languages."""
LANGUAGE_METADATA = re.compile(r".*(?:language|locale)", re.IGNORECASE)
"""Names of metadata that name the language of the page: content-language, DC.language, og:locale."""
LANGUAGE_ATTRIBUTES: dict[str, Callable[[str, Attributes], bool]] = {
    "content": _metadata(LANGUAGE_METADATA),
    "lang": _always,
    "xml:lang": _always,
}
UNREAD_TAGS = frozenset(("link", "math", "script", "style", "svg"))
"""Elements without such attributes: `title` of a style sheet is the name of a set."""
HINT = re.compile(rf"[\s\"'/](?:{'|'.join(READ_ATTRIBUTES | LANGUAGE_ATTRIBUTES)})\s*=", re.IGNORECASE)
ATTRIBUTE = re.compile(
    r"""[\s/]*+ (?P<name>[^\s/>][^\s/>=]*+)
        (?:\s*+ = \s*+ (?:(?P<quote>["']) (?P<quoted>.*?) (?P=quote) | (?P<bare>(?!["'])(?:[^\s/>]|/(?!>))++)))?+""",
    re.ASCII | re.DOTALL | re.VERBOSE,
)
NEEDS_QUOTES = re.compile(r"\A[\"']|\s|/\Z|\A\Z")


def _add_quotes(pieces: list[str], _characters: Sequence[int]) -> None:
    written = "".join(pieces)
    if NEEDS_QUOTES.search(written):
        pieces[:] = ['"', written.replace('"', "&quot;"), '"']


NOTATIONS = {
    '"': Notation({**HTML.escapes, '"': "&quot;"}),
    "'": Notation({**HTML.escapes, "'": "&#39;"}),
    "": Notation(HTML.escapes, escape=_add_quotes),
}
"""How a value is written between quotes, by the quote."""


class HeldTexts:
    """The values of attributes, and other texts in markup, that are held while a text is read. Without `languages`,
    marks of languages stay."""

    def __init__(self, html: str, languages: MarkedLanguages | None = None) -> None:
        self._languages = languages
        self._passages: dict[str, Passage] = {}
        private = (chr(code) for code in range(0xE000, 0xF900))
        self._character = next((character for character in private if character not in html), None)

    def hold(self, raw: str, tag: str, is_translated: bool) -> str:
        """Return the source of a start tag with an anchor for each value that people read. If the text in the element
        is translated, the tag names the target's language."""
        if not HINT.search(raw) or tag in UNREAD_TAGS or self._character is None:
            return raw
        matches: dict[str, re.Match[str]] = {}
        for match in islice(ATTRIBUTE.finditer(raw, 1), 1, None):  # the first match is the name of the tag
            matches.setdefault(match["name"].lower(), match)
        attributes = {name: unescape(match["quoted"] or match["bare"] or "") for name, match in matches.items()}
        pieces, position = [], 0
        for name, match in matches.items():
            start, end = match.span("quoted" if match["quote"] else "bare")
            if not attributes[name]:
                continue
            if READ_ATTRIBUTES.get(name, _never)(tag, attributes):
                value = self._held(raw[start:end], NOTATIONS[match["quote"] or ""])
            elif self._languages and is_translated and LANGUAGE_ATTRIBUTES.get(name, _never)(tag, attributes):
                value = self._languages.translated(raw[start:end])
            else:
                continue
            pieces += [raw[position:start], value]
            position = end
        return "".join([*pieces, raw[position:]])

    def hold_text(self, raw: str) -> str:
        """Return an anchor for a text inside an untranslated element, or the text if nobody can read it."""
        return raw if self._character is None else self._held(raw, HTML)

    def beside(self, parts: list[str | Passage]) -> list[str | Passage]:
        """Put each passage of a value before the part that has its anchor."""
        if not self._passages:
            return parts
        placed: list[str | Passage] = []
        for part in parts:
            pieces = split_at_anchors(_source_of_tags(part), self._passages)
            placed += [self._passages[piece] for piece in pieces if piece in self._passages]
            placed.append(part)
        return placed

    def _held(self, raw: str, notation: Notation) -> str:
        (part,) = assemble([*read_texts(raw, unescape(raw))], notation)
        if isinstance(part, str) or not any(map(str.isalpha, part.text)):
            return raw
        anchor = f"{self._character}{len(self._passages)}{self._character}"
        self._passages[anchor] = replace(part, anchor=anchor)
        return anchor


def _source_of_tags(part: str | Passage) -> str:
    if isinstance(part, str):
        return part
    return "".join([part.before, part.after, *part.written, *(element.start_tag for element in part.elements)])
