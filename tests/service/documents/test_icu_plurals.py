import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.documents.contents import ReadOptions
from service.documents.localization.icu_plurals import MAX_LENGTH, with_plural_forms
from service.kept.icu_messages import can_parse

DOGS = "{n, plural, =0{no dogs} one{# dog} other{# dogs}}"


def to(target: str) -> ReadOptions:
    return ReadOptions(source="en", target=target)


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        (DOGS, "de", DOGS),
        (DOGS, "ja", "{n, plural, =0{no dogs} other {# dogs}}".replace("=0{", "=0 {")),
        (
            f"Hello. {DOGS} Bye.",
            "pl",
            "Hello. {n, plural, =0 {no dogs} one {# dog} few {# dogs} many {# dogs} other {# dogs}} Bye.",
        ),
        (
            "You have {n, plural, one{a dog} other{# dogs}}.",
            "de",
            "{n, plural, one {You have a dog.} other {You have # dogs.}}",
        ),
        (
            "{g, select, f{She has} other{They have}} a dog.",
            "ja",
            "{g, select, f {She has a dog.} other {They have a dog.}}",
        ),
        (
            "{a, plural, one{a dog} other{# dogs}} and {b, plural, one{a cat} other{# cats}} play",
            "ja",
            "{a, plural, other {{b, plural, other {{a} dogs and # cats play}}}}",
        ),
        ("{n, selectordinal, one{#st} two{#nd} few{#rd} other{#th}} dog", "ja", "{n, selectordinal, other {#th dog}}"),
    ],
)
def test_a_message_has_the_forms_of_the_target_and_whole_sentences(text: str, target: str, expected: str) -> None:
    assert with_plural_forms(text, to(target)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Hello {name}",
        "No. # of {n, plural, one{a} other{b}} x",
        "{n, plural, one{'{a}'} other{b}} x",
        "{n, plural, one{a",
    ],
)
def test_messages_that_cannot_be_rewritten_stay(text: str) -> None:
    assert with_plural_forms(text, to("ru")) == text


WORDS = st.lists(
    st.sampled_from(["Dogs", "a", "{name}", "#", ".", "{n, plural, one{# dog} other{# dogs}}"]), max_size=5
)


@given(WORDS.map(" ".join))
def test_a_rewritten_message_is_a_message(text: str) -> None:
    new = with_plural_forms(text, to("ru"))
    assert can_parse(new)
    assert len(new) <= MAX_LENGTH
