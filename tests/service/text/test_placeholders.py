"""What is to come out of a translation as it went in is found in a text, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.grouped_numbers import grouped_numbers
from service.text.placeholders import WORDS_ALONE, Protected, protect
from service.text.respelling import degrees_in_words
from service.text.restoration import restore, untranslated
from service.text.scripts import foreign_words
from service.text.spans import Edits, Span
from tests.service.stand_ins import KNOWN, placeholders

pytestmark = pytest.mark.usefixtures("known_stand_ins")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See https://x.org/a?b=1&c=%20#d.", ["https://x.org/a?b=1&c=%20#d"]),
        ("(https://en.wikipedia.org/wiki/A_(b)), ok", ["https://en.wikipedia.org/wiki/A_(b)"]),
        ("www.x.fr! «http://é.fr» <ftp://a/b>", ["www.x.fr", "http://é.fr", "<ftp://a/b>"]),
        (
            "Write to <anna@example.com>, see <https://e.com/a>. <https://e.com/a",
            ["<anna@example.com>", "<https://e.com/a>", "https://e.com/a"],
        ),
        ("+15551234567 tel:+15551234567 Call:+15551234567.", ["+15551234567", "tel:+15551234567", "+15551234567"]),
        ("id:5551234567 555-1234 (555) 987-6543.", ["5551234567", "555-1234", "(555) 987-6543"]),
        (
            "+1 (555) 123-4567, 12345-A #12345-B 12345/67890",
            ["+1 (555) 123-4567", "12345-A", "#12345-B", "12345/67890"],
        ),
        ("2001:db8::1, 00:1A:2B:3C:4D:5E at 12:30: a::b", ["2001:db8::1", "00:1A:2B:3C:4D:5E"]),
        ("100,000 or 1 000 000, 1,234,567 and 1.234.567,89", ["100,000", "1 000 000", "1,234,567", "1.234.567,89"]),
        ("v1.2.3, V2.0-rc1 or ISO 9001, v8", ["v1.2.3", "V2.0-rc1", "9001"]),
        ("00:01.000 --> 00:04.000 align:start position:0%\n00:00:01,000 --> 00:00:04,000", []),
        ("all `TODO`s of `a' and `b'", ["`TODO`s"]),
        ("$5, $99.99 and $10M, US$ 5, 100 $.", ["$5", "$99.99", "$10M", "US$ 5", "100 $"]),
        ("$x$, 5 $name, 5 ${name}", ["$x", "$name", "${name}"]),
        ("A flat of 45 m², 1,200.5 km², 3m³ at 5 € per m²; 5 m", ["45 m²", "1,200.5 km²", "3m³", "5 €", "m²"]),
        ("Room № 5, ±5 mm, 30° or 20 °C, 2½, § 7", ["№ 5", "±5", "30°", "2½", "§ 7"]),
        (
            "H₂O and C₆H₁₂O₆, x^2, [[Main page]], C:\\dogs\\a.",
            ["H₂O", "C₆H₁₂O₆", "x^2", "[[Main page]]", "C:\\dogs\\a"],
        ),
        ("One\n1.2.3 The dog\n1.2.3 is", ["1.2.3"]),
        ("go to example.com/a, or Example.ORG.", ["example.com/a"]),
        ("At example.com or www.x.fr!", ["example.com", "www.x.fr"]),
        ("请访问https://x.org/a。谢谢", ["https://x.org/a"]),
        ("ask a.b+c@d-e.co.uk.", ["a.b+c@d-e.co.uk"]),
        ("at https://x.org/{id}/%s", ["https://x.org/{id}/%s"]),
        ("{name}, {{ user.name }}, ${x}, {0}, {}, %{y}", ["{name}", "{{ user.name }}", "${x}", "{0}", "{}", "%{y}"]),
        ("{price:.2f} {n, number} {a[0].b!r}", ["{price:.2f}", "{n, number}", "{a[0].b!r}"]),
        (
            "%s %d %(name)s %1$s %.2f %5d %-3s %@ %lu",
            ["%s", "%d", "%(name)s", "%1$s", "%.2f", "%5d", "%-3s", "%@", "%lu"],
        ),
        ("%s's (%s) %d%% %s/%s %ds %dpx.", ["%s", "%s", "%d%%", "%s/%s", "%ds", "%dpx"]),
        ("%s%s {a}{b} x{c}y {d}'s %dx%d", ["%s%s", "{a}{b}", "x{c}y", "{d}", "%dx%d"]),
        ("{a}/{b} <{c}>-{d} {e}, {f} {g} + {h}", ["{a}/{b}", "{c}>-{d}", "{e}", "{f}", "{g}", "{h}"]),
        ("共{n}个，%d个", ["{n}", "%d"]),
        ("100 % sure, 50%discount, 100%s, 50 %discount, 3 % de, % d, 20%, %so", []),
        ("{see below} f(x) {} [a] #tag @who a/b e.g. 3.14 1:2 and/or C:d", ["{}"]),
        ("I was there.Today it is.it", []),
        ("%%s and \\%", []),
        ("``Hello'' and ``goodbye'' he said", []),
        ("Run `npm install` or ``a`` now, it`s", ["`npm install`", "``a``"]),
        (
            "At 192.168.1.1 on 12/05/1990 or 2027-01-31, 12:30:45.",
            ["192.168.1.1", "12/05/1990", "2027-01-31", "12:30:45"],
        ),
        ("Call 01 23 45 67 89 or +49 30 1234567!", ["01 23 45 67 89", "+49 30 1234567"]),
        ("Call +33 1 23 45 67 89 now, +1 2.", ["+33 1 23 45 67 89"]),
        ("Call +1 555-123-4567 or +44 20 7946-0958, +5 10-20.", ["+1 555-123-4567", "+44 20 7946-0958"]),
        ("Тел. 8 495 123-45-67, +7 (495) 123-45-67.", ["8 495 123-45-67", "+7 (495) 123-45-67"]),
        (
            "HTTPS://EXAMPLE.COM/A, file:///a/b.txt, ssh://git@host/r.git; See<b",
            ["HTTPS://EXAMPLE.COM/A", "file:///a/b.txt", "ssh://git@host/r.git"],
        ),
        ("Seehttps://a.com/x and shift://y", ["Seehttps://a.com/x"]),
        ("https://ja.wikipedia.org/wiki/日本 now", ["https://ja.wikipedia.org/wiki/日本"]),
        ("メールはinfo@example.comまで", ["info@example.com"]),
        ("Appelez le 0 800 123 456.", ["0 800 123 456"]),
        ("andré@exemple.fr, Jürgen.Müller@bücher.de.", ["andré@exemple.fr", "Jürgen.Müller@bücher.de"]),
        ("example.com:8080/a?b=c or example.com?x=1!", ["example.com:8080/a?b=c", "example.com?x=1"]),
        ("A:\n```python\nfor a in `b`:\n    run()\n```\nB `c`", ["```python\nfor a in `b`:\n    run()\n```", "`c`"]),
        ("Run ``a `b` c`` first, not ``` this", ["``a `b` c``"]),
        ("Dear $name, {% if x %} __NAME__ a$b _x_ __init__", ["$name", "{% if x %}", "__NAME__"]),
        (
            "123e4567-e89b-12d3-a456-426614174000 and 0xDEADBEEF, d41d8cd98f00b204e9800998ecf8427e.",
            ["123e4567-e89b-12d3-a456-426614174000", "0xDEADBEEF", "d41d8cd98f00b204e9800998ecf8427e"],
        ),
        ("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", ["aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"]),
        ("ISBN 978-3-16-148410-0, effaceable, decade", ["978-3-16-148410-0"]),
        ("at localhost:8000, localhost/a or localhost", ["localhost:8000", "localhost/a"]),
        ("€48, £1.5m or 12,50 € and 100 ¥, a€b", ["€48", "£1.5m", "12,50 €", "100 ¥"]),
        ("22500 people in 1990 and 2022 bought A1B2C3 and XJ-9000 0417.", ["22500", "1990", "2022", "A1B2C3"]),
        (
            "電話は03-1234-5678で、tom@example.comか$nameが12345円を1990年にwww.a.orgの`cp a`と{x}で。",
            ["03-1234-5678", "tom@example.com", "$name", "12345", "1990", "www.a.org", "`cp a`", "{x}"],
        ),
        ("価格は１２３４５円、￥500、v1.2.3は5人、1987年", ["１２３４５", "￥500", "v1.2.3"]),
        (
            "０３－１２３４－５６７８か〒１００−０００１、１９９０年",
            ["０３－１２３４－５６７８", "１００−０００１", "１９９０"],
        ),
        ("○○さんと△△社、○をつける", ["○○", "△△"]),
        ("080ー1234ー5678へ、●●●重要", ["080ー1234ー5678"]),
        ("電話03（1234）5678か03(1234)5678", ["03（1234）5678", "03(1234)5678"]),
        ("電話（０３）１２３４－５６７８（会社）", ["（０３）１２３４－５６７８"]),
        ("https://ja.wikipedia.org/wiki/佐々木 へ", ["https://ja.wikipedia.org/wiki/佐々木"]),
        ("https://a.org/をご覧、https://a.org/日本 とC:\\aを開く", ["https://a.org/", "https://a.org/日本", "C:\\a"]),
        ("In 1987 or 2019, 3.14 and 1,500 at 12:30, 1/2, 2:1, 1990s, x1234567", []),
    ],
)
def test_placeholders_are_found_and_prose_is_not(text: str, expected: list[str]) -> None:
    assert placeholders(text) == expected


PARTS = [
    *"aSx1 €/@.,:-+{}()%$`_#\u00a0<>[]^\\½₂§°m²",
    *("www.", ".com", "localhost", "http", "://", "mailto:", "345", "A_", "__", "{%", "%}", "```", "0x", "ff-"),
    *("abcdefab-", "abcd-", "abcdefabcdef"),
]


@given(st.lists(st.sampled_from(PARTS)).map("".join))
def test_no_placeholder_is_missed_in_a_text_that_looks_as_if_it_had_none(text: str) -> None:
    assert placeholders(text) == placeholders(text + "\n/")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello {name}, see https://x.org.", "Hello Tom, see Boston."),
        ("%d files of {count}", "37 files of 48"),
        ("{a} and {b}", "Tom and Paul"),
        ("You have 37h to pay £5, {n}", "You have 37h to pay 48, 53"),
        ("Tom, {a} and BOSTON, https://x.org, 37 %d", "Tom, Paul and BOSTON, Chicago, 37 48"),
        ("Nothing here", "Nothing here"),
        ("トムは{a}に会った", "トムはPaulに会った"),
        ("Том видел {a}", "Том видел Paul"),
        ("Потом {a}", "Потом Tom"),
        ("３７個と12345円", "３７個と48円"),
    ],
)
def test_stand_ins_are_words_that_the_text_does_not_have(text: str, expected: str) -> None:
    assert protect(text).text == expected


def test_a_text_that_has_all_stand_ins_gets_another() -> None:
    text = " ".join([*KNOWN["person"], "Xxx", "{a}", "{b}"])
    assert protect(text).text.endswith(" Xxx Xxxx Xxxx")
    assert restore(protect(text), "Xxxx x Xxxx").text == "{a} x {b}"


def test_what_the_caller_names_is_kept_with_what_touches_it() -> None:
    protected = protect("Use \ufffcs and \ufffc.", [Span(4, 5), Span(11, 12)])
    assert protected.text == "Use Boston and Chicago."
    assert restore(protected, "Boston, Chicago").text == "\ufffcs, \ufffc"


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "The word سلام عليكم, שלום or 世界。", ["سلام عليكم", "שלום", "世界。"]),
        ("en", "The word мир, π and naïve Łódź, ﬁsh, e\u0301", ["мир", "π"]),
        ("en", "Say «спасибо большое» or 「ありがとう」 for 5 кг.", ["спасибо большое", "「ありがとう」", "кг"]),
        ("ru", "Слово 世界 значит мир, the world.", ["世界"]),
        ("ja", "世界、ワールド、Ｗorld、Привет、한국어。", ["Привет", "한국어"]),
        ("xx", "The word 世界 means world.", []),
    ],
)
def test_words_in_letters_that_a_language_is_not_written_in_are_found(
    language: str, text: str, expected: list[str]
) -> None:
    assert [span.of(text) for span in foreign_words(text, language)] == expected


def test_many_circles_take_no_longer_than_text() -> None:
    """Quadratic time would be a minute."""
    assert placeholders("○" * 50_000 + "人") == []


def test_a_number_in_ten_thousands_is_no_year() -> None:
    text = "2000万円"
    assert protect(text, numbers=grouped_numbers(text, "ja")).text == f"{KNOWN['number'][0]}円"


def test_long_nonsense_of_two_scripts_takes_no_longer_than_text() -> None:
    text = "πa" * 50_000
    [placeholder] = protect(text, foreign_words(text, "en")).placeholders
    assert placeholder.span.of(text) == text


@pytest.mark.parametrize(
    ("text", "translatable"),
    [
        ("https://x.org", False),
        ("{a}: {b} (50 %)", False),
        ("{a} is", True),
        ("50 %", True),
        ("", True),
    ],
)
def test_what_is_only_placeholders_needs_no_translation(text: str, translatable: bool) -> None:
    protected = protect(text)
    assert protected.translatable == translatable
    assert untranslated(protected).text == text


@pytest.mark.parametrize("text", ["The 3 dogs (12 cats).", "In 7 years, 100 men and 99 women.", "7"])
def test_a_text_with_small_numbers_need_not_be_searched(text: str) -> None:
    assert WORDS_ALONE.fullmatch(text)


@pytest.mark.parametrize("text", ["::0", "0::a", "localhost:80", "tel 12 345", "(02) 34 56", "1.2", "4x", "1990"])
def test_a_text_whose_numbers_may_be_placeholders_is_searched(text: str) -> None:
    assert not WORDS_ALONE.fullmatch(text)


@given(st.from_regex(WORDS_ALONE, fullmatch=True), st.sampled_from(["en", "de", "fr", "ru", "ja"]), st.data())
def test_a_text_that_need_not_be_searched_has_nothing_to_replace(text: str, source: str, data: st.DataObject) -> None:
    target = data.draw(st.sampled_from(["de", "ru", "ja"]))
    replaced = foreign_words(text, source), grouped_numbers(text, source), [*degrees_in_words(text, source, target)]
    assert replaced == ([], [], [])
    assert protect(text) == Protected(text, text, (), Edits((), ()))
