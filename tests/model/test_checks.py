import pytest

from model.evaluation.checks import (
    bare_word,
    contains,
    ends_with,
    find_repetition,
    is_copy,
    is_in_capitals,
    n_words,
    problems_in,
)

LOOPS = [
    ("He is at home.", "Il est à la maison à la maison."),
    ("He sleeps.", "Il dort dort dort."),
    ("A brown dog.", "Un chien brun, un chien brun, un chien."),
    ("Bananas.", "Des banananananes."),
    ("He is at home.", "彼は家に家に家にいる。"),
    ("He went to school.", "彼は学校に行きました。彼は学校に行きました。"),
]
NO_LOOPS = [
    ("He sleeps.", "Il dort."),
    ("No, no, no!", "Non, non, non !"),
    ("Left, right, left, right!", "À gauche, à droite, à gauche, à droite !"),
    ("We left.", "Nous nous sommes en allés."),
    ("Two by two.", "Deux à deux."),
    ("はいはいはい。", "Yes, yes, yes."),
    ("He talked and talked and talked.", "彼は話して話して話して疲れた。"),
    ("Day after day she waited.", "来る日も来る日も彼女は待った。"),
]


@pytest.mark.parametrize(("source", "output"), LOOPS)
def test_what_goes_round_is_found(source: str, output: str) -> None:
    assert find_repetition(output, source)


@pytest.mark.parametrize(("source", "output"), NO_LOOPS)
def test_what_the_source_or_the_language_repeats_is_no_loop(source: str, output: str) -> None:
    assert find_repetition(output, source) is None


@pytest.mark.parametrize(
    ("text", "n"), [("I don't know.", 4), ("私は知らない。", 3), ("2018年にTomと会った", 5), ("ｱ・イ", 2)]
)
def test_two_letters_of_japanese_count_as_a_word(text: str, n: int) -> None:
    assert n_words(text) == n


def test_a_copy_is_one_whatever_its_case_and_punctuation() -> None:
    assert is_copy("THE DOG", "The dog.")
    assert not is_copy("Le dog", "The dog.")


@pytest.mark.parametrize(
    "text", ["12 500,5 euros", "12,500.5 euros", "€12500.5", "12'500,5", "12\N{NO-BREAK SPACE}500,5"]
)
def test_a_number_is_kept_however_it_is_written(text: str) -> None:
    assert problems_in("It costs 12,500.5 euros.", text, keep=["12500.5"]) == []


@pytest.mark.parametrize("text", ["1250,5 euros", "12 500,55 euros", "112 500,5 euros", "12 500 euros, 5"])
def test_another_number_is_not(text: str) -> None:
    assert not contains("12500.5", text)


def test_names_are_whole_words() -> None:
    assert contains("Brennecke", "chez Brennecke's")
    assert not contains("Brennecke", "à Brenne")
    assert not contains("Ngozi", "Ngozis")


def test_patterns_are_of_whole_words_whatever_the_case() -> None:
    assert problems_in("dogs", "LE CHIEN", must=["chiens?"]) == []
    assert problems_in("dogs", "la chienne", must=["chiens?"]) == ["chiens?"]
    assert problems_in("dogs", "le chien et le dog", never=["dog"]) == ["not: dog"]


@pytest.mark.parametrize(
    ("pattern", "is_found"),
    [("犬", True), ("Tom", True), ("三匹", False), ("17", False), ("十?三匹", True), ("om", False)],
)
def test_patterns_of_japanese_are_of_letters_but_numbers_are_words(pattern: str, is_found: bool) -> None:
    assert (problems_in("dogs", "Tomは犬を十三匹、２０１７年に見た。", must=[pattern]) == []) is is_found


def test_a_number_is_kept_in_full_width_and_not_in_a_larger_one() -> None:
    assert problems_in("It costs 12,500.5 euros.", "値段は１２，５００．５ユーロだ。", keep=["12500.5"]) == []
    assert problems_in("There are 42.", "４２万ある。", keep=["42"]) == ["42 kept"]


def test_typographic_apostrophes_and_composed_accents_are_like_others() -> None:
    text = "aujourd\N{RIGHT SINGLE QUOTATION MARK}hui e\N{COMBINING ACUTE ACCENT}té"
    assert problems_in("?", text, must=["aujourd'hui été"]) == []


@pytest.mark.parametrize(
    ("output", "ending", "expected"),
    [
        ("Où ?", "?", True),
        ("« Où ? »", "?", True),
        ("Où.", "?", False),
        ("La gare", "word", True),
        ("La gare.", "word", False),
        ("La (vieille) gare)", "word", True),
        ("Non !", "!", True),
        ("どこですか。", "?", True),
        ("「どこなの。」", "?", True),
        ("ここです。", "?", False),
        ("駅の前", "word", True),
        ("駅の前。", "word", False),
    ],
)
def test_endings(output: str, ending: str, expected: bool) -> None:
    assert ends_with(output, ending) is expected  # type: ignore[arg-type]


def test_capitals_may_hold_a_unit_but_no_words() -> None:
    assert is_in_capitals("LE TRAIN PART À 17h45")
    assert not is_in_capitals("LE TRAIN part à 17 h")


def test_marks_may_be_as_wide_as_kanji() -> None:
    assert problems_in("Where?", "どこ？", must=["どこ"], ends="?") == []
    assert problems_in("No!", "いや！", must=["いや"], ends="!") == []
    assert problems_in("The beach", "浜辺！", must=["浜辺"], ends="word") == ["no punctuation at the end"]


def test_all_that_is_unmet_is_said() -> None:
    found = problems_in(
        "Where is it, Ngozi?",
        "where is it ngoz",
        must=["où"],
        never=["is"],
        keep=["Ngozi"],
        ends="?",
        capitals=True,
        shortest=5,
        longest=6,
    )
    assert found == ["5 to 6 words, not 4", "où", "not: is", "Ngozi kept", "? at the end", "capitals"]
    assert problems_in("It is.", "It is")[0] == "no copy of the source"


@pytest.mark.parametrize(
    ("language", "text", "bare"),
    [
        ("en", "To sign in!", "sign in"),
        ("en", "Toast", "toast"),
        ("fr", "L\N{RIGHT SINGLE QUOTATION MARK}accueil", "accueil"),
        ("fr", "De l'eau", "eau"),
        ("de", "Die Datei.", "datei"),
        ("de", "Zurück", "zurück"),
        ("ru", "Ещё", "еще"),
        ("ja", "保存してください。", "保存"),
        ("ja", "保存する", "保存"),
        ("ja", "する", "する"),
    ],
)
def test_good_translations_of_a_word_differ_in_capitals_articles_and_marks(language: str, text: str, bare: str) -> None:
    assert bare_word(text, language) == bare
