import pytest

from service.documents.localization.plurals import plural_texts


def sources_of(
    forms: dict[str, str], source: str | None, target: str | None, is_ordinal: bool = False
) -> dict[str, str]:
    """The category of the form that each form of the target is made from."""
    return {category: plural.category for category, plural in plural_texts(forms, source, target, is_ordinal).items()}


DOGS = {"one": "{n} dog", "other": "{n} dogs"}


@pytest.mark.parametrize(
    ("source", "target", "sources"),
    [
        ("en", "ru", {"one": "one", "few": "other", "many": "other", "other": "other"}),
        ("en", "pl", {"one": "one", "few": "other", "many": "other", "other": "other"}),
        ("en", "ja", {"other": "other"}),
        ("en-GB", "pt-BR", {"one": "one", "many": "other", "other": "other"}),
        ("en", "de", {"one": "one", "other": "other"}),
        (
            "en",
            "ar",
            {"zero": "other", "one": "one", "two": "other", "few": "other", "many": "other", "other": "other"},
        ),
        ("en", "tlh", {"one": "one", "other": "other"}),
        (None, "ru", {"one": "one", "other": "other"}),
        ("en", None, {"one": "one", "other": "other"}),
    ],
)
def test_a_language_gets_its_own_forms(source: str | None, target: str | None, sources: dict[str, str]) -> None:
    assert sources_of(DOGS, source, target) == sources


@pytest.mark.parametrize(
    ("forms", "source", "target", "sources"),
    [
        ({"one": "a", "few": "b", "many": "c", "other": "d"}, "ru", "en", {"one": "one", "other": "few"}),
        ({"other": "a"}, "ja", "en", {"one": "other", "other": "other"}),
        ({"zero": "no", **DOGS}, "en", "de", {"zero": "zero", "one": "one", "other": "other"}),
    ],
)
def test_a_form_is_made_from_one_that_is_for_the_same_numbers(
    forms: dict[str, str], source: str, target: str, sources: dict[str, str]
) -> None:
    assert sources_of(forms, source, target) == sources


@pytest.mark.parametrize(("target", "of"), [("ru", "other"), ("de", "one"), ("fr", "one")])
def test_a_form_without_its_number_is_not_used_for_21(target: str, of: str) -> None:
    assert sources_of({"one": "One dog", "other": "{n} dogs"}, "en", target)["one"] == of


def test_ordinal_numbers_have_forms_of_their_own() -> None:
    forms = {"one": "{n}st", "two": "{n}nd", "few": "{n}rd", "other": "{n}th"}
    assert sources_of(forms, "en", "fr", is_ordinal=True) == {"one": "one", "other": "other"}


@pytest.mark.parametrize("dogs", ["%d dogs", "%1$lld dogs", "{{count}} dogs", "%{count} dogs", "{n} dogs"])
def test_a_form_is_translated_with_a_number_that_has_this_form(dogs: str) -> None:
    text = plural_texts({"one": "a dog", "other": dogs}, "en", "ru")["few"]
    assert text.texts == [dogs, "22 dogs"]
    placeholder = dogs.removesuffix(" dogs")
    assert text.translated(["собак", "22 собаки"]) == f"{placeholder} собаки"
    for wrong in ("22", "две собаки", "22 собаки из 22"):
        assert text.translated(["собак", wrong]) == "собак"


def test_a_form_for_fractions_is_translated_as_the_largest_form_is() -> None:
    texts = plural_texts({"one": "a dog", "other": "%d dogs"}, "en", "ru")
    assert texts["other"].texts == texts["many"].texts == ["%d dogs", "25 dogs"]


@pytest.mark.parametrize("dogs", ["%s dogs", "%d of 5 dogs", "%d of %d dogs", "many dogs", "%dogs"])
def test_a_form_without_one_number_is_translated_as_it_is(dogs: str) -> None:
    text = plural_texts({"one": "a dog", "other": dogs}, "en", "ru")["few"]
    assert text.texts == [dogs]
    assert text.translated(["собаки"]) == "собаки"
