"""Find the terms of a request in a text: terms that stay unchanged, and terms with a translation in a glossary."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice

from service.base.errors import LimitExceeded
from service.schemas.patterns import compiled
from service.segments.kept_spans import KeptSpan
from service.text.scripts import LETTER
from service.text.spans import Span

MAX_PATTERN_MATCHES = 10_000
"""Maximum number of matches in one text, for all patterns together."""
_LETTER = re.compile(LETTER)
_TWO_LETTERS = re.compile(LETTER * 2)


class TermTable:
    """Terms and their translations. The search time hardly depends on their number.

    Args:
        written: the translation of each term; None for a term that stays unchanged.
    """

    def __init__(self, written: Mapping[str, str | None]) -> None:
        self._written = {**written}
        lengths: dict[str, set[int]] = {}
        for term in written:
            lengths.setdefault(term[:2], set()).add(len(term))
        self._lengths = {start: sorted(of_start, reverse=True) for start, of_start in lengths.items()}
        """The lengths of the terms, the longest first, by the first two characters."""
        firsts = {term[0] for term in written}
        letters = "".join(first for first in firsts if _LETTER.match(first))
        others = "".join(map(re.escape, firsts - {*letters}))
        starts = [f"(?<!{LETTER})[{letters}]" * bool(letters), f"[{others}]" * bool(others)]
        self._start = re.compile("|".join(filter(None, starts)) or "(?!)")

    def find(self, text: str) -> Iterator[KeptSpan]:
        """Yield terms that are whole words of a text, in order, and of those with the same start only the longest."""
        for match in self._start.finditer(text):
            start = match.start()
            lengths = self._lengths.get(text[start : start + 2], ()), self._lengths.get(match.group(), ())
            for length in chain.from_iterable(lengths):
                span = Span(start, start + length)
                term = span.of(text)
                if len(term) == length and term in self._written and _is_whole(text, span):
                    yield KeptSpan(span, written=self._written[term])
                    break


class Terms:
    """The terms of one request.

    Args:
        keep: strings that stay unchanged.
        patterns: regular expressions; their matches stay unchanged.
        glossary: terms and their translations.
        stored_terms: the terms of a stored glossary. Terms of the request come before them.
    """

    def __init__(
        self,
        keep: Iterable[str] = (),
        patterns: Iterable[str] = (),
        glossary: Mapping[str, str] | None = None,
        stored_terms: TermTable | None = None,
    ) -> None:
        self._patterns = [*map(compiled, patterns)]
        named = {**dict.fromkeys(keep), **(glossary or {})}
        self._tables = [*([TermTable(named)] if named else []), *([stored_terms] if stored_terms else [])]

    def find(self, text: str) -> list[KeptSpan]:
        """Return the terms that are whole words of a text. Of two with the same start the longer comes first.

        Raises:
            LimitExceeded: the patterns match too often.
        """
        if not self._tables and not self._patterns:
            return []
        found = (Span(*match.span()) for pattern in self._patterns for match in pattern.finditer(text))
        matches = [*islice(found, MAX_PATTERN_MATCHES + 1)]
        if len(matches) > MAX_PATTERN_MATCHES:
            raise LimitExceeded(f"Patterns of `keep` match more than {MAX_PATTERN_MATCHES:,} times in a text")
        terms = [kept for table in self._tables for kept in table.find(text)]
        terms += [KeptSpan(span) for span in matches if span.start < span.end]
        return sorted(terms, key=lambda kept: (kept.span.start, -kept.span.end))


def _is_whole(text: str, span: Span) -> bool:
    """Return whether a span begins and ends at the edge of a word."""
    edges = (text[max(0, span.start - 1) : span.start + 1], text[span.end - 1 : span.end + 1])
    return not any(_TWO_LETTERS.fullmatch(edge) for edge in edges)
