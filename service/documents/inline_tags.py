"""Inline codes of a format become numbered tags of HTML, which alignment moves with their words, and codes again."""

import re
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from html import escape, unescape
from typing import Generic, TypeVar

Code = TypeVar("Code", bound=Hashable)
TAG = re.compile(r"(<[^<>]*>)")
_NUMBER = re.compile(r"<x(\d+)>|\bid=\"(\d+)\"")


@dataclass(frozen=True)
class InlineTag:
    """A tag in a translation, with the number of its code. An end tag, and a tag by mistake, have none."""

    number: int | None
    is_end: bool


def texts_and_tags(html: str) -> Iterator[str | InlineTag]:
    """Yield the texts of a translation, without escapes, and the tags between them."""
    for i, part in enumerate(TAG.split(html)):
        if i % 2:
            number = _NUMBER.search(part)
            yield InlineTag(number and int(number[1] or number[2]), part.startswith("</"))
        elif part:
            yield unescape(part)


def mapped(html: str, text: Callable[[str], str], tag: Callable[[str], str] = str, tags: re.Pattern[str] = TAG) -> str:
    """Return HTML with other texts and other tags. The only group of the pattern `tags` is a tag."""
    return "".join(tag(part) if i % 2 else text(part) for i, part in enumerate(tags.split(html)))


def escaped(text: str) -> str:
    return escape(text, quote=False)


@dataclass
class Numbering(Generic[Code]):
    """Numbers of codes: equal codes have the same number, which stands in a tag such as <x0>."""

    codes: list[Code] = field(default_factory=list)
    _numbers: dict[Code, int] = field(default_factory=dict)

    def of(self, code: Code) -> int:
        number = self._numbers.setdefault(code, len(self.codes))
        self.codes += [code] * (number == len(self.codes))
        return number
