from service.kept.slots import MAX_TRIES, Slot, SlotsOfText

NAMES = [Slot("Paris", 10, 20), Slot("Tom", 11, 21), Slot("Boston", 12, 22)]
NUMBERS = [Slot("7", 13, 23), Slot("4", 14, 24)]


def words(text: str, *are_numbers: bool, slots: list[Slot] = NAMES + NUMBERS) -> list[str]:
    chosen = SlotsOfText(slots, text)
    return [chosen.word(i, is_number) for i, is_number in enumerate(are_numbers)]


def test_the_surest_come_first_and_numbers_stand_for_numbers() -> None:
    assert words("See it.", False, True, False, True) == ["Paris", "7", "Tom", "4"]


def test_words_of_the_text_stand_for_nothing() -> None:
    assert words("Tomorrow in PARIS, 17 times.", False, False, True) == ["Boston", "Boston", "4"]


def test_without_digits_names_stand_for_numbers_too() -> None:
    assert words("See it.", False, True, slots=NAMES) == ["Paris", "Paris"]


def test_without_pairs_nothing_stands_for_a_span() -> None:
    assert words("See it.", False, True, slots=[]) == ["", ""]


def test_a_span_keeps_its_word_until_another_one_is_tried() -> None:
    chosen = SlotsOfText(NAMES, "See it.")
    assert [chosen.word(0, False), chosen.word(1, False), chosen.word(0, False)] == ["Paris", "Tom", "Paris"]
    chosen.try_others({0: False})
    assert [chosen.word(0, False), chosen.word(1, False)] == ["Boston", "Tom"]
    assert chosen.of(0) == NAMES[2]


def test_spans_that_no_word_fits_get_none() -> None:
    chosen = SlotsOfText(NAMES, "See it.")
    tried = []
    while word := chosen.word(0, False):
        tried.append(word)
        chosen.try_others({0: False})
    assert len(tried) == MAX_TRIES
    assert chosen.of(0) is None
    chosen.word(1, False)
    chosen.give_up([1])
    assert chosen.word(1, False) == ""
