"""A stored translation of a text that differs from another one only in its kept spans."""

import re
from collections import defaultdict
from itertools import pairwise

from service.kept.carried_spans import carried_spans
from service.kept.kept_kinds import FLAGS
from service.kept.kept_spans import KeptSpan, kept_spans
from service.memories.likeness import alike
from service.numbers.comparison import Comparison
from service.numbers.number_forms import SPACES, forms_of
from service.numbers.verified_spans import narrow, verified_spans
from service.text.spans import Span, replace_spans

_NEXT_ARGUMENT = re.compile(rf"(?<!%)%{FLAGS}(?:[A-Za-z]{{1,3}}(?!\w|%(?!%))|@|<PRI)|\{{(?::[^{{}}]*)?\}}")
"""A placeholder whose place tells its argument: %s, %-5d, %@, {}, {:.2f}; not %1$s, %(name)s or {0}."""
_PLAIN_SPACES = str.maketrans(dict.fromkeys(SPACES, " "))


def adapted(text: str, source: str, target: str, languages: tuple[str, str]) -> str | None:
    """Return the stored translation `target` of `source` with the kept spans of `text`, numbers in the form of the
    target's language; None if the texts differ otherwise, if the translation does not show where each changed span
    belongs, or if placeholders would change places that tell their arguments. `languages` are the source's and the
    target's, without regions."""
    new, stored = _spans(text, languages), _spans(source, languages)
    if len(new) != len(stored) or _between(text, new) != _between(source, stored):
        return None
    changes: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for own, other in zip(new, stored, strict=True):
        forms = own.span.of(text), other.span.of(source)
        changes[forms[1], _written(other, source)].append((forms[0], _written(own, text)))
    order = _in_turn([(own.span.of(text), other.span.of(source)) for own, other in zip(new, stored, strict=True)])
    places: list[tuple[Span, str]] = []
    forms_at: dict[Span, str] = {}
    for (plain, written), found in changes.items():
        if found == [(plain, written)] * len(found) and plain not in order:
            continue
        if len({*found}) > 1 or not _same_plural(plain, found[0][0], languages[1]):
            return None
        by_form = [(written, found[0][1]), (plain, found[0][0])]
        here = next((spans for form, becomes in by_form if (spans := _places(target, form, becomes))), [])
        if len(here) != len(found):
            return None
        places += here
        forms_at |= {span: plain for span, _ in here}
    places.sort(key=lambda place: place[0].pair)
    if [form for span, _ in places if (form := forms_at[span]) in order] != order:
        return None
    if any(left[0].end > right[0].start for left, right in pairwise(places)):
        return None
    return replace_spans(target, places)[0]


def _spans(text: str, languages: tuple[str, str]) -> list[KeptSpan]:
    wanted = [span for span in verified_spans(narrow(text), forms_of(languages[0])) if not span.is_word]
    numbers = [*carried_spans(text, Comparison(wanted, wanted, [], []), *languages)] if wanted else []
    return kept_spans(text, (), languages[0], terms=numbers)


def _in_turn(forms: list[tuple[str, str]]) -> list[str]:
    """Return the stored forms of placeholders that take the next argument, in order; [] if none of them is changed.

    Args:
        forms: the new form and the stored form of each kept span.
    """
    taking = [(new, stored) for new, stored in forms if _NEXT_ARGUMENT.search(new)]
    return [stored for _, stored in taking] if any(new != stored for new, stored in taking) else []


def _written(kept: KeptSpan, text: str) -> str:
    return kept.span.of(text) if kept.written is None else kept.written


def _between(text: str, spans: list[KeptSpan]) -> str:
    return alike(replace_spans(text, [(span.span, "\0") for span in spans])[0])


def _places(target: str, form: str, becomes: str) -> list[tuple[Span, str]]:
    """Return where a form stands alone in a text. Any space between thousands counts."""
    form = form.translate(_PLAIN_SPACES)
    before = r"(?<!\w)(?<!\d[.,])" * form[:1].isalnum()
    behind = r"(?!\w)(?![.,]\d)" * form[-1:].isalnum()
    matches = re.finditer(before + re.escape(form) + behind, target.translate(_PLAIN_SPACES)) if form else ()
    return [(Span(*match.span()), becomes) for match in matches]


def _same_plural(first: str, second: str, language: str) -> bool:
    """Return whether two numbers take words of the same form in a language, as 2 and 3 do in Russian, but not 5."""
    locale = forms_of(language).locale
    if locale is None or not (first.isdecimal() and second.isdecimal()):
        return True
    return locale.plural_form(int(first)) == locale.plural_form(int(second))
