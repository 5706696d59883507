"""PowerPoint files (.pptx): each paragraph with words is a text: in shapes, tables, charts, diagrams, speakers' notes
and comments, in the order of the slides. So is the description of a picture.

Only shapes of layouts and masters that slides show are read. Placeholders there have prompts, which only authors see.
"""

from collections.abc import Iterator

from service.documents.archive import parse_xml
from service.documents.contents import ReadOptions
from service.documents.office.drawing import PlainText, office_texts
from service.documents.office.parts import Part, office_part, office_rewrite
from service.documents.packages import GRAPHICS, MAIN, Package

PACKAGE_TYPES = frozenset(
    f"application/vnd.{kind}.main+xml"
    for kind in (
        "openxmlformats-officedocument.presentationml.presentation",
        "openxmlformats-officedocument.presentationml.slideshow",
        "openxmlformats-officedocument.presentationml.template",
        "ms-powerpoint.presentation.macroenabled",
        "ms-powerpoint.slideshow.macroenabled",
        "ms-powerpoint.template.macroenabled",
    )
)
"""Content types of the main part of a presentation, a slide show and a template, without macros or with them."""
FOLLOWED = {
    MAIN: ("slide",),
    "slide": (*GRAPHICS, "notesSlide", "comments", "slideLayout"),
    "slideLayout": (*GRAPHICS, "slideMaster"),
    **dict.fromkeys(("slideMaster", "chart", "chartEx"), GRAPHICS),
}
"""The links that lead to texts, by the kind of the part."""
BEHIND = ("slideLayout", "slideMaster")
"""Kinds of parts that stand behind the texts of a slide."""
SHAPES, PLACEHOLDER = "{*}cSld/{*}spTree/*", "./*/{*}nvPr/{*}ph"
COMMENTS = (
    "{http://schemas.openxmlformats.org/presentationml/2006/main}text",
    "{http://purl.oclc.org/ooxml/presentationml/main}text",
)
"""Comments of PowerPoint before 2021. Later ones have paragraphs."""


def _parts(package: Package, options: ReadOptions) -> Iterator[Part]:
    for name, kind in package.reached(FOLLOWED).items():
        root = parse_xml(package.files[name], name)
        shown = root.iterfind(SHAPES) if kind in BEHIND else [root]
        shapes = (shape for shape in shown if shape.find(PLACEHOLDER) is None)
        texts = [text for shape in shapes for text in office_texts(shape, options)]
        comments = [text for text in map(PlainText, root.iter(*COMMENTS)) if text.has_words]
        yield office_part(name, root, [*texts, *comments], options)


rewrite = office_rewrite(_parts)
