"""The syntax of ICU messages comes out as it went in, whatever their branches become."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyicumessageformat import Parser

from service.kept.icu_messages import has_icu_messages, icu_messages
from service.text.sentences import join_sentences, sentence_spans
from tests.service.stand_ins import protect, restore

DOGS = "{n, plural, =0 {No dogs.} one {# dog, {name}!} other {# dogs}}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DOGS, ["{n, plural, =0 {", "} one {", "#", "} other {", "#", "}}"]),
        ("{g, select, f {She} other {They}}", ["{g, select, f {", "} other {", "}}"]),
        ("{n, selectordinal, one {#st day} other {#th}}", ["{n, selectordinal, one {", "#", "} other {", "#", "}}"]),
        (
            "{g, select, f {{n, plural, one {# cat} other {cats}}} other {They}}",
            ["{g, select, f {{n, plural, one {", "#", "} other {", "}}} other {", "}}"],
        ),
        (f"Hello. {DOGS} Bye.", ["{n, plural, =0 {", "} one {", "#", "} other {", "#", "}}"]),
        (f"You have {DOGS}.", [DOGS]),
        (f"{DOGS} are here", [DOGS]),
        ("{n, plural, one {a", ["{n, plural, one {a"]),
        ("{n, plural, one {'{a}'} other {b}}", ["{n, plural, one {'{a}'} other {b}}"]),
        ("{n, number} {name, date}", []),
    ],
)
def test_syntax_is_kept_and_branches_are_not(text: str, expected: list[str]) -> None:
    assert [span.of(text) for span, _ in icu_messages(text)] == expected


def translated(text: str, words: str) -> str:
    """The text with each of its sentences replaced by words, which may have the stand-ins of the sentence."""
    protected = protect(text)
    spans = [span for span in sentence_spans(protected.text, "en") if protected.has_words(span)]
    stand_ins = " ".join(placeholder.stand_in for placeholder in protected.placeholders if placeholder.stand_in)
    joined, _ = join_sentences(protected.text, spans, [words + span.of(protected.text) for span in spans], "en", "fr")
    assert stand_ins.split() == [placeholder.stand_in for placeholder in protected.placeholders if placeholder.stand_in]
    return restore(protected, joined).text


def test_each_branch_is_translated_on_its_own() -> None:
    assert translated(DOGS, "X ") == "{n, plural, =0 {X No dogs.} one {X # dog, {name}!} other {X # dogs}}"
    assert translated(f"Hello. {DOGS} Bye.", "X ") == (
        "X Hello. {n, plural, =0 {X No dogs.} one {X # dog, {name}!} other {X # dogs}} X Bye."
    )


def test_an_apostrophe_before_a_brace_does_not_quote_it() -> None:
    text = "{n, plural, one {{name} runs} other {all}}"
    assert translated(text, "l'") == "{n, plural, one {l''{name} runs} other {l'all}}"


TEXTS = st.lists(
    st.sampled_from(["Dogs", "a", "{name}", "{d, date, short}", "it's", ".", "!", "%s", "犬", "5"]),
    min_size=1,
    max_size=4,
).map(" ".join)


def _plural(branches: list[str]) -> str:
    return "{n, plural, " + " ".join(f"={i} {{{branch}}}" for i, branch in enumerate(branches)) + " other {# cats}}"


def _select(branches: list[str]) -> str:
    return "{g, select, " + "".join(f"k{i}{{{branch}}}\n  " for i, branch in enumerate(branches)) + "other{they}}"


MESSAGES = st.recursive(
    TEXTS,
    lambda inner: st.lists(inner, min_size=1, max_size=3).flatmap(lambda b: st.sampled_from([_plural(b), _select(b)])),
)


def outline(text: str) -> list[str]:
    tokens: list[dict[str, str]] = []
    Parser({}).parse(text, tokens)
    return [token["text"] for token in tokens if token["type"] not in ("text", "space")]


@given(MESSAGES.filter(has_icu_messages), st.sampled_from(["", "X ", "l'", "d' "]))
def test_a_program_finds_the_same_names_and_keys_in_a_translation(message: str, words: str) -> None:
    assert outline(translated(message, words)) == outline(message)
