"""Read and write runs of Word and of DrawingML, with the styles of their texts."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

from lxml import etree

from service.documents.contents import ReadOptions
from service.documents.office.nodes import (
    LAST,
    LINE_END,
    NO_BREAK_HYPHEN,
    PROPERTIES,
    Element,
    RunChild,
    attribute,
    attribute_name,
    content_of,
    is_drawing,
    local_name,
    nodes_of,
    text_element,
)
from service.documents.office.styles import exact_style, properties_of, style_of, vertical_tag


@dataclass(frozen=True)
class OfficeXml:
    """Runs of Word and of DrawingML. Text that is marked as another language than the source is kept apart."""

    options: ReadOptions
    nodes = staticmethod(nodes_of)
    exact_style = staticmethod(exact_style)
    raised = staticmethod(vertical_tag)
    content_of = staticmethod(content_of)

    def style(self, run: Element) -> bytes:
        return style_of(run, self.options)

    def is_line_break(self, element: Element) -> bool:
        is_break = local_name(element) in ("br", "cr") and attribute(element, "type") in ("", "textWrapping")
        return is_break or element.text == LINE_END

    def empty(self, element: Element) -> None:
        for child in [*element]:
            if local_name(child) not in PROPERTIES:
                element.remove(child)

    def put(self, children: Sequence[RunChild], into: Element) -> None:
        for child in children:
            (into if child.run is None else copied_run(child.run, into)).append(child.element)

    def put_text(self, text: str, run: Element | None, into: Element) -> None:
        for i, part in enumerate([text] if is_drawing(into) else text.split(NO_BREAK_HYPHEN)):
            if i > 0:
                etree.SubElement(copied_run(run, into), attribute_name(into, "noBreakHyphen"))
            if part:
                copied_run(run, into).append(text_element(attribute_name(into, "t"), part))

    def close(self, paragraph: Element) -> None:
        for last in paragraph.findall(f"{{*}}{LAST}"):
            paragraph.append(last)
        _unbind_controls(paragraph)


def _unbind_controls(paragraph: Element) -> None:
    """Let content controls in and around a paragraph show its text, and not the data of their bindings."""
    for control in [*paragraph.iter("{*}sdt"), *paragraph.iterancestors("{*}sdt")]:
        for binding in control.findall("{*}sdtPr/{*}dataBinding"):
            binding.getparent().remove(binding)


def copied_run(like: Element | None, into: Element) -> Element:
    """Append a run with the style of another run."""
    run = etree.SubElement(into, attribute_name(into, "r"))
    properties = None if like is None else properties_of(like)
    if properties is not None:
        run.append(deepcopy(properties))
    return run
