"""Find the terms of a request in a text: terms that stay unchanged, and terms with a translation in a glossary."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from service.base.errors import LimitExceeded
from service.glossaries.casing import begins_sentence, has_capitals, in_capitals, is_in_capitals, with_capital
from service.glossaries.inflection import Lemmatize, lemmatizer, root_of
from service.glossaries.words import Word, WordTree, words_of
from service.kept.kept_spans import KeptSpan
from service.schemas.patterns import compiled
from service.schemas.requests import GlossaryTerm
from service.text.spans import Span

MAX_PATTERN_MATCHES = 10_000
"""Maximum number of matches in one text, for all patterns together."""
ANY_LETTERS = ""
"""Stands for the spelling of a term that is found in capital and small letters."""
Translations = Mapping[str, str | GlossaryTerm | None]
"""Terms and their translations; None for a term that stays unchanged, and is found only as it is written."""
MAX_INFLECTED_WORDS = 20
"""Maximum number of words, signs and spaces in a term that is found in inflected forms."""
MAX_TERMS_OF_ROOTS = 10
"""Maximum number of terms that have the same roots, such as meet and meeting, and are found in inflected forms."""


@dataclass(frozen=True)
class _Term:
    text: str
    words: Sequence[str]
    written: str | None
    is_exact: bool


class TermTable:
    """Terms and their translations. The search time hardly depends on their number.

    A term in small letters is found in any letters. A term with capitals is found as it is written, and in capitals
    only. Inflected forms are found if the language (a subtag) has a lemmatizer: loading it takes up to a second, so a
    table is made in a thread.
    """

    def __init__(self, translations: Translations, language: str = "") -> None:
        terms = [_term(text, translation) for text, translation in translations.items()]
        inexact = [term for term in terms if not term.is_exact]
        lemmatize = lemmatizer(language) if inexact else None
        self._forms = _Forms(inexact, lemmatize) if lemmatize else None
        self._terms: WordTree[dict[str, _Term]] = WordTree(dict)
        for term in terms:
            self._terms.at(map(str.casefold, term.words)).setdefault(term.text, term)
        for term in inexact:
            spellings = self._terms.at(map(str.casefold, term.words))
            spellings.setdefault(term.text.upper(), term)
            if not has_capitals(term.text):
                spellings.setdefault(ANY_LETTERS, term)

    def find(self, text: str, is_exact: bool = False) -> Iterator[KeptSpan]:
        """Yield terms that are whole words of a text, in order. Of terms with the same start only the longest counts.
        With `is_exact`, all terms are found only as they are written."""
        words = words_of(text)
        folded = [word.text.casefold() for word in words]
        plain = "".join([word.text for word in words])
        places = [0, *accumulate(len(word.text) for word in words)]
        forms = self._forms.find(words) if self._forms and not is_exact else {}
        for start in range(len(words)):
            longest = forms.get(start)
            for end, spellings in reversed([*self._terms.find(folded, start)]):
                if longest is not None and end < longest[0]:
                    break
                shown = plain[places[start] : places[end]]
                term = spellings.get(shown) or spellings.get(ANY_LETTERS)
                if term is not None and (term.text == shown or not is_exact):
                    longest = end, term
                    break
            if longest is not None:
                yield _kept(text, words[start : longest[0]], longest[1], is_exact)


class _Forms:
    def __init__(self, terms: Iterable[_Term], lemmatize: Lemmatize) -> None:
        self._lemmatize = lemmatize
        self._terms: WordTree[list[_Term]] = WordTree(list)
        for term in (term for term in terms if len(term.words) <= MAX_INFLECTED_WORDS):
            of_roots = self._terms.at(root_of(word, lemmatize) for word in term.words)
            if len(of_roots) < MAX_TERMS_OF_ROOTS:
                of_roots.append(term)

    def find(self, words: Sequence[Word]) -> dict[int, tuple[int, _Term]]:
        """Return the longest term that begins at each word, and the number of the first word after it."""
        roots = [root_of(word.text, self._lemmatize) for word in words]
        longest = {}
        for start in range(len(words)):
            for end, terms in reversed([*self._terms.find(roots, start)]):
                shown = [word.text for word in words[start:end]]
                term = next((term for term in terms if self._are_forms(shown, term.words)), None)
                if term is not None:
                    longest[start] = end, term
                    break
        return longest

    def _are_forms(self, shown: Sequence[str], words: Sequence[str]) -> bool:
        """Return whether words are inflected forms of a term's words, with capitals where the term has some."""
        is_shouted = is_in_capitals("".join(shown))
        is_alone = sum(word[0].isalpha() for word in words) == 1
        pairs = [*zip(shown, words, strict=True)]
        have_case = all(is_shouted or has_capitals(form[0]) or not has_capitals(word[0]) for form, word in pairs)
        return have_case and all(self._is_form(form, word, is_alone) for form, word in pairs)

    def _is_form(self, shown: str, word: str, is_alone: bool) -> bool:
        lemma, folded = self._lemmatize(shown), word.casefold()
        if is_alone and has_capitals(word):  # Häuser is a form of Haus, but Apples is no form of Apple
            return lemma == word
        if folded in (shown.casefold(), lemma.casefold()):
            return True
        # Both may be inflected, as an adjective beside a noun is.
        return not is_alone and lemma.casefold() == self._lemmatize(word).casefold() != shown.casefold()


class Terms:
    """The terms of one request.

    Args:
        keep: strings that stay unchanged.
        patterns: regular expressions; their matches stay unchanged.
        glossary: terms and their translations.
        stored_terms: the terms of a stored glossary. Terms of the request come before them.
        language: the language of the texts.
        is_exact: whether all terms are found only as they are written.
    """

    def __init__(
        self,
        keep: Iterable[str] = (),
        patterns: Iterable[str] = (),
        glossary: Mapping[str, str | GlossaryTerm] | None = None,
        stored_terms: TermTable | None = None,
        language: str = "",
        is_exact: bool = False,
    ) -> None:
        self._patterns, self._is_exact = [*map(compiled, patterns)], is_exact
        named: Translations = {**dict.fromkeys(keep), **(glossary or {})}
        tables = TermTable(named, language) if named else None, stored_terms
        self._tables = [table for table in tables if table is not None]

    def find(self, text: str) -> list[KeptSpan]:
        """Return the terms that are whole words of a text. Of two terms with the same start the longer comes first.
        Raises LimitExceeded: the patterns match too often."""
        if not self._tables and not self._patterns:
            return []
        spans = (Span(*match.span()) for pattern in self._patterns for match in pattern.finditer(text))
        matches = [*islice(spans, MAX_PATTERN_MATCHES + 1)]
        if len(matches) > MAX_PATTERN_MATCHES:
            raise LimitExceeded(f"Patterns of `keep` match more than {MAX_PATTERN_MATCHES:,} times in a text")
        terms = [kept for table in self._tables for kept in table.find(text, self._is_exact)]
        terms += [KeptSpan(span) for span in matches if span.start < span.end]
        return sorted(terms, key=lambda kept: (kept.span.start, -kept.span.end))


def _term(text: str, translation: str | GlossaryTerm | None) -> _Term:
    words = [word.text for word in words_of(text)]
    if isinstance(translation, GlossaryTerm):
        return _Term("".join(words), words, translation.translation, translation.case_sensitive)
    return _Term("".join(words), words, translation, is_exact=translation is None)


def _kept(text: str, words: Sequence[Word], term: _Term, is_exact: bool) -> KeptSpan:
    span = Span(words[0].start, words[-1].end)
    written, shown = term.written, span.of(text)
    if written is None or term.is_exact or is_exact:
        return KeptSpan(span, written=written)
    if is_in_capitals(shown) and not is_in_capitals(term.text):
        return KeptSpan(span, written=in_capitals(written))
    if has_capitals(shown[:1]) and not has_capitals(term.text[:1]) and not begins_sentence(text, span.start):
        return KeptSpan(span, written=with_capital(written))
    return KeptSpan(span, written=written, at_start=with_capital(written))
