"""Marks of languages in files: what is marked as the source's language is marked as the target's in a translation."""

from service.documents.contents import ReadOptions
from service.text.languages import canonical, subtag, with_region


def translated_mark(mark: str, options: ReadOptions) -> str:
    """Return a mark of a language, such as en-US, for the translation. A mark of another language stays as it is.

    The mark of the target has a region if the mark has one.
    """
    if not is_source(mark, options) or options.target is None:
        return mark
    is_regional = len(mark.replace("_", "-").split("-")) > 1
    return with_region(options.target) if is_regional else canonical(options.target) or options.target


def is_source(mark: str, options: ReadOptions) -> bool:
    """Return whether a mark names the source language, in any region."""
    return options.source is not None and subtag(mark) == subtag(options.source)
