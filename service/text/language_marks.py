"""Marks of languages in documents, such as `lang`: a mark of the source's language becomes one of the target's."""

from typing import NamedTuple

from service.text.languages import canonical, subtag, with_region


class MarkedLanguages(NamedTuple):
    """The languages of a text and of its translation, as a request or a model names them."""

    source: str
    target: str

    def translated(self, mark: str) -> str:
        """Return a mark (en, en-US, en_US) for the translation. A mark of another language stays as it is. The mark of
        the target has a region if the mark has a region."""
        tag = mark.strip().replace("_", "-")
        if subtag(tag) != subtag(self.source) or subtag(tag) == subtag(self.target):
            return mark
        target = with_region(self.target) if "-" in tag else canonical(self.target) or self.target
        return target.replace("-", "_") if "_" in mark else target
