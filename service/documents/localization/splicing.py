"""Replace the texts of a file by position: every other character of the file stays as it is."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise, repeat

from service.documents.contents import Contents, ReadOptions, Rewriting
from service.documents.encodings import Encoding
from service.documents.localization.plurals import plural_texts
from service.schemas.requests import Format
from service.text.spans import Span, replace_spans

_HALF_PAIR = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair, which an escape can write and a text must not have."""
INDENTATION = re.compile(r"(?:\r\n?|\n)[^\S\r\n]*+\Z")
"""A line end, and the white space after it."""
MAX_INDENTATION = 500
"""Characters before a form in which its line must begin: a file may be one line."""
_IDENTIFIER = re.compile(
    r"[A-Za-z]\w*(?:(?:\.|::)\w+)+|[A-Za-z][a-z\d]*(?:[A-Z][a-z\d]+)+|[a-z]{2,3}[-_][A-Z]{2}"
    r"|\d{4}-\d\d-\d\dT[\d:.,+-]*Z?",
    re.ASCII,
)
"""A value that only the program reads: app.title, mainMenu, en-US, 2027-01-31T10:00:00Z."""


@dataclass(frozen=True)
class Splice:
    """A span of a file, the texts in it to translate, and a function that writes the span with their translations."""

    span: Span
    texts: Sequence[str]
    write: Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class Value:
    """A text, and its place in a file. `encode` returns a text as the file writes it there."""

    span: Span
    text: str
    encode: Callable[[str], str]

    @property
    def has_text(self) -> bool:
        return is_translatable(self.text)

    def written(self, file_text: str, translation: str) -> str:
        """Return the translation as the file writes it: the same as before if the translation is the text."""
        return self.span.of(file_text) if translation == self.text else self.encode(translation)


@dataclass(frozen=True)
class PluralForm:
    """A form of a plural: its category, the span of the form, and in it the name of the category and the value."""

    category: str
    span: Span
    name: Span
    value: Value


def is_translatable(text: str) -> bool:
    return bool(text.strip()) and not _HALF_PAIR.search(text) and not _IDENTIFIER.fullmatch(text.strip())


def fixed(span: Span, replacement: str) -> Splice:
    """Return a splice without texts."""
    return Splice(span, (), lambda _: replacement)


def spliced_value(text: str, value: Value) -> list[Splice]:
    """Return the splice of a value in the text of a file; [] if there is nothing to translate."""
    if not value.has_text:
        return []
    return [Splice(value.span, (value.text,), lambda translations: value.written(text, translations[0]))]


def spliced_plural(
    text: str, forms: Sequence[PluralForm], options: ReadOptions, separator: str = "", is_ordinal: bool = False
) -> list[Splice]:
    """Return the splice of the forms of a plural, which follow each other in the text of a file. They become the forms
    of the target language, with `separator` and white space between them."""
    by_category = {form.category: form for form in forms}
    if len(by_category) < len(forms) or not all(form.value.has_text for form in forms):
        return [splice for form in forms for splice in spliced_value(text, form.value)]
    by_form = {category: form.value.text for category, form in by_category.items()}
    wanted = plural_texts(by_form, options.source, options.target, is_ordinal)
    if wanted.keys() == by_category.keys():
        wanted = {category: wanted[category] for category in by_category}
    gaps = [text[before.span.end : after.span.start] for before, after in pairwise(forms)]
    further = separator + line_break_before(text, forms[0].span.start)

    def write(translations: Sequence[str]) -> str:
        remaining = iter(translations)
        written = []
        for category, plural in wanted.items():
            form = by_category[plural.category]
            translation = plural.translated([*islice(remaining, len(plural.texts))])
            new = ((form.name, category), (form.value.span, form.value.written(text, translation)))
            moved = [(span.moved(-form.span.start), replacement) for span, replacement in new]
            written.append(replace_spans(form.span.of(text), moved)[0])
        return written[0] + "".join(gap + new for gap, new in zip(chain(gaps, repeat(further)), written[1:]))  # noqa: B905

    texts = [text for plural in wanted.values() for text in plural.texts]
    return [Splice(Span(forms[0].span.start, forms[-1].span.end), texts, write)]


def line_break_before(text: str, start: int) -> str:
    """Return the line end and the white space before a span; a space if its line begins with other characters."""
    indentation = INDENTATION.search(text, max(0, start - MAX_INDENTATION), start)
    return indentation[0] if indentation else " "


def rewrite_spliced(
    data: bytes, text: str, encoding: Encoding, splices: Iterable[Splice], kind: Format, source: str | None = None
) -> Rewriting:
    """Rewrite a file, whose text is `text`, by splices in any order, of which no two overlap. `source` is the language
    of the texts, if the file tells."""
    ordered = sorted(splices, key=lambda splice: splice.span.pair)
    texts = [splice_text for splice in ordered for splice_text in splice.texts]
    translations = yield Contents(texts, kind, source)
    if translations == texts:
        return data
    remaining = iter(translations)
    new = ((splice.span, splice.write([*islice(remaining, len(splice.texts))])) for splice in ordered)
    return encoding.encode(replace_spans(text, new)[0])
