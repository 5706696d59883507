"""What a request names is found as whole words, and comes out as it says."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.base.errors import LimitExceeded
from service.glossaries.terms import MAX_PATTERN_MATCHES, Terms, TermTable
from service.kept.kept_spans import kept_spans
from service.kept.placeholders import Protected
from service.kept.restoration import keep_original
from service.text.spans import Span
from tests.service.stand_ins import protect, restore


def protected(text: str, terms: Terms) -> Protected:
    return protect(text, terms=terms.find(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Go to Google. Go!", ["Go", "Go"]),
        ("New York and New Yorkers in New", ["New York"]),
        ("New York City", ["New York City"]),
        ("C++ or xC++x, C++!", ["C++", "C++"]),
        ("犬は犬小屋にいる", ["犬", "犬"]),
        ("ABC-12, ABC-x, Go-ABC-3", ["ABC-12", "Go", "ABC-3"]),
        ("go GO", []),
    ],
)
def test_terms_are_found_as_whole_words(text: str, expected: list[str]) -> None:
    terms = Terms(["Go", "New York", "New York City", "C++", "犬"], ["[A-Z]{3}-[0-9]+"], {})
    assert [kept.span.of(text) for kept in terms.find(text)] == expected


def test_a_glossarys_term_comes_out_for_that_of_the_source() -> None:
    terms = Terms(["Kevin"], [], {"dog": "clebs", "dog house": "niche"})
    text = "The dog of Kevin, {name}, has a dog house."
    shown = protected(text, terms)
    words = [one.stand_in for one in shown.placeholders]
    assert shown.text == "The {} of {}, {}, has a {}.".format(*words)
    translation = "Le {} de {}, {}, a une {}.".format(*words)
    assert restore(shown, translation).text == "Le clebs de Kevin, {name}, a une niche."


def test_a_line_of_terms_alone_needs_no_model() -> None:
    text = "dog, Kevin!\n{name} dog"
    shown = protected(text, Terms(["Kevin"], [], {"dog": "clebs"}))
    assert not shown.has_words(Span(0, len(shown.text)))
    restored = keep_original(shown)
    assert restored.text == "clebs, Kevin!\n{name} clebs"
    assert [(old.of(text), new.of(restored.text)) for old, new in restored.copies] == [
        ("dog", "clebs"),
        (", Kevin!\n{name} ", ", Kevin!\n{name} "),
        ("dog", "clebs"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello {name}, your name", ["{name}", "name"]),
        ("name at https://name.org/name, name@x.org", ["name", "https://name.org/name", "name@x.org"]),
        ("`git name` and <b name=1> or name_size", ["`git name`", "<b name=1>", "name_size"]),
        ("{n, plural, one {a name} other {name}}", ["{n, plural, one {", "name", "} other {", "name", "}}"]),
        ("a {big} dog, `c`, x.org", ["a {big} dog", "`c`", "x.org"]),
        ("a/b.txt c", ["b.txt c"]),
    ],
)
def test_a_term_that_is_a_part_of_a_longer_span_yields_to_it(text: str, expected: list[str]) -> None:
    terms = Terms(["name", "plural", "a {big} dog", "`c`"], [], {"x.org": "y", "b.txt c": "d"})
    assert [kept.span.of(text) for kept in kept_spans(text, terms=terms.find(text))] == expected


def test_a_term_comes_before_all_other_kinds() -> None:
    terms = Terms([], [], {"{name}": "Nom", "Łódź": "Lodz", "x.org": "y"})
    text = "{name} of Łódź at https://x.org/{name}"
    kept = kept_spans(text, can_write=str.isascii, terms=terms.find(text))
    assert [(one.span.of(text), one.written) for one in kept] == [
        ("{name}", "Nom"),
        ("Łódź", "Lodz"),
        ("https://x.org/{name}", None),
    ]


@given(
    st.lists(st.sampled_from(["dog", "Kevin", "a", "houses", "犬", "ÉTÉ"]), min_size=1),
    st.sampled_from([" ", ", ", "\n"]),
)
def test_each_term_is_found_wherever_it_stands(words: list[str], between: str) -> None:
    terms = Terms(["Kevin", "犬"], ["É.É"], {"dog": "clebs"})
    found = [kept.span.of(between.join(words)) for kept in terms.find(between.join(words))]
    assert found == [word for word in words if word not in ("a", "houses")]


TERMS = st.sampled_from(["a", "ab", "abc", "a b", "b", "+", "+a", "a+", "犬", "犬小屋", "é", "B."])


@example({"ab", "abc"}, "ab")
@given(st.sets(TERMS, max_size=8), st.lists(TERMS | st.sampled_from([" ", "x", "\n", "小"])).map("".join))
def test_terms_are_found_as_if_each_were_looked_for_everywhere(terms: set[str], text: str) -> None:
    text = re.sub(" +", " ", text)  # several spaces count as one
    spans = [Span(start, start + len(term)) for start in range(len(text)) for term in sorted(terms, key=len)[::-1]
             if text.startswith(term, start)]  # fmt: skip
    whole = [span for span in spans if not re.search("[a-zA-Zé]{2}", text[max(0, span.start - 1) : span.start + 1])
             and not re.search("[a-zA-Zé]{2}", text[span.end - 1 : span.end + 1])]  # fmt: skip
    first = {span.start: span for span in reversed(whole)}
    assert [kept.span for kept in TermTable(dict.fromkeys(terms)).find(text)] == [first[at] for at in sorted(first)]


def test_terms_of_a_request_come_before_stored_ones() -> None:
    terms = Terms(["Kevin"], [], {"dog": "clebs"}, TermTable({"dog": "chien", "Kevin": "Kévin", "dog house": "niche"}))
    found = [(one.span.pair, one.written) for one in terms.find("dog Kevin dog house")]
    assert found == [((0, 3), "clebs"), ((0, 3), "chien"), ((4, 9), None), ((4, 9), "Kévin"), ((10, 19), "niche"),
                     ((10, 13), "clebs")]  # fmt: skip
    assert [one.written for one in kept_spans("dog Kevin dog house", terms=terms.find("dog Kevin dog house"))] == [
        "clebs",
        None,
        "niche",
    ]


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|aa)+$", "a*a*a*a*a*a*b", "(.*)*x"])
def test_no_pattern_takes_long(pattern: str) -> None:
    assert len(Terms([], [pattern], {}).find("a" * 20_000)) <= 1


@pytest.mark.parametrize("pattern", ["", "x*", "a"])
def test_a_pattern_that_matches_everywhere_is_refused(pattern: str) -> None:
    with pytest.raises(LimitExceeded, match="10,000"):
        Terms([], [pattern], {}).find("a" * (MAX_PATTERN_MATCHES + 1))
