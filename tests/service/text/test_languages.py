"""What models and people call a language, and which one is meant."""

import json
from itertools import islice
from pathlib import Path

import pytest

from manifest.schema import Language
from service.text import languages
from service.text.languages import ANY, Direction, Side, TranslatorLanguages, WantedLanguage, canonical, subtag

CODES: dict[str, list[str]] = json.loads(Path(__file__).with_name("language_codes.json").read_text())


def spoken(*codes: str) -> list[Language]:
    return [Language(code=code, source_prefix=(), target_prefix=(i,)) for i, code in enumerate(codes)]


@pytest.mark.parametrize(("family", "count"), [("NLLB-200", 202), ("M2M100", 100), ("mBART-50", 52), ("Argos", 48)])
def test_all_languages_of_a_family_have_forms_of_their_own(family: str, count: int) -> None:
    forms = {canonical(code) for code in CODES[family]}
    assert None not in forms
    assert len(forms) == len(CODES[family]) == count


@pytest.mark.parametrize(
    ("form", "codes"),
    [
        ("en", "en eng eng_Latn __en__ en_XX EN en-US >>eng<<"),
        ("fr", "fr fra fre fra_Latn FR fr_FR fr-XX >>fra<< __fr__"),
        ("zh", "zh zho cmn zho_Hans cmn_Hans zh-Hans zh_CN zh-SG cn zhs"),
        ("zh-Hant", "zho_Hant zh_TW zh-HK zh-Hant-HK zt zht"),
        ("yue", "yue yue_Hant"),
        ("pt", "pt por por_Latn pt_XX"),
        ("pt-BR", "pb pt_br pt-BR"),
        ("sr", "sr srp_Cyrl"),
        ("sr-Latn", "sr_Latn srp_Latn hbs sr-Latn-RS"),
        ("ar", "ar arb arb_Arab ar_AR"),
        ("fa", "fa pes_Arab fa_IR"),
        ("fa-AF", "prs prs_Arab"),
        ("ak", "aka aka_Latn"),
        ("tw", "tw twi twi_Latn"),
        ("ko", "ko kor_Hang kor_Kore"),
        ("nso", "ns nso"),
        ("fil", "tl tgl_Latn fil"),
        ("lv", "lvs lvs_Latn"),
        ("sq", "als_Latn sqi"),
        ("tk", "tuk tuk_Latn"),
        ("acm", "acm_Arab acm"),
        ("nb", "nob nob_Latn nb"),
        ("no", "nor no"),
        ("fr-CA", "fr-CA fr_ca"),
        ("es-419", "es-419"),
        ("mul", "mul"),
        ("ine", "ine"),
    ],
)
def test_all_names_of_a_language_have_one_form(form: str, codes: str) -> None:
    assert {canonical(code) for code in codes.split()} == {form}


@pytest.mark.parametrize("code", ["ROMANCE", "ze_zh", "xx", "und", "", "e", "french", "en-", "de-DE-1996", "en" * 1000])
def test_codes_of_no_language_have_no_form(code: str) -> None:
    assert canonical(code) is None


def test_invented_codes_of_clients_are_not_kept() -> None:
    """The library keeps all tags that it has parsed: a client could fill the memory with them."""
    before = languages._canonical.cache_info().currsize
    for n in range(100):
        canonical(f"en-{n:08}-x-{n}")
    assert languages._canonical.cache_info().currsize == before


def test_rules_for_texts_go_by_the_language_itself() -> None:
    found = [subtag(code) for code in ("zh-Hant", "sr-Latn", "pt-BR", "fra_Latn", "ROMANCE", "en")]
    assert found == ["zh", "sr", "pt", "fr", "ROMANCE", "en"]
    direction = Direction("zh-Hant", "sr-Latn")
    assert (direction.source_subtag, direction.target_subtag) == ("zh", "sr")


def named(side: Side, code: str) -> list[str]:
    return next(filter(None, map(side.named, WantedLanguage.closest_first(code))), [])


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("fra_Latn", ["fr"]),
        ("fr", ["fr"]),
        ("fr-CA", ["fr"]),
        ("zh-TW", ["zh-Hant"]),
        ("zh", []),
        ("pt-BR", ["pt-BR"]),
        ("pt-PT", []),
        ("no", ["nb"]),
        ("no-NO", ["nb"]),
        ("ROMANCE", ["ROMANCE"]),
        ("romance", []),
        ("de", []),
    ],
)
def test_a_region_falls_back_to_its_language_and_never_to_another_script(code: str, name: list[str]) -> None:
    side = Side(spoken("fra_Latn", "zho_Hant", "pb", "nob_Latn", "ROMANCE"))
    assert [*side.by_name] == ["fr", "zh-Hant", "pt-BR", "nb", "ROMANCE"]
    assert named(side, code) == name


def test_the_first_of_two_languages_with_one_form_is_meant_and_the_other_keeps_its_code() -> None:
    side = Side(spoken("tuk", "tuk_Latn", "yue_Hant"))
    assert {name: language.code for name, language in side.by_name.items()} == {
        "tk": "tuk",
        "tuk_Latn": "tuk_Latn",
        "yue": "yue_Hant",
    }
    found = [named(side, code) for code in ("tk", "tuk", "tuk_Latn", "tuk-Latn")]
    assert found == [["tk"], ["tk"], ["tuk_Latn"], ["tk"]]


def test_a_models_own_code_wins() -> None:
    """Of M2M100, `no` and `tl` are codes; a model may also have one that others would be called by."""
    side = Side(spoken("nor", "no", "cmn", "zh_TW"))
    assert {name: language.code for name, language in side.by_name.items()} == {
        "nor": "nor",
        "no": "no",
        "zh": "cmn",
        "zh-Hant": "zh_TW",
    }
    assert [named(side, code) for code in ("no", "nor", "nb", "zh_TW")] == [["no"], ["nor"], ["no"], ["zh-Hant"]]


def test_every_source_goes_to_every_other_target_with_the_tokens_of_both() -> None:
    """In NLLB source and target begin with their own languages, in OPUS-MT a source begins with its target's."""
    english, french, breton = "eng_Latn", "fra_Latn", ">>bre<<"
    sources = [
        Language(code=english, source_prefix=(7,), target_prefix=()),
        Language(code=french, source_prefix=(8,), target_prefix=()),
    ]
    targets = [
        Language(code=french, source_prefix=(), target_prefix=(8,)),
        Language(code=breton, source_prefix=(9,), target_prefix=()),
    ]
    assert [*TranslatorLanguages(sources, targets).directions(ANY, ANY)] == [
        Direction("en", "fr", (7,), (8,)),
        Direction("en", "br", (7, 9), ()),
        Direction("fr", "br", (8, 9), ()),
    ]


def test_directions_are_made_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be tens of thousands."""
    many = spoken(*CODES["NLLB-200"])
    made = []
    monkeypatch.setattr(languages, "Direction", lambda *given: made.append(given) or given)
    assert len([*islice(TranslatorLanguages(many, many).directions(ANY, ANY), 2)]) == len(made) == 2


def test_a_model_of_many_sources_is_told_none_and_reads_texts_of_the_asked_language() -> None:
    model = TranslatorLanguages(spoken("mul"), spoken("eng"))
    *_, last = WantedLanguage.of_sources("sw-KE")
    [direction] = model.directions(last, ANY)
    assert (direction.source, direction.target) == ("sw", "en")
    assert [*model.directions(WantedLanguage.of_sources("en")[-1], ANY)] == []
    assert [direction.source for direction in model.directions(ANY, ANY)] == ["mul"]
    assert not any([*model.directions(wanted, ANY)] for wanted in WantedLanguage.of_sources("xx"))
