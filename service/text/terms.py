"""What a request names: terms that come out unchanged, and terms that a glossary has a translation for."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from service.errors import NotAcceptable
from service.schemas.patterns import compiled
from service.text.kept_spans import Kept
from service.text.scripts import LETTER
from service.text.spans import Span

MOST_MATCHES = 10_000
"""Of patterns, in one text."""
_TWO_LETTERS = re.compile(LETTER * 2)


class Terms:
    """The terms of one request.

    Args:
        keep: strings.
        patterns: regular expressions of what is kept too.
        glossary: by term of the source, that of the target.
    """

    def __init__(self, keep: Iterable[str], patterns: Iterable[str], glossary: Mapping[str, str]) -> None:
        self._patterns = [*map(compiled, patterns)]
        self._written: dict[str, str | None] = {**dict.fromkeys(keep), **glossary}
        self._by_first: dict[str, list[str]] = {}
        for term in sorted(self._written, key=len, reverse=True):
            self._by_first.setdefault(term[0], []).append(term)
        firsts = "".join(map(re.escape, self._by_first))
        self._first = re.compile(f"[{firsts}]" if firsts else "(?!)")

    def found(self, text: str) -> list[Kept]:
        """Where the terms are in a text, whole words alone; of two that begin together the longer one first.

        Raises:
            NotAcceptable: patterns match too often.
        """
        if not self._written and not self._patterns:
            return []
        matches = [*islice(self._matches(text), MOST_MATCHES + 1)]
        if len(matches) > MOST_MATCHES:
            raise NotAcceptable(f"patterns of keep match more than {MOST_MATCHES:,} times in a text")
        terms = [*self._terms(text), *(Kept(span) for span in matches if span.start < span.end)]
        return sorted(terms, key=lambda kept: (kept.span.start, -kept.span.end))

    def _matches(self, text: str) -> Iterator[Span]:
        for pattern in self._patterns:
            yield from (Span(*match.span()) for match in pattern.finditer(text))

    def _terms(self, text: str) -> Iterator[Kept]:
        for first in self._first.finditer(text):
            for term in self._by_first[first.group()]:
                span = Span(first.start(), first.start() + len(term))
                if text.startswith(term, span.start) and _is_whole(text, span):
                    yield Kept(span, written=self._written[term])
                    break


NO_TERMS = Terms((), (), {})


def _is_whole(text: str, span: Span) -> bool:
    """Whether no letter goes on beside a letter of the term."""
    edges = (text[max(0, span.start - 1) : span.start + 1], text[span.end - 1 : span.end + 1])
    return not any(_TWO_LETTERS.fullmatch(edge) for edge in edges)
