"""Words of a text, and what becomes of a document that is not translated."""

import re

from service.formats.document import Document
from service.text.restoration import untranslated
from service.text.spans import Span
from tests.service.stand_ins import protect


def words(text: str) -> list[Span]:
    return [Span(*match.span()) for match in re.finditer(r"\w+|[^\w\s]+", text)]


def unchanged(document: Document) -> str:
    return document.render(untranslated(protect(passage.text, passage.keep)) for passage in document.passages)
