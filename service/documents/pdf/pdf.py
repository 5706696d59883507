"""PDF files: their text becomes an HTML file with headings, paragraphs, lists and tables. The layout is not kept."""

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions, Rewriting
from service.documents.pdf.layout import lines_of, with_rows, without_margins
from service.documents.pdf.paragraphs import Paragraph, Table, blocks_of
from service.documents.pdf.words import read_pages
from service.documents.web import html

STYLE = "table { border-collapse: collapse } td { border: 1px solid; padding: 0.2em 0.5em; vertical-align: top }"
MAX_TITLE = 200


def rewrite(data: bytes, options: ReadOptions) -> Rewriting:
    """Rewrite a PDF as HTML. Raises InvalidDocument: the file is damaged or encrypted, or has no text. TooLarge: it has
    too many pages or too much text."""
    pages = [[*lines_of(page, i)] for i, page in enumerate(read_pages(data, options.max_bytes))]
    sizes: Counter[float] = Counter()
    for line in (line for page in pages for line in page):
        sizes[round(2 * line.size) / 2] += len(line.text)
    if not sizes:
        raise InvalidDocument("The PDF has no text, only pictures: recognize its text first (OCR)")
    size = max(sizes, key=sizes.__getitem__)
    layout = with_rows(line for page in without_margins(pages, size) for line in page)
    return html.rewrite(_html(blocks_of(layout, size), options.target).encode(), options)


def _html(blocks: Sequence[Paragraph | Table], language: str | None) -> str:
    paragraphs = [block for block in blocks if isinstance(block, Paragraph)]
    titles = [block.text for block in paragraphs if block.level] + [block.text for block in paragraphs]
    title = next((text for text in titles if len(text) <= MAX_TITLE), "")
    named = f' lang="{escape(language)}"' if language else ""
    head = f"<title>{escape(title, quote=False)}</title>\n<style>{STYLE}</style>"
    begin = f'<!DOCTYPE html>\n<html{named}>\n<head>\n<meta charset="utf-8">\n{head}\n</head>\n<body>'
    return "\n".join([begin, *_elements(blocks), "</body>\n</html>\n"])


def _elements(blocks: Sequence[Paragraph | Table]) -> Iterator[str]:
    for element, group in groupby(blocks, key=_list_of):
        items = [*group]
        if element:
            first = items[0].marker.strip("().") if isinstance(items[0], Paragraph) else ""
            start = f' start="{int(first)}"' if element == "ol" and first != "1" else ""
            yield f"<{element}{start}>"
        yield from map(_element, items)
        if element:
            yield f"</{element}>"


def _list_of(block: Paragraph | Table) -> str:
    if isinstance(block, Table) or not block.marker:
        return ""
    number = block.marker.strip("().")
    return "ol" if number.isdecimal() else "" if number.isalpha() and number < "\ue000" else "ul"


def _element(block: Paragraph | Table) -> str:
    if isinstance(block, Table):
        rows = ("".join(f"<td>{escape(cell, quote=False)}</td>" for cell in row) for row in block.rows)
        return "\n".join(["<table>", *(f"<tr>{row}</tr>" for row in rows), "</table>"])
    text = escape(block.text, quote=False)
    if block.level:
        return f"<h{block.level}>{text}</h{block.level}>"
    if _list_of(block):
        return f"<li>{text}</li>"
    return f"<p>{escape(block.marker)} {text}</p>" if block.marker else f"<p>{text}</p>"
