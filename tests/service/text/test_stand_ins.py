"""Stand-ins are found in a translation however its language writes them, and what they stood for comes out."""

import re

import pytest

from service.text.restoration import restore
from service.text.stand_ins import STAND_INS, in_kanji, named_in_other_letters, written
from tests.service.stand_ins import protect


def found(stand_in: str, translated: str) -> list[str]:
    return [match.group() for match in re.finditer(written(stand_in), translated)]


@pytest.mark.parametrize(
    ("stand_in", "translated", "expected"),
    [
        ("Tom", "Том, Тома, Тому, Томом и Томе.", ["Том", "Тома", "Тому", "Томом", "Томе"]),
        ("Tom", "Томас и Томми в том томе, Фантом, потом", []),
        ("Tom", "ТОМУ видитТома", ["ТОМУ", "Тома"]),
        ("Paul", "Пол, Пола, Полу, Полом, Поле и Поль", ["Пол", "Пола", "Полу", "Полом", "Поле", "Поль"]),
        ("Paul", "Половина и Полина в поле", []),
        ("Nina", "Нина, Нины, Нине, Нину, Ниной", ["Нина", "Нины", "Нине", "Нину", "Ниной"]),
        ("Nina", "Нинель", []),
        ("Laura", "Лаура с Лорой и Ларой", ["Лаура", "Лорой"]),
        ("Sophie", "Софи, София, Софьей, Софией", ["Софи", "София", "Софьей", "Софией"]),
        ("Julia", "Юлия, Юлию, Джулией", ["Юлия", "Юлию", "Джулией"]),
        ("Daniel", "Даниэль, Даниэля, Даниелем", ["Даниэль", "Даниэля", "Даниелем"]),
        ("Simon", "Саймон и Симона", ["Саймон", "Симона"]),
        ("Lima", "Лима, Лимой, Лимон", ["Лима", "Лимой"]),
        ("Google", "Google, Гугла, GOOGLE", ["Google", "Гугла", "GOOGLE"]),
        ("Toronto", "в Торонто", ["Торонто"]),
        ("Tom", "トムはトムさん。アトム、トムソン", ["トム", "トム"]),
        ("Victor", "ビクターとヴィクトル", ["ビクター", "ヴィクトル"]),
        ("David", "デビッドとデイヴィッド", ["デビッド", "デイヴィッド"]),
        ("Madrid", "マドリードかマドリッドで", ["マドリード", "マドリッド"]),
        ("Tokyo", "東京都へ", ["東京"]),
        ("Kyoto", "東京都から京都へ", ["京都"]),
        ("48", "48冊、４８冊、四十八冊、四八冊", ["48", "４８", "四十八", "四八"]),
        ("48", "148と百四十八と四十八万、1４８", []),
        ("1985", "一九八五年か千九百八十五年", ["一九八五", "千九百八十五"]),
        ("Xxx", "Xxx, XXX, Xxxx", ["Xxx", "XXX"]),
    ],
)
def test_a_stand_in_is_found_as_russian_and_japanese_write_it(
    stand_in: str, translated: str, expected: list[str]
) -> None:
    assert found(stand_in, translated) == expected


def test_every_name_is_known_in_both() -> None:
    names = [*STAND_INS["person"], *STAND_INS["place"]]
    assert all(written(name).count("|") >= 2 for name in names)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("48", ("４８", "四八", "四十八")),
        ("10", ("１０", "一〇", "十")),
        ("2013", ("２０１３", "二〇一三", "二千十三")),
        ("1110", ("１１１０", "一一一〇", "千百十")),
        ("1", ("１", "一", "一")),
    ],
)
def test_numbers_in_kanji(number: str, expected: tuple[str, str, str]) -> None:
    assert in_kanji(number) == expected


def test_a_text_that_has_a_name_in_other_letters_is_known_to_have_it() -> None:
    assert [*named_in_other_letters("Томми и Саймон в 京都, アトム")] == ["Tom", "Simon", "Kyoto"]
    assert [*named_in_other_letters("Tom in 東京都: Половина")] == ["Tokyo"]


@pytest.mark.parametrize(
    ("text", "translated", "expected"),
    [
        ("I saw {name} at https://x.org.", "Я видел Тома в Торонто.", "Я видел {name} в https://x.org."),
        ("I live with {name} in Rome.", "Я живу с Томом в Риме.", "Я живу с {name} в Риме."),
        ("HELLO {name}!", "ПРИВЕТ, ТОМУ!", "ПРИВЕТ, {name}!"),
        ("He has 12345 books.", "四十八冊の本を持っている。", "12345冊の本を持っている。"),
        ("Mail to a@b.com.", "トムにメールを送る。", "a@b.comにメールを送る。"),
        ("See {name} and {friend}.", "トムとポールを見て。", "{name}と{friend}を見て。"),
    ],
)
def test_what_is_kept_comes_out_without_ending_or_space(text: str, translated: str, expected: str) -> None:
    assert restore(protect(text), translated).text == expected
