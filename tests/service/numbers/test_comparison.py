from datetime import time

import pytest
from babel.dates import format_time
from babel.numbers import format_compact_decimal, format_currency, format_decimal
from hypothesis import given, settings
from hypothesis import strategies as st

from service.numbers.comparison import compare

RIGHT = [
    ("The bill is $344.75.", "Die Rechnung beträgt 344,75 $.", "en-de"),
    ("1,250,000 people", "125万人", "en-ja"),
    ("1億2,000万円", "120,000,000 yen", "ja-en"),
    ("５千円", "5,000 yen", "ja-en"),
    ("5 million", "5 Millionen", "en-de"),
    ("$5 million", "500万ドル", "en-ja"),
    ("at 15:33", "à 3:33 p.m.", "fr-en"),
    ("at 15:33", "à 15 h 33", "en-fr"),
    ("à 15 h 33", "às 15 h 33", "fr-pt"),
    ("um 15.30 Uhr", "at 3:30 p.m.", "de-en"),
    ("at 15:00", "um 15 Uhr", "en-de"),
    ("17時", "5 p.m.", "ja-en"),
    ("born on 8.8.1995", "geboren am 8. August 1995", "en-de"),
    ("born on 8/8/1995", "1995年8月8日", "en-ja"),
    ("on August 8", "8月8日", "en-ja"),
    ("in the 1990s", "in den 1990er Jahren", "en-de"),
    ("We have 3 dogs.", "Wir haben drei Hunde.", "en-de"),
    ("3人", "三人", "ja-zh"),
    ("twenty dogs and 14 cats", "20 Hunde und 14 Katzen", "en-de"),
    ("25%", "25 Prozent", "en-de"),
    ("65 km", "65キロ", "en-ja"),
    ("in September 2019 г.", "in September 2019", "ru-en"),
    ("1914-1918", "1914 bis 1918", "en-de"),
    ("7 744", "7744", "en-fr"),
    ("Use OrderService now.", "OrderServiceを使う。", "en-ja"),
    ("SchülerInnen", "students", "de-en"),
    ("Nothing to find.", "7 Dinge.", "en-de"),
    ("It is -30.", "Es ist −30.", "en-de"),
    ("pages 3-30", "Seiten 3 bis 30", "en-de"),
    ("Call 66 99 59.", "Appelez le 66.99.59.", "en-fr"),
    ("In 2010 25 people came.", "2010 kamen 25 Menschen.", "en-de"),
    ("on 05 May", "le 5 mai", "en-fr"),
    ("room 007", "Zimmer 007", "en-de"),
    ("on October 20, 1918", "1918年10月20日", "en-ja"),
    ("30 m3 of water", "30 m³ Wasser", "en-de"),
    ("30 m³ of water", "30 m3 Wasser", "en-de"),
    ("12 m2", "12 m2", "en-fr"),
    ("From Mar 3 to Apr 5, 2024", "Du 3 mars au 5 avr. 2024", "en-fr"),
    ("on March 3rd, 2024", "2024年3月3日", "en-ja"),
    ("2024年3月3日", "on the 3rd of March 2024", "ja-en"),
    ("May 5 may be late.", "Der 5. Mai ist spät.", "en-de"),
    ("on March 3", "3 Mart", "en-mul"),
    ("3万2500人", "32,500 people", "ja-en"),
    ("It is $5, $6.", "Es sind 5 $, 6 Dollar.", "en-de"),
    ("Between €5 and €6", "zwischen 5 und 6 €", "en-de"),
    ("du 3 au 5 mai", "from May 3 to 5", "fr-en"),
    ("from May 3 to May 5", "du 3 au 5 mai", "en-fr"),
    ("from May 3 to 5", "vom 3. Mai bis 5. Mai", "en-de"),
    ("on May 3, 2024", "2024 年 5 月 3 日", "en-zh"),
    ("on May 3", "วันที่ 3 พฤษภาคม", "en-th"),
    ("on May 1", "1º de maio", "en-pt"),
    ("on May 3", "3-го мая", "en-ru"),
    ("am 3. März", "on the third of March", "de-en"),
    ("on May 3", "Le 3 Mai.", "en-fr"),
    ("Le 3 mai, il peut pleuvoir.", "On May 3, it may rain.", "fr-en"),
    ("Seven people came on September 5.", "Sept personnes sont venues le 5 septembre.", "en-fr"),
    ("In May 12 dogs were found.", "Im Mai wurden 12 Hunde gefunden.", "en-de"),
]
WRONG = [
    ("à 15 h 33", "at 15 h 33", "fr-en"),
    ("30 m3 of water", "3 30 m Wasser", "en-de"),
    ("30 m3 of water", "30 m Wasser", "en-de"),
    ("The bill is $344.75.", "Die Rechnung beträgt 3444.75 $.", "en-de"),
    ("8.8.1995", "8.8.195", "en-fr"),
    ("am 12.05.2024", "on 12,05,2024", "de-en"),
    ("193,544", "193.54", "en-de"),
    ("7 744", "744", "en-fr"),
    ("6 038", "6,38", "fr-en"),
    ("06:33:39", "06:39", "en-ru"),
    ("04:00:05", "04:005", "en-fr"),
    ("23:10:00", "23:10", "en-ru"),
    ("07:23:00", "07:23:0", "ja-en"),
    ("13:44:44", "13h4:44:44", "en-fr"),
    ("um 14:22 am Montag", "at 2:22 on Monday", "de-en"),
    ("32,00", "32,000", "ru-en"),
    ("84.11", "84.110", "en-ja"),
    ("28,11", "28.11 is 28", "ru-en"),
    ("8 214,09 $", "$8,214.09 $2", "ru-en"),
    ("$304.75 USD", "304,75 USD $ $", "en-de"),
    ("£5", "5 $", "en-de"),
    ("5 dogs", "5 5 Hunde", "en-de"),
    ("3:1", "eins", "en-de"),
    ("65 km", "65 мест", "en-ru"),
    ("344 g.", "344.", "en-fr"),
    ("K-7", "K@7", "en-fr"),
    ("itemCount", "élément", "en-fr"),
    ("HttpClient", "ХtpClient", "en-ru"),
    ("125万", "125", "ja-en"),
    ("-57kg", "57 kg", "ja-en"),
    ("K56", "キ56", "en-ja"),
    ("33 dogs, all of them at home, wait until 06:33:39", "33 Hunde warten alle zu Hause bis 06:333:39", "en-de"),
    ("itemCountは", "ItemCount", "ja-en"),
    ("99 33 22", "99 333 22", "en-ru"),
    ("$99.9 million", "99.9万ドル", "en-ja"),
    ("66 99 59", "59 66 99", "ja-en"),
    ("66 5687 00", "66 5687 000", "en-de"),
    ("944-002", "944-02", "en-ja"),
    ("60-00", "60-000", "en-ru"),
    ("room 007", "Zimmer 7", "en-de"),
    ("66 km before lunch", "66 km vor dem Mittagessen 6", "en-de"),
    ("on October 20, 1918", "1918年18月20日", "en-ja"),
    ("Jan 5 or Feb 3", "le 5 janvier ou le 3 janvier", "en-fr"),
    ("Jan 5 or Feb 3", "le 3 janvier ou le 5 février", "en-fr"),
    ("on Mar 4, 2024", "am März 4. März 2024", "en-de"),
    ("on June 30", "le juin 30", "en-fr"),
    ("on May 3", "le 5 mars", "en-fr"),
    ("on May 3", "le 5 mars, en mai", "en-fr"),
    ("on May 3", "le 3 mars, en mai", "en-fr"),
    ("$5 and $6", "5 und $6", "en-de"),
    ("1万5000円", "10,000 and 5000 yen", "ja-en"),
]
LANGUAGES = st.sampled_from(["en", "de", "fr", "ru", "ja"])


@pytest.mark.parametrize(("source", "target", "direction"), RIGHT)
def test_a_number_is_found_in_every_form(source: str, target: str, direction: str) -> None:
    comparison = compare(source, target, *direction.split("-"))
    assert comparison.is_right, comparison


@pytest.mark.parametrize(("source", "target", "direction"), WRONG)
def test_a_lost_or_invented_number_is_told(source: str, target: str, direction: str) -> None:
    assert not compare(source, target, *direction.split("-")).is_right


def test_small_numbers_that_may_be_words_are_named_where_words_are_not_known() -> None:
    assert [span.text for span in compare("3 dogs, 1 cat", "Perros, un gato", "en", "es").as_words] == ["3", "1"]


@pytest.mark.parametrize(
    ("source", "target", "languages"),
    [
        ("1 dog", "un chien", "en fr"),
        ("2 dogs and two cats", "zwei Hunde und zwei Katzen", "en de"),
        ("1 собака", "a dog", "ru en"),
        ("World War 2", "Seconde Guerre mondiale", "en fr"),
        ("the 2nd door", "вторая дверь", "en ru"),
        ("1 item", "ひとつの品物", "en ja"),
        ("3 times a day", "1日3回", "en ja"),
        ("Three dogs, 5 cats", "3 Hunde, 5 Katzen", "en de"),
        ("World War II ended.", "Вторая мировая война закончилась.", "en ru"),
        ("Read volumes I and III.", "Lies Band I und III.", "en de"),
        ("See page xii.", "Voir la page 12.", "en fr"),
        ("form A and form B", "formulaire A et formulaire B", "en fr"),
        ("I saw a dog and John F. Kennedy.", "J'ai vu un chien.", "en fr"),
    ],
)
def test_a_small_number_may_be_its_own_word(source: str, target: str, languages: str) -> None:
    assert compare(source, target, *languages.split()).is_right


@pytest.mark.parametrize(
    ("source", "target", "languages"),
    [
        ("1 dog", "19 ans", "en fr"),
        ("1 dog", "chien", "en fr"),
        ("1 apple", "1ommande", "en fr"),
        ("Room 1 has a window.", "La pièce a une fenêtre.", "en fr"),
        ("1 item", "十一", "en ja"),
        ("1 hour", "une heure et dix", "en fr"),
        ("1 hour", "1 heure 10", "en fr"),
        ("2個のメッセージ", "second message", "ja en"),
        ("Add 1 1/2 cups.", "Ajoute 1/2 tasses.", "en fr"),
        ("World War II ended.", "La première Guerre Mondiale s'est terminée.", "en fr"),
        ("Read volumes I and III.", "II et II", "en fr"),
        ("room D", "chambre", "en fr"),
        ("form A and form B", "formulaire et formulaire B", "en fr"),
        ("Please go to room 4C.", "Va dans la chambre 4.", "en fr"),
    ],
)
def test_a_number_that_is_in_no_form_the_sources_is_made_up(source: str, target: str, languages: str) -> None:
    assert not compare(source, target, *languages.split()).is_right


@settings(max_examples=40)
@given(LANGUAGES, LANGUAGES, st.integers(13, 10**7), st.integers(0, 99), st.integers(0, 9))
def test_numbers_as_cldr_writes_them_are_found_and_another_digit_is_reported(
    source: str, target: str, units: int, cents: int, added: int
) -> None:
    value = units + cents / 100
    written = format_decimal(value, "#,##0.00", locale=source)
    assert compare(written, format_decimal(value, "#,##0.00", locale=target), source, target).is_right
    other = format_decimal(value + (added + 1) / 100, "#,##0.00", locale=target)
    assert not compare(written, other, source, target).is_right
    amount = format_currency(value, "EUR", locale=source)
    assert compare(amount, format_currency(value, "EUR", locale=target), source, target).is_right
    assert not compare(amount, written, source, target).is_right


@settings(max_examples=20)
@given(LANGUAGES, LANGUAGES, st.integers(13, 999), st.times())
def test_millions_and_times_of_cldr_are_found(source: str, target: str, millions: int, moment: time) -> None:
    written = format_decimal(millions * 10**6, locale=source)
    for width in ("short", "long"):
        compact = format_compact_decimal(millions * 10**6, format_type=width, locale=target, fraction_digits=2)
        assert compare(written, compact, source, target).is_right, compact
    told = f"{moment:%H:%M}"
    assert compare(told, format_time(moment, "H:mm", locale=target), source, target).is_right
    assert not compare(told, f"{moment:%H:%M}9", source, target).is_right
